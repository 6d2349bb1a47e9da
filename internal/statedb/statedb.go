// Package statedb opens the state directory and its database, state.db: the tables
// of teams, tokens, tasks, runs and steps that packages journal and platform read
// and write. It owns the schema and knows nothing of what the rows mean.
//
// The database is SQLite through modernc.org/sqlite (pure Go, so that the program
// needs no C compiler and crosses to every platform) in WAL mode with
// synchronous=FULL: a transaction that was committed survives a power cut, and one
// that was not has left nothing behind. Each process has one connection, so its
// writers queue in the process and not at the file.
//
// Opening a directory that is in order costs three statements and writes nothing.
// Creating one, bringing one of an older schema up to date, and setting a damaged
// database aside happen under the lock of the file state.lock, which nothing else takes.
package statedb

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/filelock"
	"github.com/Insights/insightscli/internal/statedb/dberr"
)

// Names in the state directory.
const (
	fileName = "state.db"
	lockName = "state.lock"
)

// busyTimeout is how long a statement waits for another process's transaction; ours
// last milliseconds.
const busyTimeout = 10 * time.Second

// DB is an open state directory. Close it.
type DB struct {
	*sql.DB
	Dir string // absolute
	// ID names this state directory: sandboxes carry it, so that two directories on
	// one machine leave each other's alone.
	ID string
	// Notice is one line for people about something that opening had to repair; it
	// is empty nearly always.
	Notice string
}

// Open opens the state directory, making it (0700) and the database (0600) when
// they are missing. A new database has team 1 and user 1. A damaged database is
// kept aside, with a Notice. What cannot be used is refused with a hint: a network
// file system, a directory that is read-only or another user's, a newer schema.
func Open(ctx context.Context, dir string) (*DB, error) {
	dir, err := prepareDir(dir)
	if err != nil {
		return nil, err
	}
	db, err := open(ctx, dir)
	if !dberr.Damaged(err) {
		return db, err
	}
	notice, err := setAside(ctx, dir)
	if err != nil {
		return nil, err
	}
	if db, err = open(ctx, dir); err != nil {
		return nil, err
	}
	db.Notice = notice
	return db, nil
}

// open opens the database of a directory that is in order.
func open(ctx context.Context, dir string) (*DB, error) {
	pool, err := connect(dir)
	if err != nil {
		return nil, err
	}
	db := &DB{DB: pool, Dir: dir}
	if err := db.ready(ctx); err != nil {
		_ = pool.Close() // the first error says more
		return nil, err
	}
	return db, nil
}

func connect(dir string) (*sql.DB, error) {
	path := filepath.Join(dir, fileName)
	if err := createFile(path); err != nil {
		return nil, err
	}
	// As durable as fsync for a database file, and half its time on ext4.
	_, _ = sqlite.Fdatasync(true) // platforms without it keep their own way
	c, err := sqlite.NewConnector(dsn(path))
	if err != nil {
		return nil, dberr.Wrap("statedb.Open", "open "+path, err)
	}
	pool := sql.OpenDB(c)
	pool.SetMaxOpenConns(1)
	return pool, nil
}

// dsn escapes path, which may hold any byte, for SQLite's URI parser.
func dsn(path string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	q := url.Values{
		"_txlock":       {"immediate"}, // a transaction that will write never has to upgrade its lock
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_pragma":       {"synchronous(FULL)", "secure_delete(ON)"},
	}
	return "file:" + (&url.URL{Path: slashed}).EscapedPath() + "?" + q.Encode()
}

// ready brings the schema up to date if it is not, and reads the directory's id.
func (db *DB) ready(ctx context.Context) error {
	v, err := db.schemaVersion(ctx)
	if err != nil {
		return err
	}
	if v > schemaVersion {
		return db.newer(ctx, v)
	}
	if v < schemaVersion {
		if err := db.migrate(ctx); err != nil {
			return err
		}
	}
	err = db.QueryRowContext(ctx, `SELECT v FROM meta WHERE k = 'id'`).Scan(&db.ID)
	return dberr.Wrap("statedb.Open", "read state.db", err)
}

func (db *DB) schemaVersion(ctx context.Context) (int, error) {
	var v int
	err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&v)
	return v, dberr.Wrap("statedb.Open", "read state.db", err)
}

// newer refuses a database that a later version of the program has written.
func (db *DB) newer(ctx context.Context, v int) error {
	by := "a newer version"
	var version string
	if db.QueryRowContext(ctx, `SELECT v FROM meta WHERE k = 'version'`).Scan(&version) == nil && version != "" {
		by = "insightscli " + version
	}
	return errs.New("statedb.Open", errs.Config,
		"use "+by+" or later, or set INSIGHTSCLI_STATE_DIR to another directory",
		"%s was written by %s (schema %d, this program reads up to %d)",
		filepath.Join(db.Dir, fileName), by, v, schemaVersion)
}

// lock takes the lock of the directory; the returned function gives it back.
func lock(ctx context.Context, dir string) (unlock func(), err error) {
	path := filepath.Join(dir, lockName)
	f, err := filelock.LockPath(ctx, path, filelock.Exclusive)
	if err != nil {
		return nil, fileError("lock", path, err)
	}
	return func() { _ = f.Close() }, nil // which drops the lock
}
