-- From version 2 to 3: environments as in schema.sql. No version before had a command that
-- made one, so there is nothing to take over.
DROP TABLE environments;
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
