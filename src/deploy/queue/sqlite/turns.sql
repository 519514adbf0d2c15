-- Schema 3: owners take turns.
--
-- Every owner with updates that wait or run stands here once: at the end when the first of
-- them comes, and at the end again whenever one is claimed. Whoever stands first and has
-- something due is next, so nobody waits for more than one claim of each other owner.

CREATE TABLE owners (
  owner TEXT PRIMARY KEY,
  turn  INTEGER NOT NULL                  -- the lowest is next
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX owners_turn ON owners (turn);

CREATE INDEX updates_turn ON updates (owner, due_at, id) WHERE due_at IS NOT NULL;

INSERT INTO owners
  SELECT owner, row_number() OVER (ORDER BY min(due_at), owner)
    FROM updates WHERE due_at IS NOT NULL GROUP BY owner;

CREATE TRIGGER owners_come AFTER INSERT ON updates WHEN NEW.due_at IS NOT NULL BEGIN
  INSERT INTO owners VALUES (NEW.owner, (SELECT coalesce(max(turn), 0) + 1 FROM owners))
    ON CONFLICT (owner) DO NOTHING;
END;
CREATE TRIGGER owners_go AFTER UPDATE OF due_at ON updates
  WHEN OLD.due_at IS NOT NULL AND NEW.due_at IS NULL BEGIN
  DELETE FROM owners WHERE owner = NEW.owner
    AND NOT EXISTS (SELECT 1 FROM updates WHERE owner = NEW.owner AND due_at IS NOT NULL);
END;
