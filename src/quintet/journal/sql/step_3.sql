-- Schema 3: the audit chain. It begins where the journal stands now; events of before were never part of it.
CREATE TABLE IF NOT EXISTS audit (
    number INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    thread TEXT NOT NULL,
    digest BLOB NOT NULL,
    link BLOB NOT NULL
);
INSERT INTO audit SELECT 1, next - 1, 'chain.begun', CAST(unixepoch('subsec') * 1000 AS INTEGER), '', zeroblob(32), zeroblob(32)
FROM counter WHERE NOT EXISTS (SELECT 1 FROM audit);
