-- name: counter
SELECT next, ceiling, boot_id, pruned_through, signals_through, store_id FROM counter
-- name: user_version
PRAGMA user_version
-- name: set_next
UPDATE counter SET next = ?
-- name: raise_ceiling
UPDATE counter SET ceiling = ?
-- name: new_boot
UPDATE counter SET next = ceiling, ceiling = ceiling + ?, boot_id = ?
-- name: first_counter
INSERT INTO counter VALUES (1, 1, ?, ?, 0, 0, ?)
-- name: set_marks
UPDATE counter SET pruned_through = ?, signals_through = ?

-- name: kinds
SELECT code, name FROM kinds
-- name: insert_kind
INSERT INTO kinds (name, durability) VALUES (?, ?) RETURNING code
-- name: thread_key
SELECT key FROM threads WHERE id = ?
-- name: thread_id
SELECT id FROM threads WHERE key = ?
-- name: turn_key
SELECT key FROM turns WHERE id = ?
-- name: own_turn_key
SELECT key FROM turns WHERE id = ? AND thread = ?
-- name: turn_id
SELECT id FROM turns WHERE key = ?

-- name: insert_event
INSERT INTO events (seq, kind, at_ms, root, thread, turn, sum, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
-- name: events
SELECT seq, kind, at_ms, root, thread, turn, sum, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?
-- name: root_events
SELECT seq, kind, at_ms, root, thread, turn, sum, body FROM events WHERE root = ? AND seq > ? ORDER BY seq LIMIT ?
-- name: project_events
SELECT seq, kind, at_ms, root, thread, turn, sum, body FROM events WHERE seq > ? AND seq <= ?
AND (+events.root IS NULL OR (SELECT project FROM threads WHERE key = events.root) = ?) ORDER BY seq LIMIT ?
-- name: root_facts
SELECT seq, kind, at_ms, root, thread, turn, sum, body FROM events WHERE root = ? AND seq > ?
AND kind NOT IN (SELECT code FROM kinds WHERE durability = 'delta') ORDER BY seq LIMIT ?
-- name: turn_events
SELECT seq, kind, at_ms, root, thread, turn, sum, body FROM events WHERE root = ? AND turn = ? AND seq > ? ORDER BY seq
-- name: usage
SELECT seq, kind, at_ms, root, thread, turn, sum, body FROM events WHERE seq > ?
AND kind IN (SELECT code FROM kinds WHERE name IN ('step.finished', 'tool.finished', 'turn.finished'))
ORDER BY seq LIMIT ?
-- name: usage_of
SELECT seq, kind, at_ms, root, thread, turn, sum, body FROM events WHERE root = ? AND seq > ?
AND kind IN (SELECT code FROM kinds WHERE name IN ('step.finished', 'tool.finished', 'turn.finished'))
ORDER BY seq LIMIT ?
-- name: first_begun
SELECT min(began) FROM (
SELECT min(started_seq) AS began FROM turns WHERE finished_ms > 0 AND started_seq > 0 AND finished_ms >= ? UNION ALL
SELECT min(started_seq) FROM turns WHERE state IN ('queued', 'running') AND started_seq > 0)
-- name: event
SELECT seq, kind, at_ms, root, thread, turn, sum, body FROM events WHERE seq = ?
-- name: drop_deltas
DELETE FROM events WHERE seq > ? AND seq <= ? AND kind IN (SELECT code FROM kinds WHERE durability = 'delta')
RETURNING length(body)
-- name: signal_kinds
SELECT code FROM kinds WHERE durability = 'signal'
-- name: drop_old_signals
DELETE FROM events WHERE root IS NULL AND kind IN (SELECT code FROM kinds WHERE durability = 'signal')
AND (at_ms < ? OR seq <= coalesce((SELECT seq FROM events WHERE root IS NULL
AND kind IN (SELECT code FROM kinds WHERE durability = 'signal') ORDER BY seq DESC LIMIT 1 OFFSET ?), 0))
RETURNING seq
-- name: insert_unknown
INSERT INTO unknown_effects VALUES (?, ?)
-- name: unknown_effects
SELECT seq FROM unknown_effects ORDER BY seq DESC
-- name: unknown_effects_of
SELECT seq FROM unknown_effects WHERE thread = ? ORDER BY seq DESC
-- name: insert_checkpoint
INSERT INTO checkpoints VALUES (?, ?)
-- name: checkpoints
SELECT seq, kind, at_ms, root, thread, turn, sum, body FROM events
WHERE seq IN (SELECT seq FROM checkpoints WHERE seq > ?) ORDER BY seq
-- name: checkpoints_of
SELECT seq, kind, at_ms, root, thread, turn, sum, body FROM events
WHERE seq IN (SELECT seq FROM checkpoints WHERE thread = ? AND seq > ?) ORDER BY seq
-- name: find_checkpoints
INSERT OR IGNORE INTO checkpoints SELECT seq, coalesce(thread, root) FROM events WHERE coalesce(thread, root) IS NOT NULL
AND kind IN (SELECT code FROM kinds WHERE name IN ('checkpoint.made', 'checkpoint.settled', 'files.restored'))
-- name: audit_head
SELECT number, seq, kind, at_ms, thread, digest, link FROM audit ORDER BY number DESC LIMIT 1
-- name: audit
SELECT number, seq, kind, at_ms, thread, digest, link FROM audit WHERE number > ? ORDER BY number LIMIT ?
-- name: insert_audit
INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)
-- name: unaudited_events
SELECT seq FROM events WHERE seq > ? AND seq <= ? AND kind IN (SELECT code FROM kinds WHERE name IN (SELECT value FROM json_each(?)))
AND seq NOT IN (SELECT seq FROM audit) ORDER BY seq
-- name: has_audit
SELECT 1 FROM sqlite_schema WHERE name = 'audit'
-- name: has_checkpoints
SELECT 1 FROM sqlite_schema WHERE name = 'checkpoints'

-- name: thread
SELECT body FROM threads WHERE id = ?
-- name: insert_thread
INSERT INTO threads (id, root, project, parent, depth, updated_ms, deleted_ms, owner, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key
-- name: own_root
UPDATE threads SET root = key WHERE key = ?
-- name: save_thread
UPDATE threads SET project = ?, updated_ms = ?, deleted_ms = ?, owner = ?, body = ? WHERE id = ?
-- name: mark_erased
UPDATE threads SET erased = 1 WHERE id = ?
-- name: threads_recent
SELECT body FROM threads WHERE parent = '' AND deleted_ms = 0 AND (updated_ms, id) < (?, ?)
ORDER BY updated_ms DESC, id DESC LIMIT ?
-- name: threads_project
SELECT body FROM threads WHERE project = ? AND parent = '' AND deleted_ms = 0 AND (updated_ms, id) < (?, ?)
ORDER BY updated_ms DESC, id DESC LIMIT ?
-- name: threads_any
SELECT body FROM threads WHERE (?1 = '' OR project = ?1) AND (?2 OR parent = '') AND (deleted_ms > 0) = ?3
AND (updated_ms, id) < (?4, ?5) ORDER BY updated_ms DESC, id DESC LIMIT ?6
-- name: tree
SELECT body FROM threads WHERE root = (SELECT key FROM threads WHERE id = ?) ORDER BY depth DESC, id
-- name: busy
SELECT body FROM threads WHERE root = (SELECT key FROM threads WHERE id = ?) AND (owner != '' OR EXISTS (
SELECT 1 FROM turns WHERE turns.thread = threads.key AND turns.state IN ('queued', 'running'))) ORDER BY depth DESC, id
-- name: owned
SELECT body FROM threads WHERE owner != ''
-- name: unerased
SELECT id FROM threads WHERE deleted_ms > 0 AND erased = 0

-- name: insert_item
INSERT INTO items (key, id, turn, at_ms, origin, sum, body) VALUES (?, ?, ?, ?, ?, ?, ?)
-- name: items
SELECT key, id, turn, at_ms, origin, sum, body FROM items WHERE key > ? AND key < ? ORDER BY key LIMIT ?
-- name: items_newest
SELECT key, id, turn, at_ms, origin, sum, body FROM items WHERE key > ? AND key < ? ORDER BY key DESC LIMIT ?
-- name: index_item
INSERT INTO words (rowid, body) VALUES (?, ?)
-- name: unindex_item
INSERT INTO words (words, rowid, body) VALUES ('delete', ?, ?)
-- name: matches
SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC

-- name: turn
SELECT id, thread, body FROM turns WHERE id = ?
-- name: insert_turn
INSERT INTO turns (id, thread, state, started_seq, finished_ms, body) VALUES (?, ?, ?, ?, ?, ?)
-- name: save_turn
UPDATE turns SET state = ?, started_seq = ?, finished_ms = ?, body = ? WHERE id = ?
-- name: turns
SELECT id, thread, body FROM turns WHERE thread = ? ORDER BY key
-- name: live_turns
SELECT id, thread, body FROM turns WHERE thread = ? AND state IN ('queued', 'running') ORDER BY key
-- name: queued
SELECT id, thread, body FROM turns WHERE state IN ('queued', 'running') AND state = 'queued' ORDER BY key
-- name: first_kept
SELECT min(started_seq) FROM (
SELECT started_seq FROM turns WHERE state IN ('queued', 'running') AND state = 'running'
UNION ALL SELECT started_seq FROM turns WHERE finished_ms > 0 AND started_seq > 0 AND finished_ms >= ?)

-- name: interaction
SELECT body FROM interactions WHERE id = ?
-- name: put_interaction
INSERT INTO interactions (id, root, thread, turn, pending, holds, body) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET pending = excluded.pending, body = excluded.body
-- name: interactions
SELECT body FROM interactions WHERE (?1 = '' OR root = ?1) ORDER BY key
-- name: pending_interactions
SELECT body FROM interactions WHERE pending = 1 AND (?1 = '' OR root = ?1) ORDER BY key
-- name: turn_interactions
SELECT body FROM interactions WHERE pending = 1 AND holds = 1 AND turn = ? ORDER BY key

-- name: command
SELECT body FROM commands WHERE id = ?
-- name: put_command
INSERT INTO commands (id, thread, pending, body) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET pending = excluded.pending, body = excluded.body
-- name: commands
SELECT body FROM commands WHERE thread = ? AND pending = 1 ORDER BY key

-- name: grant
SELECT body FROM grants WHERE id = ?
-- name: put_grant
INSERT INTO grants (id, thread, revoked, body) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET revoked = excluded.revoked, body = excluded.body
-- name: grants
SELECT body FROM grants WHERE revoked = 0 ORDER BY key

-- name: handle
SELECT thread, deleted_ms FROM handles WHERE protocol = ? AND scope = ? AND external_id = ?
ORDER BY deleted_ms > 0, key DESC LIMIT 1
-- name: insert_handle
INSERT INTO handles (protocol, scope, external_id, thread, deleted_ms) VALUES (?, ?, ?, ?, ?)
-- name: handles_of
SELECT protocol, scope, external_id, thread FROM handles WHERE thread = ? AND deleted_ms = 0 ORDER BY key
-- name: drop_handle
UPDATE handles SET deleted_ms = ? WHERE protocol = ? AND scope = ? AND external_id = ? AND deleted_ms = 0
-- name: mirror
SELECT kind, thread, through_seq, size, digest FROM mirrors WHERE path = ?
-- name: mirrors_of
SELECT path FROM mirrors WHERE thread = ? ORDER BY key
-- name: put_mirror
INSERT INTO mirrors (path, kind, thread, through_seq, size, digest) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (path) DO UPDATE SET kind = excluded.kind, thread = excluded.thread, through_seq = excluded.through_seq,
size = excluded.size, digest = excluded.digest
-- name: drop_mirrors
DELETE FROM mirrors WHERE thread = ?
-- name: drop_handles
UPDATE handles SET deleted_ms = ? WHERE thread = ? AND deleted_ms = 0
-- name: projects
SELECT id, root, name FROM projects ORDER BY key
-- name: insert_project
INSERT INTO projects (id, root, name) VALUES (?, ?, ?)
-- name: key
SELECT digest, turn, thread, at_ms FROM keys WHERE scope = ? AND key = ?
-- name: put_key
INSERT OR REPLACE INTO keys (scope, key, digest, turn, thread, at_ms) VALUES (?, ?, ?, ?, ?, ?)
-- name: drop_keys
DELETE FROM keys WHERE at_ms < ?

-- name: doomed_events
SELECT seq FROM events WHERE root = ?1 AND coalesce(thread, root) = ?2 AND kind != ?3 LIMIT ?4
-- name: drop_event
DELETE FROM events WHERE seq = ?
-- name: drop_unknown
DELETE FROM unknown_effects WHERE seq = ?
-- name: drop_checkpoint
DELETE FROM checkpoints WHERE seq = ?
-- name: drop_item
DELETE FROM items WHERE key = ?
-- name: drop_turns
DELETE FROM turns WHERE thread = ?
-- name: drop_interactions
DELETE FROM interactions WHERE thread = ?
-- name: drop_commands
DELETE FROM commands WHERE thread = ?
-- name: drop_grants
DELETE FROM grants WHERE thread = ?
-- name: drop_thread_keys
DELETE FROM keys WHERE thread = ?
