package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func opened(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func TestLocksExcludeEachOther(t *testing.T) {
	tests := []struct {
		held, asked Mode
		want        bool
	}{{Exclusive, Exclusive, false}, {Exclusive, Shared, false}, {Shared, Exclusive, false}, {Shared, Shared, true}}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "lock")
		a, b := opened(t, path), opened(t, path)
		if ok, err := Try(a, tt.held); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if ok, err := Try(b, tt.asked); ok != tt.want || err != nil {
			t.Errorf("%v while %v is held: %t, %v", tt.asked, tt.held, ok, err)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if ok, err := Try(b, tt.asked); !ok || err != nil {
			t.Errorf("%v after it was closed: %t, %v", tt.asked, ok, err)
		}
	}
}

func TestPathsAreLockedUntilTheirFileIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := LockPath(t.Context(), path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := TryPath(path, Exclusive); f != nil || err != nil {
		t.Errorf("it was locked twice: %v, %v", f, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err := LockPath(ctx, path, Exclusive); f != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for ever: %v, %v", f, err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := TryPath(path, Exclusive)
	if f == nil || err != nil {
		t.Fatalf("after it was closed: %v, %v", f, err)
	}
	_ = f.Close()
	if _, err := TryPath(filepath.Join(path, "below"), Exclusive); err == nil {
		t.Error("a lock below a file")
	}
}

func TestLockedFilesCanBeReadAndWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f := opened(t, path)
	if err := Lock(t.Context(), f, Exclusive); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("hello"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
}

func TestLockWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	a, b := opened(t, path), opened(t, path)
	if err := Lock(t.Context(), a, Exclusive); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := Lock(ctx, b, Exclusive); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Lock with a held lock: %v", err)
	}
	time.AfterFunc(5*time.Millisecond, func() { _ = a.Close() })
	if err := Lock(t.Context(), b, Exclusive); err != nil {
		t.Errorf("Lock after it was freed: %v", err)
	}
	if _, err := Try(a, Shared); err == nil {
		t.Error("a closed file was locked")
	}
}
