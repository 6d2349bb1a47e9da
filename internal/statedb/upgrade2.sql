-- From version 1 to 2: the table of what runs have used of models, as in schema.sql.
CREATE TABLE usage (
  run         TEXT NOT NULL,
  model       TEXT NOT NULL,
  input       INTEGER NOT NULL,             -- tokens, without those of the cache
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  thought     INTEGER NOT NULL,             -- part of output
  requests    INTEGER NOT NULL,
  unpriced    INTEGER NOT NULL,             -- requests that cost_nanos leaves out
  cost_nanos  INTEGER NOT NULL,             -- 1e-9 US dollars: whole for every token
  PRIMARY KEY (run, model)
) WITHOUT ROWID;
