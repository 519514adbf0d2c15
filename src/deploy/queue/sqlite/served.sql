-- Schema 2: since when a gateway serves what an update has published.
--
-- `updates.epoch` stays when an update succeeds: the claim that published its release.

-- The place of the promotion that is served among the project's, and since when.
ALTER TABLE projects ADD COLUMN served_generation INTEGER;
ALTER TABLE projects ADD COLUMN served_epoch INTEGER;
ALTER TABLE projects ADD COLUMN served_at INTEGER;

CREATE INDEX updates_unseen ON updates (project) WHERE state = 'success' AND visible_at IS NULL;

DROP VIEW overview;
CREATE VIEW overview AS
  SELECT id, project, state, generation, attempts,
         datetime(created_at / 1000, 'unixepoch') AS created,
         datetime(due_at / 1000, 'unixepoch') AS due,
         datetime(ended_at / 1000, 'unixepoch') AS ended,
         datetime(visible_at / 1000, 'unixepoch') AS visible,
         worker, leader, substr(release, 1, 12) AS release, dead, summary
    FROM updates ORDER BY id DESC;
