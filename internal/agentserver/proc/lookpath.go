package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// LookPath finds the program of spec as execvp does, by the PATH of the process's own
// environment. It must run with the agent's identity where that differs from ours.
func LookPath(spec Spec) (string, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return "", &programError{`""`, ErrNotFound, ""}
	}
	name := spec.Argv[0]
	if strings.ContainsRune(name, '/') || filepath.IsAbs(name) {
		return name, nil // exec itself tells what is wrong with it
	}
	var denied error
	for _, dir := range filepath.SplitList(pathOf(spec.Env)) {
		path := filepath.Join(dir, name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(spec.Dir, path)
		}
		err := executable(path)
		switch {
		case err == nil:
			return path, nil
		case errors.Is(err, fs.ErrPermission):
			denied = ExecError(path, err)
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &programError{name, ErrNotFound, ""}
}

// pathOf returns the last PATH of env.
func pathOf(env []string) string {
	var path string
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	return path
}

// executable tells why path cannot be executed. Mode bits decide, as in os/exec.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fs.ErrNotExist // a directory of that name in the PATH hides nothing
	case info.Mode()&0o111 == 0 && !modesMeanNothing:
		return fs.ErrPermission
	}
	return nil
}
