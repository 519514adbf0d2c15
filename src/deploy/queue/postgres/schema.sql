-- The queue of updates, schema 1. `src/deploy/queue/sqlite/schema.sql` describes the tables of the
-- same names; this file says only what differs.
--
-- Times are milliseconds since 1970 by the clock of this server.

CREATE SCHEMA waypost_queue;
SET LOCAL search_path = waypost_queue;

-- One row: whose queue this is, and which programs can use it.
CREATE TABLE identity (
  one        BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
  service    TEXT NOT NULL,             -- `service.domain` of the configuration
  version    BIGINT NOT NULL,           -- of the schema
  compatible BIGINT NOT NULL,           -- the lowest version whose programs may use the schema
  created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE TABLE projects (
  project    TEXT COLLATE "C" PRIMARY KEY,
  generation BIGINT NOT NULL,
  epoch      BIGINT NOT NULL DEFAULT 0,
  commit_sha TEXT,
  served_generation BIGINT,
  served_epoch      BIGINT,
  served_at         BIGINT
) WITH (fillfactor = 70);

CREATE TABLE updates (
  id         TEXT COLLATE "C" PRIMARY KEY,
  project    TEXT COLLATE "C" NOT NULL REFERENCES projects,
  owner      TEXT COLLATE "C" NOT NULL,
  subdomain  TEXT NOT NULL,
  source     TEXT NOT NULL CHECK (source IN ('api', 'internal')),
  generation BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  attempts   BIGINT NOT NULL,
  state      TEXT NOT NULL CHECK (state IN ('queued', 'superseded', 'in_progress', 'success', 'failure')),
  due_at     BIGINT,
  worker     TEXT,
  epoch      BIGINT,
  token      TEXT,
  superseded_by TEXT COLLATE "C" REFERENCES updates DEFERRABLE INITIALLY DEFERRED,
  ended_at   BIGINT,
  release    TEXT,
  visible_at BIGINT,
  dead_letter BIGINT NOT NULL DEFAULT 0,
  summary    TEXT NOT NULL,
  commit_json TEXT,
  CHECK ((state IN ('queued', 'in_progress')) = (due_at IS NOT NULL)),
  CHECK ((state = 'in_progress') = (worker IS NOT NULL)),
  CHECK ((state IN ('in_progress', 'success')) = (epoch IS NOT NULL)),
  CHECK ((state = 'superseded') = (superseded_by IS NOT NULL)),
  CHECK ((state IN ('success', 'failure')) = (ended_at IS NOT NULL)),
  CHECK ((state = 'success') = (release IS NOT NULL)),
  CHECK (dead_letter = 0 OR state = 'failure')
);

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
  id   TEXT COLLATE "C" NOT NULL REFERENCES updates ON DELETE CASCADE,
  seq  BIGINT NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (id, seq)
);

CREATE TABLE idempotency_keys (
  owner      TEXT COLLATE "C" NOT NULL,
  digest     BYTEA NOT NULL,
  project    TEXT NOT NULL,
  id         TEXT NOT NULL,
  kept_until BIGINT NOT NULL,
  PRIMARY KEY (owner, digest)
);
CREATE INDEX idempotency_keys_kept ON idempotency_keys (kept_until);

CREATE TABLE spending (
  owner  TEXT COLLATE "C" NOT NULL,
  day    BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  cost   BIGINT NOT NULL,
  PRIMARY KEY (owner, day)
);
CREATE INDEX spending_day ON spending (day);

CREATE TABLE owners (
  owner    TEXT COLLATE "C" PRIMARY KEY,
  position BIGINT NOT NULL UNIQUE
) WITH (fillfactor = 50);

CREATE TABLE totals (state TEXT PRIMARY KEY, updates BIGINT NOT NULL) WITH (fillfactor = 10);
INSERT INTO totals VALUES ('queued', 0), ('superseded', 0), ('in_progress', 0), ('success', 0), ('failure', 0);

CREATE FUNCTION owner_added() RETURNS trigger LANGUAGE plpgsql SET search_path = waypost_queue AS $$
BEGIN
  INSERT INTO owners VALUES (NEW.owner, (SELECT coalesce(max(position), 0) + 1 FROM owners))
    ON CONFLICT (owner) DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER owners_added AFTER INSERT ON updates
  FOR EACH ROW WHEN (NEW.due_at IS NOT NULL) EXECUTE FUNCTION owner_added();

CREATE FUNCTION owner_removed() RETURNS trigger LANGUAGE plpgsql SET search_path = waypost_queue AS $$
BEGIN
  DELETE FROM owners WHERE owner = NEW.owner
    AND NOT EXISTS (SELECT 1 FROM updates WHERE owner = NEW.owner AND due_at IS NOT NULL);
  RETURN NULL;
END $$;
CREATE TRIGGER owners_removed AFTER UPDATE OF due_at ON updates
  FOR EACH ROW WHEN (OLD.due_at IS NOT NULL AND NEW.due_at IS NULL) EXECUTE FUNCTION owner_removed();

CREATE FUNCTION count_update() RETURNS trigger LANGUAGE plpgsql SET search_path = waypost_queue AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    UPDATE totals SET updates = updates - 1 WHERE state = OLD.state;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    UPDATE totals SET updates = updates + 1 WHERE state = NEW.state;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER updates_inserted AFTER INSERT OR DELETE ON updates
  FOR EACH ROW EXECUTE FUNCTION count_update();
CREATE TRIGGER updates_moved AFTER UPDATE OF state ON updates
  FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION count_update();

CREATE VIEW overview AS
  SELECT id, project, state, generation, attempts,
         to_timestamp(created_at / 1000.0) AS created,
         to_timestamp(due_at / 1000.0) AS due,
         to_timestamp(ended_at / 1000.0) AS ended,
         to_timestamp(visible_at / 1000.0) AS visible,
         worker, superseded_by, substr(release, 1, 12) AS release, dead_letter, summary
    FROM updates ORDER BY id DESC;
