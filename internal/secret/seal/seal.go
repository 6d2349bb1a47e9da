// Package seal keeps secret values on the disk: sealed under a key that lies in a
// file of its own, 0600, outside the database that holds the values. A value is bound
// to its run and name, so that one cannot be put in another's place. It protects
// what is copied or backed up without the key, not against the user or root.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/Insights/insightscli/internal/errs"
)

const (
	keySize = 32
	// form is the first byte of a sealed value: AES-256-GCM with a random nonce.
	form = 1
)

// Key seals and opens values. It may be used by several goroutines.
type Key struct{ aead cipher.AEAD }

// Open reads the key file, making it when it is missing; processes that make it at
// the same time end up with the same key. A key file that other users could read or
// have written is refused.
func Open(path string) (*Key, error) {
	key, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, errs.New("seal.Open", errs.Internal, "", "create the key file: %w", err)
		}
		key, err = read(path)
	}
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errs.New("seal.Open", errs.Internal, "", "use the key file: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, errs.New("seal.Open", errs.Internal, "", "use the key file: %w", err)
	}
	return &Key{aead: aead}, nil
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errs.New("seal.Open", errs.Internal, "", "read the key file: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, errs.New("seal.Open", errs.Internal, "", "read the key file: %w", err)
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	key := make([]byte, keySize)
	if n, err := f.Read(key); err != nil || n != keySize || info.Size() != keySize {
		return nil, errs.New("seal.Open", errs.Config, "move it away; secrets of unfinished runs are then lost",
			"the key file %s is damaged: %d bytes, not %d", path, info.Size(), keySize)
	}
	return key, nil
}

// create writes a whole key under another name and gives it the right one only if
// nothing has it, so that nobody ever reads half a key or loses one in use.
func create(path string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".key-") // O_EXCL, 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails: crypto/rand aborts the program instead
	_, err = tmp.Write(key)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// Seal returns value in a form that only Open with the same key, run and name reads.
func (k *Key) Seal(run, name string, value []byte) ([]byte, error) {
	sealed := make([]byte, 1+k.aead.NonceSize(), 1+k.aead.NonceSize()+len(value)+k.aead.Overhead())
	sealed[0] = form
	nonce := sealed[1:]
	_, _ = rand.Read(nonce) // never fails: crypto/rand aborts the program instead
	return k.aead.Seal(sealed, nonce, value, bind(run, name)), nil
}

// Open returns the value that was sealed for that run and name.
func (k *Key) Open(run, name string, sealed []byte) ([]byte, error) {
	n := 1 + k.aead.NonceSize()
	if len(sealed) < n || sealed[0] != form {
		return nil, errs.New("seal.Open", errs.Internal, "", "open secret %q: not a sealed value", name)
	}
	value, err := k.aead.Open(nil, sealed[1:n], sealed[n:], bind(run, name))
	if err != nil {
		return nil, errs.New("seal.Open", errs.Internal, "start the run again with its secrets",
			"open secret %q of run %.8s: sealed with another key, or damaged", name, run)
	}
	return value, nil
}

// bind joins run and name so that no two pairs give the same bytes.
func bind(run, name string) []byte {
	b := binary.AppendUvarint(nil, uint64(len(run)))
	return append(append(b, run...), name...)
}
