-- What language models cost, schema 2. One row for each owner and day.
CREATE TABLE spending (
  owner  TEXT NOT NULL,
  day    INTEGER NOT NULL,                -- days since 1970, UTC
  tokens INTEGER NOT NULL,                -- spent, and reserved by running updates
  cost   INTEGER NOT NULL,                -- the same in millionths of the configured currency
  PRIMARY KEY (owner, day)
) STRICT, WITHOUT ROWID;
CREATE INDEX spending_day ON spending (day);
