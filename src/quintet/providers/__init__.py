"""One file, one model wire."""
