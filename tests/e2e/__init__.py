"""The command line and several processes on one home, as users meet them."""
