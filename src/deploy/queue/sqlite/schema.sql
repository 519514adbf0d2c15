-- The queue of updates, schema 1.
--
-- Look at it while it runs:
--
--   sqlite3 -readonly updates.sqlite "select * from overview limit 20"
--
-- Times are milliseconds since 1970; the view prints them as dates. Do not write to this file
-- with another program: its SQLite may be older than 3.51.3 and corrupt the write-ahead log.

-- Counters that are never reused, so their rows are kept when updates are removed.
CREATE TABLE projects (
  project    TEXT PRIMARY KEY,
  generation INTEGER NOT NULL,            -- of the newest update
  epoch      INTEGER NOT NULL DEFAULT 0,  -- of the newest claim
  commit_sha TEXT,                        -- of the last success
  -- The fence of the promotion that a gateway serves now, and since when.
  served_generation INTEGER,
  served_epoch      INTEGER,
  served_at         INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE updates (
  id         TEXT PRIMARY KEY,
  project    TEXT NOT NULL REFERENCES projects,
  owner      TEXT NOT NULL,
  subdomain  TEXT NOT NULL,
  source     TEXT NOT NULL CHECK (source IN ('api', 'internal')),
  generation INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  attempts   INTEGER NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('queued', 'superseded', 'in_progress', 'success', 'failure')),
  due_at     INTEGER,                     -- queued: start of the next attempt; in_progress: end of the lease
  worker     TEXT,
  epoch      INTEGER,                     -- of the claim that builds it, or that published its release
  superseded_by TEXT REFERENCES updates DEFERRABLE INITIALLY DEFERRED,
  ended_at   INTEGER,
  release    TEXT,
  visible_at INTEGER,
  dead_letter INTEGER NOT NULL DEFAULT 0, -- ran out of attempts, and nothing was triggered since
  summary    TEXT NOT NULL,
  commit_json TEXT,
  CHECK ((state IN ('queued', 'in_progress')) = (due_at IS NOT NULL)),
  CHECK ((state = 'in_progress') = (worker IS NOT NULL)),
  CHECK ((state IN ('in_progress', 'success')) = (epoch IS NOT NULL)),
  CHECK ((state = 'superseded') = (superseded_by IS NOT NULL)),
  CHECK ((state IN ('success', 'failure')) = (ended_at IS NOT NULL)),
  CHECK ((state = 'success') = (release IS NOT NULL)),
  CHECK (dead_letter = 0 OR state = 'failure')
) STRICT;

-- At most one update of a project waits, and at most one runs. The indexes ensure it even if the
-- code has a mistake.
CREATE UNIQUE INDEX updates_one_queued ON updates (project) WHERE state = 'queued';
CREATE UNIQUE INDEX updates_one_running ON updates (project) WHERE state = 'in_progress';
CREATE INDEX updates_due ON updates (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX updates_superseded ON updates (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX updates_ended ON updates (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX updates_dead_letter ON updates (project) WHERE dead_letter = 1;
CREATE INDEX updates_project ON updates (project, id);
CREATE INDEX updates_not_visible ON updates (project) WHERE state = 'success' AND visible_at IS NULL;
CREATE INDEX updates_owner_due ON updates (owner, due_at, id) WHERE due_at IS NOT NULL;

CREATE TABLE logs (
  id   TEXT NOT NULL REFERENCES updates ON DELETE CASCADE,
  seq  INTEGER NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (id, seq)
) STRICT, WITHOUT ROWID;

-- (owner, SHA-256 of the header) -> the update in the response to the first call.
CREATE TABLE idempotency_keys (
  owner      TEXT NOT NULL,
  digest     BLOB NOT NULL,
  project    TEXT NOT NULL,
  id         TEXT NOT NULL,
  kept_until INTEGER NOT NULL,
  PRIMARY KEY (owner, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_kept ON idempotency_keys (kept_until);

-- Round-robin: every owner with updates that wait or run has one row. The row moves to the
-- end when an update of the owner is claimed. The first owner with a due update is next, so
-- an owner waits for at most one claim of each other owner.
CREATE TABLE owners (
  owner    TEXT PRIMARY KEY,
  position INTEGER NOT NULL               -- the lowest is next
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX owners_position ON owners (position);
CREATE TRIGGER owners_added AFTER INSERT ON updates WHEN NEW.due_at IS NOT NULL BEGIN
  INSERT INTO owners VALUES (NEW.owner, (SELECT coalesce(max(position), 0) + 1 FROM owners))
    ON CONFLICT (owner) DO NOTHING;
END;
CREATE TRIGGER owners_removed AFTER UPDATE OF due_at ON updates
  WHEN OLD.due_at IS NOT NULL AND NEW.due_at IS NULL BEGIN
  DELETE FROM owners WHERE owner = NEW.owner
    AND NOT EXISTS (SELECT 1 FROM updates WHERE owner = NEW.owner AND due_at IS NOT NULL);
END;

-- How many updates are in each state, so that checking the limit counts no rows.
CREATE TABLE totals (state TEXT PRIMARY KEY, updates INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO totals VALUES ('queued', 0), ('superseded', 0), ('in_progress', 0), ('success', 0), ('failure', 0);
CREATE TRIGGER updates_inserted AFTER INSERT ON updates BEGIN
  UPDATE totals SET updates = updates + 1 WHERE state = NEW.state;
END;
CREATE TRIGGER updates_moved AFTER UPDATE OF state ON updates WHEN OLD.state <> NEW.state BEGIN
  UPDATE totals SET updates = updates - 1 WHERE state = OLD.state;
  UPDATE totals SET updates = updates + 1 WHERE state = NEW.state;
END;
CREATE TRIGGER updates_deleted AFTER DELETE ON updates BEGIN
  UPDATE totals SET updates = updates - 1 WHERE state = OLD.state;
END;

CREATE VIEW overview AS
  SELECT id, project, state, generation, attempts,
         datetime(created_at / 1000, 'unixepoch') AS created,
         datetime(due_at / 1000, 'unixepoch') AS due,
         datetime(ended_at / 1000, 'unixepoch') AS ended,
         datetime(visible_at / 1000, 'unixepoch') AS visible,
         worker, superseded_by, substr(release, 1, 12) AS release, dead_letter, summary
    FROM updates ORDER BY id DESC;
