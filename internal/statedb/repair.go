package statedb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/Insights/insightscli/internal/statedb/dberr"
)

// setAside renames a damaged database, so that a new one can be made, and returns
// the notice that says so. When another process has done it meanwhile the notice is
// empty.
func setAside(ctx context.Context, dir string) (notice string, err error) {
	unlock, err := lock(ctx, dir)
	if err != nil {
		return "", err
	}
	defer unlock()
	if !stillDamaged(ctx, dir) {
		return "", nil
	}
	path := filepath.Join(dir, fileName)
	kept := path + ".corrupt-" + time.Now().UTC().Format("20060102T150405.000")
	// The database first: a stale -wal beside an empty database is discarded by
	// SQLite, a damaged database without its -wal would lose more.
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+suffix, kept+suffix); err != nil && !os.IsNotExist(err) {
			return "", fileError("set aside", path+suffix, err)
		}
	}
	return fmt.Sprintf("state.db was damaged: it is kept as %s, and a new one was made; earlier runs are not listed any more, their logs are still under %s",
		kept, filepath.Join(dir, "logs")), nil
}

func stillDamaged(ctx context.Context, dir string) bool {
	pool, err := connect(dir)
	if err != nil {
		return false
	}
	defer func() { _ = pool.Close() }() // what it says does not matter any more
	db := &DB{DB: pool, Dir: dir}
	v, err := db.schemaVersion(ctx)
	if err == nil && v > 0 && v < schemaVersion {
		err = db.upgrade(ctx, v) // the lock is held already
	}
	if err == nil && v > 0 && v <= schemaVersion {
		err = db.ready(ctx)
	}
	return dberr.Damaged(err)
}
