-- The whole schema. It is executed once, in one transaction, when user_version is 0.
-- An older database is brought here by upgrade2.sql and those after it.
-- Times are nanoseconds since 1970 (UTC); 0 or NULL is "not yet".

CREATE TABLE meta (
  k TEXT PRIMARY KEY,
  v TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE teams (
  id      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL,
  created INTEGER NOT NULL
);

CREATE TABLE users (
  id      INTEGER PRIMARY KEY,
  name    TEXT NOT NULL,
  email   TEXT NOT NULL DEFAULT '',
  created INTEGER NOT NULL
);

CREATE TABLE oauth_apps (
  id            INTEGER PRIMARY KEY,
  name          TEXT NOT NULL UNIQUE,
  client_id     TEXT NOT NULL UNIQUE,
  public        INTEGER NOT NULL,           -- 1: no client secret
  secret_hash   BLOB,                       -- sha256; NULL for a public client
  redirect_uris TEXT NOT NULL,              -- space-separated
  created       INTEGER NOT NULL
);

CREATE TABLE tokens (
  hash    BLOB PRIMARY KEY,                 -- sha256 of the token
  run     TEXT NOT NULL,
  team    INTEGER NOT NULL,
  user    INTEGER NOT NULL,
  scopes  TEXT NOT NULL,                    -- space-separated
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tokens_run ON tokens (run);

CREATE TABLE flags (
  team    INTEGER NOT NULL,
  key     TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  payload TEXT NOT NULL DEFAULT '',         -- JSON or empty
  PRIMARY KEY (team, key)
) WITHOUT ROWID;

CREATE TABLE environments (
  id              INTEGER PRIMARY KEY,
  team            INTEGER NOT NULL,
  name            TEXT NOT NULL,
  created_by      INTEGER NOT NULL,
  private         INTEGER NOT NULL DEFAULT 0,
  network         TEXT NOT NULL,            -- full, trusted, custom
  domains         TEXT NOT NULL,            -- JSON list of rules
  include_default INTEGER NOT NULL DEFAULT 0,
  image           TEXT NOT NULL DEFAULT '',
  repos           TEXT NOT NULL,            -- JSON list of org/repo; empty: any
  env             TEXT NOT NULL,            -- JSON object of plain variables
  sealed          TEXT NOT NULL,            -- JSON object from name to a sealed value
  created         INTEGER NOT NULL,
  updated         INTEGER NOT NULL,
  UNIQUE (team, name)
);

CREATE TABLE tasks (
  id      TEXT PRIMARY KEY,
  team    INTEGER NOT NULL,
  number  INTEGER NOT NULL,                 -- per team, from 0
  title   TEXT NOT NULL,
  origin  TEXT NOT NULL,
  created INTEGER NOT NULL,
  UNIQUE (team, number)
) WITHOUT ROWID;

CREATE TABLE runs (
  n        INTEGER PRIMARY KEY,             -- order of creation
  id       TEXT NOT NULL UNIQUE,
  task     TEXT NOT NULL,
  state    TEXT NOT NULL,
  owner    TEXT NOT NULL DEFAULT '',
  sandbox  TEXT NOT NULL DEFAULT '',
  version  TEXT NOT NULL,                   -- of the program that made the run
  spec     BLOB NOT NULL,                   -- task.Spec as JSON
  result   BLOB,                            -- task.Result as JSON
  created  INTEGER NOT NULL,
  started  INTEGER NOT NULL DEFAULT 0,
  finished INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_state ON runs (state);
CREATE INDEX runs_task ON runs (task);

CREATE TABLE steps (
  run        TEXT NOT NULL,
  name       TEXT NOT NULL,
  input_hash TEXT NOT NULL,
  output     BLOB,
  done       INTEGER NOT NULL,
  PRIMARY KEY (run, name, input_hash)
) WITHOUT ROWID;

CREATE TABLE inputs (
  n     INTEGER PRIMARY KEY AUTOINCREMENT,
  run   TEXT NOT NULL,
  id    TEXT NOT NULL,
  body  BLOB NOT NULL,                      -- task.Input as JSON
  at    INTEGER NOT NULL,
  taken INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX inputs_run ON inputs (run, n);

CREATE TABLE secrets (
  run    TEXT NOT NULL,
  name   TEXT NOT NULL,
  sealed BLOB NOT NULL,
  PRIMARY KEY (run, name)
) WITHOUT ROWID;

-- What a run has used of models, through the gateway. Since version 2.
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
