package ghapp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/Insights/insightscli/internal/errs"
)

// checkKeep finds out before anything happens whether an answer can be kept.
func checkKeep(path string) error {
	if path == "" {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return errs.New("ghapp.Start", errs.Conflict, "use that app, or remove the file",
			"%s holds an app that was created earlier and never used", path)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), tempPattern(path))
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil {
		return errs.New("ghapp.Start", errs.Config, "make "+filepath.Dir(path)+" a folder that you can write to",
			"keep GitHub's answer: %w", err)
	}
	return nil
}

func tempPattern(path string) string { return "." + filepath.Base(path) + ".*" }

// keep writes an answer so that it is there whole or not at all, for its owner only,
// and survives a crash. It returns where.
func keep(path string, answer []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), tempPattern(path)) // 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(answer)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	// A link never replaces: the file there would be another app's only key.
	switch err := os.Link(f.Name(), path); {
	case err == nil:
		err = os.Remove(f.Name())
		syncDir(filepath.Dir(path))
		return path, err
	case errors.Is(err, fs.ErrExist):
		return f.Name(), fmt.Errorf("another app's answer is in its place: %w", err)
	}
	// This file system has no links.
	err = os.Rename(f.Name(), path)
	syncDir(filepath.Dir(path))
	return path, err
}

// syncDir makes a new name in dir durable, where the system can.
func syncDir(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	_ = d.Sync() // Windows refuses it, and some file systems
	_ = d.Close()
}

// Kept reads an answer that an earlier run left behind: the app exists, and nobody has
// used its key. It returns false if there is none. Remove the file when the answer is
// used.
func Kept(path, baseURL string) (Result, bool, error) {
	answer, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, errs.New("ghapp.Kept", errs.Config, "make the file readable, or remove it", "read the app that was kept: %w", err)
	}
	s, err := newSite(baseURL, "")
	if err != nil {
		return Result{}, false, err
	}
	r, err := s.parseAnswer(answer)
	if err != nil {
		return Result{}, false, errs.New("ghapp.Kept", errs.Config, "remove the file", "read %s: %w", path, err)
	}
	return r, true, nil
}
