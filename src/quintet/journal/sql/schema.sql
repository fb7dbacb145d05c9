-- The journal as schema 1 has it; the steps after it are in files of their own. Texts of ids are kept once, in the tables of their nouns; events use integer keys.

CREATE TABLE counter (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    next INTEGER NOT NULL,
    ceiling INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    pruned_through INTEGER NOT NULL,
    signals_through INTEGER NOT NULL,
    store_id TEXT NOT NULL
);

-- Kinds get their code at first use, so that the list of kinds may grow and be sorted anew without moving old rows.
CREATE TABLE kinds (code INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, durability TEXT NOT NULL);

CREATE TABLE threads (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    root INTEGER NOT NULL,
    project TEXT NOT NULL,
    parent TEXT NOT NULL,
    depth INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    deleted_ms INTEGER NOT NULL,
    erased INTEGER NOT NULL DEFAULT 0,
    owner TEXT NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX threads_recent ON threads (updated_ms) WHERE parent = '' AND deleted_ms = 0;
CREATE INDEX threads_project ON threads (project, updated_ms) WHERE parent = '' AND deleted_ms = 0;
CREATE INDEX threads_root ON threads (root);
CREATE INDEX threads_owned ON threads (owner) WHERE owner != '';
CREATE INDEX threads_unerased ON threads (key) WHERE deleted_ms > 0 AND erased = 0;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    root INTEGER,
    thread INTEGER, -- empty when it is the root
    turn INTEGER,
    sum INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX events_root ON events (root) WHERE root IS NOT NULL;
CREATE INDEX events_in_no_thread ON events (at_ms) WHERE root IS NULL;

CREATE TABLE unknown_effects (seq INTEGER PRIMARY KEY, thread TEXT NOT NULL);

-- The key is the thread's key * 2^24 + ordinal: one tree, in reading order, no second index.
CREATE TABLE items (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    turn NOT NULL, -- the key of a turn of this thread, or the id of one elsewhere that a fork took it from
    at_ms INTEGER NOT NULL,
    origin TEXT NOT NULL,
    sum INTEGER NOT NULL,
    body BLOB NOT NULL
);
-- Only whole words and their beginnings are looked up, never phrases: no positions, no sizes, no second copy.
CREATE VIRTUAL TABLE words USING fts5(
    body, content = '', detail = none, columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);

-- Keys of turns are never given twice: events refer to them after the turn's row may be gone.
CREATE TABLE turns (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    thread INTEGER NOT NULL,
    state TEXT NOT NULL,
    started_seq INTEGER NOT NULL,
    finished_ms INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX turns_thread ON turns (thread);
CREATE INDEX turns_live ON turns (thread) WHERE state IN ('queued', 'running');
CREATE INDEX turns_finished ON turns (finished_ms) WHERE finished_ms > 0 AND started_seq > 0;

CREATE TABLE interactions (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL,
    thread TEXT NOT NULL,
    turn TEXT NOT NULL,
    pending INTEGER NOT NULL,
    holds INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX interactions_thread ON interactions (thread);
CREATE INDEX interactions_root ON interactions (root);
CREATE INDEX interactions_pending ON interactions (turn) WHERE pending = 1;

CREATE TABLE commands (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    thread TEXT NOT NULL,
    pending INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX commands_thread ON commands (thread);
CREATE INDEX commands_pending ON commands (thread) WHERE pending = 1;

CREATE TABLE grants (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    thread TEXT NOT NULL,
    revoked INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE handles (
    key INTEGER PRIMARY KEY,
    protocol TEXT NOT NULL,
    scope TEXT NOT NULL,
    external_id TEXT NOT NULL,
    thread TEXT NOT NULL,
    deleted_ms INTEGER NOT NULL
);
CREATE UNIQUE INDEX handles_live ON handles (protocol, scope, external_id) WHERE deleted_ms = 0;
CREATE INDEX handles_name ON handles (protocol, scope, external_id);
CREATE INDEX handles_thread ON handles (thread);

CREATE TABLE projects (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    root TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE keys (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    digest TEXT NOT NULL,
    turn TEXT NOT NULL,
    thread TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX keys_age ON keys (at_ms);
CREATE INDEX keys_thread ON keys (thread);
