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
const schemaVersion = 3

//go:embed schema.sql
var schema string

//go:embed upgrade2.sql
var upgrade2 string

//go:embed upgrade3.sql
var upgrade3 string

// migrate brings an empty or an older database to this schema. Any number of processes
// may try at once: one does it, the others find it done.
func (db *DB) migrate(ctx context.Context) error {
	unlock, err := lock(ctx, db.Dir)
	if err != nil {
		return err
	}
	defer unlock()
	v, err := db.schemaVersion(ctx)
	switch {
	case err != nil || v == schemaVersion:
		return err
	case v > schemaVersion:
		return db.newer(ctx, v)
	case v > 0:
		return dberr.Wrap("statedb.Open", "upgrade state.db", db.upgrade(ctx, v))
	}
	return db.create(ctx)
}

// create makes the schema of an empty database. The caller holds the lock.
func (db *DB) create(ctx context.Context) error {
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
	if _, err := tx.ExecContext(ctx, schema+setVersion()); err != nil {
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

// upgrade brings a database of version v to this one, in one transaction. The caller
// holds the lock of the directory. Programs of the older version that have it open go
// on: what they know stays as it is.
func (db *DB) upgrade(ctx context.Context, v int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // a no-op once committed
	for _, step := range []string{2: upgrade2, 3: upgrade3}[v+1:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return err
		}
	}
	// The version is that of the last program to change the schema: an older one names it.
	_, err = tx.ExecContext(ctx, `UPDATE meta SET v = ? WHERE k = 'version'`, build.Get().Version)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, setVersion()); err != nil {
		return err
	}
	return tx.Commit()
}

func setVersion() string { return fmt.Sprintf(`; PRAGMA user_version = %d`, schemaVersion) }

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
