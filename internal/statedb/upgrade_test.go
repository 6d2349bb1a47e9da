package statedb

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"path/filepath"
	"reflect"
	"sync"
	"testing"

	"github.com/Insights/insightscli/internal/build"
)

// schema1 is the schema as version 1 of it was released.
//
//go:embed testdata/schema1.sql
var schema1 string

// older makes a state directory as a program with schema 1 left it, with one run.
func older(t *testing.T) (dir, id string) {
	t.Helper()
	dir = t.TempDir()
	pool, err := connect(dir)
	if err != nil {
		t.Fatal(err)
	}
	id = nameOf(dir)
	_, err = pool.ExecContext(t.Context(), `PRAGMA journal_mode = WAL; BEGIN;`+schema1+`; PRAGMA user_version = 1;
		INSERT INTO meta (k, v) VALUES ('version', '0.1.0'), ('id', '`+id+`');
		INSERT INTO runs (id, task, state, version, spec, created) VALUES ('r', 't', 'queued', '0.1.0', '{}', 1); COMMIT`)
	if err := errors.Join(err, pool.Close()); err != nil {
		t.Fatal(err)
	}
	return dir, id
}

// tables lists everything that the schema has, as SQLite remembers it.
func tables(t *testing.T, db *sql.DB) map[string]string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]string{}
	for rows.Next() {
		var name, body string
		if err := rows.Scan(&name, &body); err != nil {
			t.Fatal(err)
		}
		all[name] = body
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestOlderSchemaIsUpgraded(t *testing.T) {
	dir, id := older(t)
	db := mustOpen(t, dir)
	if db.ID != id || db.Notice != "" {
		t.Errorf("ID %q, want %q; Notice %q", db.ID, id, db.Notice)
	}
	if got := scan[string](t, db, `SELECT id FROM runs`); got != "r" {
		t.Errorf("the run is %q now", got)
	}
	if got := scan[string](t, db, `SELECT v FROM meta WHERE k = 'version'`); got != build.Get().Version {
		t.Errorf("an older program would name version %q", got)
	}
	fresh := mustOpen(t, t.TempDir())
	if got, want := tables(t, db.DB), tables(t, fresh.DB); !reflect.DeepEqual(got, want) {
		t.Errorf("an upgraded schema differs from a new one:\n%v\n%v", got, want)
	}
	if got := scan[int](t, mustOpen(t, dir), `PRAGMA user_version`); got != schemaVersion {
		t.Errorf("version %d", got)
	}
}

func TestManyUpgradeAtOnce(t *testing.T) {
	dir, id := older(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if b, err := child(t, dir).CombinedOutput(); err != nil || string(b) != id+"\n" {
				t.Errorf("%v: %s", err, b)
			}
		})
	}
	wg.Wait()
}

// A process that is killed between the steps has changed nothing.
func TestUpgradeIsOneTransaction(t *testing.T) {
	dir, _ := older(t)
	pool, err := connect(dir)
	if err != nil {
		t.Fatal(err)
	}
	db := &DB{DB: pool, Dir: dir}
	if _, err := pool.ExecContext(t.Context(), `DROP TABLE meta; CREATE TABLE meta (x TEXT)`); err != nil {
		t.Fatal(err)
	}
	if err := db.upgrade(t.Context(), 1); err == nil {
		t.Error("the second step did not fail")
	}
	if got := scan[int](t, db, `PRAGMA user_version`); got != 1 {
		t.Errorf("version %d", got)
	}
	if _, ok := tables(t, pool)["usage"]; ok {
		t.Error("the first step stayed")
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOlderDatabaseThatIsDamagedIsKeptAside(t *testing.T) {
	dir, _ := older(t)
	damage(t, dir, "first page")
	db, err := Open(context.WithoutCancel(t.Context()), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	kept, _ := filepath.Glob(filepath.Join(dir, fileName+".corrupt-*"))
	if len(kept) != 1 || db.Notice == "" {
		t.Errorf("kept %q, Notice %q", kept, db.Notice)
	}
}
