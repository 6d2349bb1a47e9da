// Package embedded holds the agent servers for Linux that `make build` puts into the
// CLI, gzipped, and unpacks the one that a sandbox needs ([Unpack]). A checkout has
// none, and a note in their place lets everything compile. The CLI itself can then stand in for
// the agent server where it is a static Linux program ([Self]).
package embedded

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// binaries holds insights-agent-server-linux-ARCH.gz and, where the build made it,
// insights-agent-server-linux-ARCH.gz.sha256 with the hexadecimal digest of it: that
// saves a run the two milliseconds of computing it.
//
//go:embed insights-agent-server*
var binaries embed.FS

// ErrNone is wrapped when this build holds no agent server for a platform.
var ErrNone = errors.New("this build holds no agent server")

// name is that of the program below the directory of its content.
const name = "insights-agent-server"

// Unpack returns the path of the agent server for linux/goarch below dir: in a
// directory named by its content, so that it is unpacked once and two versions of
// the CLI do not disturb each other. Any number of processes may do so at once.
func Unpack(dir, goarch string) (string, error) { return unpack(binaries, dir, goarch) }

func unpack(files fs.FS, dir, goarch string) (string, error) {
	size, err := unpackedSize(files, goarch)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w for linux/%s", ErrNone, goarch)
	}
	if err != nil {
		return "", err
	}
	sum, err := digest(files, goarch)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, sum, name)
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Size() == size && info.Mode()&0o111 != 0 {
		return path, nil
	}
	packed, err := fs.ReadFile(files, fileName(goarch))
	if err == nil {
		err = write(path, packed)
	}
	if err != nil {
		return "", fmt.Errorf("unpack the agent server: %w", err)
	}
	return path, nil
}

// unpackedSize reads the last four bytes of the gzip stream, which are the size of
// what it holds. Reading all of it would copy megabytes at every start.
func unpackedSize(files fs.FS, goarch string) (int64, error) {
	f, err := files.Open(fileName(goarch))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read from
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	at, ok := f.(io.ReaderAt)
	if !ok || info.Size() < 8 {
		return 0, fs.ErrNotExist
	}
	var last [4]byte
	if _, err := at.ReadAt(last[:], info.Size()-4); err != nil {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint32(last[:])), nil
}

func fileName(goarch string) string { return "insights-agent-server-linux-" + goarch + ".gz" }

// digest returns the digest that the build recorded, or computes it.
func digest(files fs.FS, goarch string) (string, error) {
	if recorded, err := fs.ReadFile(files, fileName(goarch)+".sha256"); err == nil {
		hexed := strings.TrimSpace(string(recorded))
		if b, err := hex.DecodeString(hexed); err == nil && len(b) == sha256.Size {
			return hexed, nil
		}
	}
	packed, err := fs.ReadFile(files, fileName(goarch))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:]), nil
}

// write puts the program in its place: complete, on the disk, and then by its name.
func write(path string, packed []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	tmp, err := writeWhole(dir, packed)
	if tmp != "" {
		defer func() { _ = os.Remove(tmp) }() // gone already when all went well
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(dir)
}

// writeWhole writes the program under another name. No process is started by this one
// meanwhile: between fork and exec it would hold the file open for writing, and whoever
// starts the program in that moment is told "text file busy".
func writeWhole(dir string, packed []byte) (string, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	tmp, err := os.CreateTemp(dir, ".unpack-*")
	if err != nil {
		return "", err
	}
	return tmp.Name(), errors.Join(gunzip(tmp, packed), tmp.Chmod(0o755), tmp.Sync(), tmp.Close())
}

func gunzip(w io.Writer, packed []byte) error {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil { //nolint:gosec // our own build's bytes
		return err
	}
	return r.Close()
}

// syncDir makes a rename last. Where directories cannot be synced, it is not our
// loss: a file that is missing is unpacked again.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
