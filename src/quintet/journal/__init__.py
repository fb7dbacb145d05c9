"""Where everything that happens is kept: SQLite, its in-memory twin, and the rules both obey."""
