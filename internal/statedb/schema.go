package statedb

import (
	"context"
	"crypto/sha256"
	_ "embed" // for the schema
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/statedb/dberr"
)

// schemaVersion is the version of schema.sql, kept in SQLite's user_version.
const schemaVersion = 1

//go:embed schema.sql
var schema string

// create makes the schema of an empty database. Any number of processes may try at
// once: one does it, the others find it done.
func (db *DB) create(ctx context.Context) error {
	unlock, err := lock(ctx, db.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	if v, err := db.schemaVersion(ctx); err != nil || v == schemaVersion {
		return err
	}
	// Under the lock because SQLite does not wait for others when it changes the
	// journal mode, it fails.
	if _, err := db.ExecContext(ctx, `PRAGMA journal_mode = WAL`); err != nil {
		return dberr.Wrap("statedb.Open", "create state.db", err)
	}
	return dberr.Wrap("statedb.Open", "create state.db", db.seed(ctx))
}

// seed writes the schema and the first rows in one transaction, user_version
// included.
func (db *DB) seed(ctx context.Context) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // a no-op once committed
	if _, err := tx.ExecContext(ctx, schema+`; PRAGMA user_version = 1`); err != nil {
		return err
	}
	now := time.Now().UnixNano()
	_, err = tx.ExecContext(ctx, `
		INSERT INTO meta (k, v) VALUES ('version', ?), ('id', ?);
		INSERT INTO teams (id, name, created) VALUES (1, 'Default', ?);
		INSERT INTO users (id, name, created) VALUES (1, 'Default', ?)`,
		build.Get().Version, nameOf(db.Dir), now, now)
	if err != nil {
		return err
	}
	return tx.Commit()
}

// nameOf is the id of a state directory: of its place and the machine. A directory
// that was lost or damaged has the same id again, so that the sandboxes it has left
// can be found and removed; one that is moved keeps its own in the database.
func nameOf(dir string) string {
	if place, err := filepath.EvalSymlinks(dir); err == nil {
		dir = place
	}
	host, _ := os.Hostname() // unknown is a name too
	sum := sha256.Sum256([]byte(host + "\x00" + dir))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
