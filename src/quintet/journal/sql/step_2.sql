-- Schema 2: what was put aside and brought back in a thread is found without reading all events. Done twice it changes
-- nothing: a version that was damaged in the head of the file must not keep it from being opened.
CREATE TABLE IF NOT EXISTS checkpoints (seq INTEGER PRIMARY KEY, thread INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS checkpoints_thread ON checkpoints (thread);
