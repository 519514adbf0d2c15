-- The shared store, schema 2. Releases are objects in the object store; everything
-- else is here. Times are milliseconds since 1970 by the clock of this server. Digests and ids of
-- releases are 64 hexadecimal digits.

CREATE SCHEMA waypost_store;
SET LOCAL search_path = waypost_store;

-- One row: whose store this is, and which programs can use it.
CREATE TABLE identity (
  one        BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
  service    TEXT NOT NULL,             -- `service.domain` of the configuration
  version    BIGINT NOT NULL,           -- of the schema
  compatible BIGINT NOT NULL,           -- the lowest version whose programs may use the schema
  store      TEXT NOT NULL,             -- a random text, also in the object `waypost-store`
  created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- One row: the number of the last change. A transaction that changes what readers see takes its
-- number last, right before its commit, and holds the row until then. So numbers become visible in
-- order, and a reader that has seen a number has seen all before it.
CREATE TABLE revision (one BOOLEAN PRIMARY KEY DEFAULT true CHECK (one), n BIGINT NOT NULL)
  WITH (fillfactor = 10);
INSERT INTO revision (n) VALUES (0);

-- What has changed: the pointer or the site record of a project. Kept for a day, and the last one
-- for ever. A reader keeps the mark of the change that it has read last. If the number has another
-- mark, an earlier state of the database was restored, and the reader compares everything.
CREATE TABLE changes (
  revision BIGINT PRIMARY KEY,
  project  TEXT COLLATE "C" NOT NULL,
  at       BIGINT NOT NULL,
  mark     TEXT NOT NULL DEFAULT gen_random_uuid()::text
);

-- The current release of each project and those before, as JSON.
CREATE TABLE pointers (
  project TEXT COLLATE "C" PRIMARY KEY,
  pointer TEXT NOT NULL
) WITH (fillfactor = 70);

-- The same releases, one a row.
CREATE TABLE named (
  project TEXT COLLATE "C" NOT NULL REFERENCES pointers ON DELETE CASCADE,
  release TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (project, release)
);
CREATE INDEX named_release ON named (release);

-- The releases that were stored whole. The digest of an inventory is the id of its release.
CREATE TABLE releases (
  release TEXT COLLATE "C" PRIMARY KEY,
  kept_at BIGINT NOT NULL               -- when it was last put or promoted
);

-- The objects in the object store. A row is written after its object.
CREATE TABLE objects (
  digest  TEXT COLLATE "C" PRIMARY KEY,
  object  TEXT NOT NULL,                -- its name, which no other object ever had
  length  BIGINT NOT NULL,
  kept_at BIGINT NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX objects_kept ON objects (kept_at);

CREATE TABLE sites (
  project TEXT COLLATE "C" PRIMARY KEY,
  record  TEXT NOT NULL                 -- the site record as JSON
);

CREATE TABLE hosts (
  host  TEXT COLLATE "C" PRIMARY KEY,
  claim TEXT NOT NULL                   -- which record has the host, as JSON
);

CREATE TABLE audit (
  id      BIGINT PRIMARY KEY,
  project TEXT COLLATE "C" NOT NULL,
  owner   TEXT COLLATE "C" NOT NULL,
  entry   TEXT NOT NULL
);
CREATE INDEX audit_project ON audit (project, id);
CREATE INDEX audit_owner ON audit (owner, id);

CREATE TABLE domain_checks (
  project TEXT COLLATE "C" NOT NULL,
  host    TEXT COLLATE "C" NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (project, host)
);

CREATE TABLE domain_requests (
  project TEXT COLLATE "C" NOT NULL,
  host    TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (project, host)
);

-- What was counted for the owner of a site on a day (UTC, `2027-01-31`), as JSON.
CREATE TABLE numbers (
  project TEXT COLLATE "C" NOT NULL,
  day     TEXT COLLATE "C" NOT NULL,
  content BYTEA NOT NULL,
  PRIMARY KEY (project, day)
);
CREATE INDEX numbers_day ON numbers (day);

-- Secrets that all nodes share: `verification-key`.
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BYTEA NOT NULL);

-- One row: the number of the last change of a document. It is taken and held as `revision` is.
-- Rows of removed documents with numbers up to `forgotten` are not kept any more.
CREATE TABLE documents_revision (
  one       BOOLEAN PRIMARY KEY DEFAULT true CHECK (one),
  n         BIGINT NOT NULL,
  forgotten BIGINT NOT NULL
) WITH (fillfactor = 10);
INSERT INTO documents_revision (n, forgotten) VALUES (0, 0);

-- Certificates, their orders and challenges, admin keys, tokens of edges, keys of session tickets.
-- Private keys in them are encrypted with the key file of the gateways; of admin keys and tokens
-- there are digests.
CREATE TABLE documents (
  kind       TEXT COLLATE "C" NOT NULL,
  key        TEXT COLLATE "C" NOT NULL,
  content    BYTEA,                     -- NULL: it was removed; kept for a day
  revision   BIGINT NOT NULL,           -- of its last change
  changed_at BIGINT NOT NULL,
  PRIMARY KEY (kind, key)
) WITH (fillfactor = 80);
CREATE INDEX documents_revision_of ON documents (revision);

-- The marks of the changes of documents, as those of `changes`. Kept for a day, and the last one
-- for ever.
CREATE TABLE document_marks (
  revision BIGINT PRIMARY KEY,
  mark     TEXT NOT NULL DEFAULT gen_random_uuid()::text,
  at       BIGINT NOT NULL
);

-- The last use of each admin key. It is a table of its own: readers of keys need not copy a use.
CREATE TABLE key_uses (
  key     TEXT COLLATE "C" PRIMARY KEY,
  used_at BIGINT NOT NULL
) WITH (fillfactor = 50);

-- The gateways that run, and up to which change each has the documents.
CREATE TABLE readers (
  name     TEXT COLLATE "C" PRIMARY KEY,
  revision BIGINT NOT NULL,
  ends_at  BIGINT NOT NULL              -- from when on it counts as gone
) WITH (fillfactor = 50);

-- The gateways that edges follow: up to which revision all edges of each have the releases, but for
-- the projects in `waiting` (JSON, with the edge that each waits for).
CREATE TABLE edge_progress (
  gateway  TEXT COLLATE "C" PRIMARY KEY,
  revision BIGINT NOT NULL,
  waiting  TEXT NOT NULL,
  ends_at  BIGINT NOT NULL,             -- from when on the gateway counts as gone
  edges    TEXT NOT NULL DEFAULT '[]'   -- the edges that follow it, as JSON
) WITH (fillfactor = 50);

-- Locks with an end, by the clock of this server. The epoch grows with each holder.
CREATE TABLE leases (
  name    TEXT COLLATE "C" PRIMARY KEY,
  holder  TEXT NOT NULL,
  epoch   BIGINT NOT NULL,
  ends_at BIGINT NOT NULL
) WITH (fillfactor = 50);
