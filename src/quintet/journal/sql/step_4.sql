-- Schema 4: mirrors, the files that clients read themselves: how far each one tells its thread, and what it held then.
CREATE TABLE IF NOT EXISTS mirrors (
    key INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    thread TEXT NOT NULL,
    through_seq INTEGER NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS mirrors_thread ON mirrors (thread);
