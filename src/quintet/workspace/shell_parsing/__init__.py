"""Reading shell lines: words, structure, variables, and what runs behind a wrapper. Pure; knows no policy."""
