-- The random token of the claim that holds an update, or whose end brought it to its state, schema 3.
-- An epoch may be used twice if a database loses its last transactions.
ALTER TABLE updates ADD COLUMN token TEXT;
