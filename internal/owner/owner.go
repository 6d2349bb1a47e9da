// Package owner tells which process owns a run, and lets others talk to it.
//
// A process that wants to own runs acquires an [Owner]: a random id and a file
// owners/{id}.lock on which it holds an exclusive flock for as long as it lives. The
// kernel drops the lock on any death, so a free lock means a dead owner and nothing
// has to time out; a stopped process (SIGSTOP) still holds it and is alive. What the
// file says (host, boot id, process id) is for people, with one exception: an owner
// of another machine is never taken for dead, because a lock of ours says nothing
// about it.
//
// Beside the lock lies a control socket, owners/{id}.sock ([Owner.Serve], [Dial]):
// one JSON line asks for an operation, one line accepts or refuses it, and what
// follows belongs to the operation.
package owner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/build"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/filelock"
	"github.com/Insights/insightscli/internal/task"
)

// Names in the state directory.
const (
	subDir     = "owners"
	lockSuffix = ".lock"
	sockSuffix = ".sock"
)

// settle is how long a lock file may be empty and unlocked before it counts as dead:
// its owner makes it first and locks it then.
const settle = 10 * time.Second

// Info is what an owner says of itself. Only Host, Boot and Machine decide anything.
type Info struct {
	ID      string    `json:"id"`
	Host    string    `json:"host"`              // host name
	Boot    string    `json:"boot_id,omitempty"` // of the running kernel
	Machine string    `json:"machine_id,omitempty"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"` // the process
	Version string    `json:"version"` // of the program
}

// Label is the value of the sandbox label that names an owner to people.
func (i Info) Label() string {
	return fmt.Sprintf("%s/%s/%d/%d", i.Host, i.Boot, i.PID, i.Started.Unix())
}

// Owner is this process as an owner of runs. It must be released.
type Owner struct {
	Info
	dir  string
	lock *os.File
}

// Acquire makes this process an owner in the state directory dir, under a fresh id.
func Acquire(ctx context.Context, dir string) (*Owner, error) {
	if err := os.MkdirAll(filepath.Join(dir, subDir), 0o700); err != nil {
		return nil, fileError("Acquire", "become an owner", err)
	}
	for {
		o, err := acquire(ctx, dir)
		if err != nil {
			return nil, fileError("Acquire", "become an owner", err)
		}
		if o != nil {
			return o, nil
		}
		// A sweep took the file away before it was locked: ids cost nothing.
	}
}

// acquire tries one id. It returns nothing when the file went away meanwhile.
func acquire(ctx context.Context, dir string) (*Owner, error) {
	info := self()
	info.ID = string(task.NewID())
	path := lockPath(dir, info.ID)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = filelock.Lock(ctx, f, filelock.Exclusive)
	if err == nil {
		err = introduce(f, path, info)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, f.Close()
	case err != nil:
		return nil, errors.Join(err, f.Close(), removeIfThere(path))
	}
	return &Owner{Info: info, dir: dir, lock: f}, nil
}

// introduce writes what the locked file says, and checks that the file is still the
// one that has the name.
func introduce(f *os.File, path string, info Info) error {
	held, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !os.SameFile(held, named) {
		return fs.ErrNotExist
	}
	body, err := json.Marshal(info)
	if err != nil {
		return err
	}
	_, err = f.Write(append(body, '\n'))
	return err
}

// Release gives the ownership up and removes the files. Runs that this process
// still owns are then nobody's.
func (o *Owner) Release() error {
	// While the lock is held: once it is free another process may sweep.
	errSock := removeIfThere(sockPath(o.dir, o.ID))
	errLock := removeIfThere(lockPath(o.dir, o.ID))
	errClose := o.lock.Close()
	if errLock != nil { // Windows does not remove an open file
		errLock = removeIfThere(lockPath(o.dir, o.ID))
	}
	if err := errors.Join(errSock, errLock, errClose); err != nil {
		return fileError("Release", "give up ownership", err)
	}
	return nil
}

// State is what is known of an owner's life.
type State string

// The states of an owner.
const (
	StateAlive   State = "alive"
	StateDead    State = "dead"
	StateForeign State = "foreign" // of another machine: left alone
)

// Status is one owner of a state directory.
type Status struct {
	Info
	State State
}

// Alive reports whether the owner of that id may still be at work: its process lives,
// or it belongs to another machine, where nobody here can tell. An id without a file
// is dead.
func Alive(dir, id string) (bool, error) {
	st, err := Lookup(dir, id)
	return st.State != StateDead, err
}

// Lookup returns what is known of one owner.
func Lookup(dir, id string) (Status, error) {
	st := Status{Info: Info{ID: id}, State: StateDead}
	if !task.ID(id).Valid() {
		return st, nil // no path is made of it
	}
	st, _, err := probe(dir, id, nil)
	if err != nil {
		// What cannot be told must not be taken for dead.
		return Status{Info: st.Info, State: StateAlive}, fileError("Lookup", "look at an owner", err)
	}
	return st, nil
}

// List returns all owners that have a file in the state directory.
func List(dir string) ([]Status, error) {
	ids, err := ids(dir)
	if err != nil {
		return nil, err
	}
	all := make([]Status, 0, len(ids))
	for _, id := range ids {
		st, _ := Lookup(dir, id) // one that cannot be looked at is listed as alive
		all = append(all, st)
	}
	return all, nil
}

// Sweep removes the files of owners that are dead and for which done reports true:
// that no run names them any more. It returns how many it removed.
func Sweep(dir string, done func(id string) bool) (int, error) {
	ids, err := ids(dir)
	if err != nil {
		return 0, err
	}
	n := 0
	var first error
	for _, id := range ids {
		_, removed, err := probe(dir, id, done)
		switch {
		case err != nil && first == nil:
			first = fileError("Sweep", "remove a dead owner", err)
		case err == nil && removed:
			n++
		}
	}
	return n, first
}

// probe looks whether an owner's lock is free, and if remove agrees takes the files
// away while it holds the lock itself. It takes it shared, so that two who look at
// once do not take each other for the owner.
func probe(dir, id string, remove func(string) bool) (st Status, removed bool, err error) {
	path := lockPath(dir, id)
	st = Status{Info: Info{ID: id}, State: StateDead}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return st, false, nil
	}
	if err != nil {
		return st, false, err
	}
	defer func() { _ = f.Close() }() // nothing is written
	free, err := filelock.Try(f, filelock.Shared)
	if err != nil {
		return st, false, err
	}
	info, ok := read(f, id)
	st.Info = info
	switch {
	case !free:
		st.State = StateAlive
	case ok && !sameMachine(info, self()):
		st.State = StateForeign
	case !ok && fresh(f):
		st.State = StateAlive // on its way
	case remove != nil && remove(id):
		return st, true, errors.Join(removeIfThere(sockPath(dir, id)), removeIfThere(path))
	}
	return st, false, nil
}

func fresh(f *os.File) bool {
	info, err := f.Stat()
	return err != nil || time.Since(info.ModTime()) < settle
}

// read returns what a lock file says, and whether it says anything.
func read(f *os.File, id string) (Info, bool) {
	var info Info
	dec := json.NewDecoder(io.NewSectionReader(f, 0, maxLine))
	if dec.Decode(&info) != nil || info.ID != id {
		return Info{ID: id}, false
	}
	return info, true
}

// sameMachine reports whether a lock of one of the two can be seen by the other. A
// boot id names a running kernel, containers included; after a reboot the machine
// is known by its id or its name.
func sameMachine(a, b Info) bool {
	return a.Boot != "" && a.Boot == b.Boot ||
		a.Machine != "" && a.Machine == b.Machine ||
		a.Host != "" && a.Host == b.Host
}

// self describes this process.
func self() Info {
	host, _ := os.Hostname() // unknown is a name too
	return Info{
		Host: host, Boot: bootID(), Machine: machineID(),
		PID: os.Getpid(), Started: processStart(), Version: build.Get().Version,
	}
}

// ids returns the ids that have a lock file.
func ids(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, subDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fileError("List", "list owners", err)
	}
	var found []string
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), lockSuffix)
		if ok && task.ID(id).Valid() {
			found = append(found, id)
		}
	}
	return found, nil
}

func lockPath(dir, id string) string { return filepath.Join(dir, subDir, id+lockSuffix) }
func sockPath(dir, id string) string { return filepath.Join(dir, subDir, id+sockSuffix) }

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func fileError(op, doing string, err error) error {
	return errs.New("owner."+op, errs.Internal, "", "%s: %w", doing, err)
}
