package embedded

import (
	"debug/elf"
	"fmt"
	"os"
	"runtime"
)

// Self returns the path of the running program if it can be mounted into a sandbox
// of linux/goarch in the agent server's place: it is for that platform, and static,
// so that it needs no library of the sandbox's. The error wraps [ErrNone] and says
// why not.
func Self(goarch string) (string, error) {
	if runtime.GOOS != "linux" || runtime.GOARCH != goarch {
		return "", fmt.Errorf("%w for linux/%s, and this program is for %s/%s", ErrNone, goarch, runtime.GOOS, runtime.GOARCH)
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("%w, and this program cannot be found: %w", ErrNone, err)
	}
	if err := static(path); err != nil {
		return "", err
	}
	return path, nil
}

// static returns an error unless the program at path needs no loader.
func static(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%w, and this program cannot be read: %w", ErrNone, err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%w, and this program is not static", ErrNone)
		}
	}
	return nil
}
