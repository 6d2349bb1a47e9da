package repo

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"os"
	"path/filepath"
	"time"
)

// Kinds of index entries, as their mode has them.
const (
	modeMask    = 0o170000
	modeSymlink = 0o120000
	modeGitlink = 0o160000
)

// indexEntry is one file of a git index.
type indexEntry struct {
	path string
	mode uint32
	size uint32
}

// retime sets the modification time of every entry of a git index (versions 2 and
// 3) and returns the new index with its entries. Git sees a file as unchanged when
// time and size are those of the index, and hashes it again when it is as young as
// the index itself ("racily clean"); a checkout whose files and entries all bear
// one time in the past is trusted at once, wherever it is copied to.
func retime(raw []byte, format string, at time.Time) ([]byte, []indexEntry, error) {
	sum, oid := hash.Hash(sha1.New()), sha1.Size
	if format == "sha256" {
		sum, oid = sha256.New(), sha256.Size
	}
	if len(raw) < 12+oid || string(raw[:4]) != "DIRC" {
		return nil, nil, fmt.Errorf("read index: not a git index")
	}
	version, count := binary.BigEndian.Uint32(raw[4:]), binary.BigEndian.Uint32(raw[8:])
	if version != 2 && version != 3 {
		return nil, nil, fmt.Errorf("read index: version %d is not known", version)
	}
	out := bytes.Clone(raw)
	body := out[:len(out)-oid]
	entries := make([]indexEntry, 0, min(int(count), len(raw)/(40+oid)))
	pos := 12
	for range count {
		e, next, err := readEntry(body, pos, oid)
		if err != nil {
			return nil, nil, err
		}
		if e.mode&modeMask != modeGitlink {
			binary.BigEndian.PutUint32(body[pos+8:], uint32(at.Unix()))
			binary.BigEndian.PutUint32(body[pos+12:], uint32(at.Nanosecond()))
		}
		entries = append(entries, e)
		pos = next
	}
	sum.Write(body)
	copy(out[len(body):], sum.Sum(nil))
	return out, entries, nil
}

// readEntry reads the entry at pos and returns the position of the next one.
func readEntry(body []byte, pos, oid int) (indexEntry, int, error) {
	flags := pos + 40 + oid
	name := flags + 2
	if name > len(body) {
		return indexEntry{}, 0, fmt.Errorf("read index: cut short")
	}
	if binary.BigEndian.Uint16(body[flags:])&0x4000 != 0 {
		name += 2
	}
	end := -1
	if name <= len(body) {
		end = bytes.IndexByte(body[name:], 0)
	}
	if end <= 0 {
		return indexEntry{}, 0, fmt.Errorf("read index: cut short")
	}
	e := indexEntry{
		path: string(body[name : name+end]),
		mode: binary.BigEndian.Uint32(body[pos+24:]),
		size: binary.BigEndian.Uint32(body[pos+36:]),
	}
	// Entries are padded with one to eight NULs to a multiple of eight bytes.
	length := name + end - pos
	next := pos + (length+8)/8*8
	if next > len(body) {
		return indexEntry{}, 0, fmt.Errorf("read index: cut short")
	}
	return e, next, nil
}

// finishTree gives a fresh checkout its final times and owner and its index, and
// returns its size.
func finishTree(tree, index, format string, own owner) (int64, error) {
	raw, err := os.ReadFile(index)
	if err != nil && !os.IsNotExist(err) {
		return 0, fmt.Errorf("read index: %w", err)
	}
	at := time.Now().Add(-time.Minute).Truncate(time.Second)
	var size int64
	if err == nil {
		fixed, entries, err := retime(raw, format, at)
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(filepath.Join(tree, ".git", "index"), fixed, 0o644); err != nil {
			return 0, fmt.Errorf("write index: %w", err)
		}
		for _, e := range entries {
			if e.mode&modeMask != modeGitlink && size < math.MaxInt64/2 {
				size += int64(e.size)
			}
		}
	}
	return size, settle(tree, at, own)
}
