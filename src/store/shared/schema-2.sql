-- Raises the tables from schema 1 to schema 2. Programs of schema 1 go on: what they insert has the
-- defaults, and what has no mark is compared.

ALTER TABLE changes ADD COLUMN mark TEXT NOT NULL DEFAULT gen_random_uuid()::text;

ALTER TABLE edge_progress ADD COLUMN edges TEXT NOT NULL DEFAULT '[]';

CREATE TABLE document_marks (
  revision BIGINT PRIMARY KEY,
  mark     TEXT NOT NULL DEFAULT gen_random_uuid()::text,
  at       BIGINT NOT NULL
);
