-- The queue of updates, schema 1.
--
-- Look at it while it runs:
--
--   sqlite3 -readonly updates.sqlite "select * from overview limit 20"
--
-- Times are milliseconds after 1970; the view prints them. Do not write to this file with
-- another program: an old SQLite may carry the WAL-reset bug.

-- Numbers that must never be used twice, so they outlive the updates.
CREATE TABLE projects (
  project    TEXT PRIMARY KEY,
  generation INTEGER NOT NULL,            -- of the newest update
  epoch      INTEGER NOT NULL DEFAULT 0,  -- of the newest claim
  commit_sha TEXT                         -- of the last success
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
  state      TEXT NOT NULL CHECK (state IN ('queued', 'follows', 'in_progress', 'success', 'failure')),
  due_at     INTEGER,                     -- queued: ready; in_progress: end of the lease
  worker     TEXT,
  epoch      INTEGER,
  leader     TEXT REFERENCES updates DEFERRABLE INITIALLY DEFERRED,
  ended_at   INTEGER,
  release    TEXT,
  visible_at INTEGER,
  dead       INTEGER NOT NULL DEFAULT 0,
  summary    TEXT NOT NULL,
  commit_json TEXT,
  CHECK ((state IN ('queued', 'in_progress')) = (due_at IS NOT NULL)),
  CHECK ((state = 'in_progress') = (worker IS NOT NULL AND epoch IS NOT NULL)),
  CHECK ((state = 'follows') = (leader IS NOT NULL)),
  CHECK ((state IN ('success', 'failure')) = (ended_at IS NOT NULL)),
  CHECK ((state = 'success') = (release IS NOT NULL)),
  CHECK (dead = 0 OR state = 'failure')
) STRICT;

-- At most one waits and at most one runs, even if the code were wrong.
CREATE UNIQUE INDEX updates_one_queued ON updates (project) WHERE state = 'queued';
CREATE UNIQUE INDEX updates_one_running ON updates (project) WHERE state = 'in_progress';
CREATE INDEX updates_due ON updates (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX updates_leader ON updates (leader) WHERE leader IS NOT NULL;
CREATE INDEX updates_ended ON updates (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX updates_dead ON updates (project) WHERE dead = 1;
CREATE INDEX updates_project ON updates (project, id);

CREATE TABLE logs (
  id   TEXT NOT NULL REFERENCES updates ON DELETE CASCADE,
  seq  INTEGER NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (id, seq)
) STRICT, WITHOUT ROWID;

-- (owner, sha256 of the header) -> what was answered.
CREATE TABLE idempotency_keys (
  owner      TEXT NOT NULL,
  digest     BLOB NOT NULL,
  project    TEXT NOT NULL,
  id         TEXT NOT NULL,
  kept_until INTEGER NOT NULL,
  PRIMARY KEY (owner, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_kept ON idempotency_keys (kept_until);

-- How many updates are in each state, so that the limit on waiting ones costs no count.
CREATE TABLE totals (state TEXT PRIMARY KEY, updates INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO totals VALUES ('queued', 0), ('follows', 0), ('in_progress', 0), ('success', 0), ('failure', 0);
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
         worker, leader, substr(release, 1, 12) AS release, dead, summary
    FROM updates ORDER BY id DESC;
