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

// index is a git index being read or changed. Versions 2 to 4 are read.
type index struct {
	body    []byte // all but the checksum
	oid     int    // length of an object id
	version uint32
	count   int
}

// openIndex checks the header of an index. The length of its object ids is that of
// its checksum, of which nothing tells but the repository's format.
func openIndex(raw []byte, oid int) (index, error) {
	if len(raw) < 12+oid || string(raw[:4]) != "DIRC" {
		return index{}, fmt.Errorf("read index: not a git index")
	}
	x := index{body: raw[:len(raw)-oid], oid: oid, version: binary.BigEndian.Uint32(raw[4:])}
	count := binary.BigEndian.Uint32(raw[8:])
	if x.version < 2 || x.version > 4 {
		return index{}, fmt.Errorf("read index: version %d is not known", x.version)
	}
	if int64(count) > int64(len(raw)/(40+oid)) {
		return index{}, fmt.Errorf("read index: cut short")
	}
	x.count = int(count)
	return x, nil
}

// each calls f for every entry with its position.
func (x index) each(f func(pos int, e indexEntry)) error {
	pos, last := 12, ""
	for range x.count {
		e, next, err := x.entry(pos, last)
		if err != nil {
			return err
		}
		f(pos, e)
		pos, last = next, e.path
	}
	return nil
}

// entry reads the entry at pos and returns the position of the next one. Version 4
// shortens a path by what it shares with the last one.
func (x index) entry(pos int, last string) (indexEntry, int, error) {
	cut := func() (indexEntry, int, error) { return indexEntry{}, 0, fmt.Errorf("read index: cut short") }
	flags := pos + 40 + x.oid
	name := flags + 2
	if name > len(x.body) {
		return cut()
	}
	if binary.BigEndian.Uint16(x.body[flags:])&0x4000 != 0 {
		name += 2
	}
	prefix := ""
	if x.version == 4 && name < len(x.body) {
		strip, n := offset(x.body[name:])
		if n == 0 || strip > len(last) {
			return cut()
		}
		prefix = last[:len(last)-strip]
		name += n
	}
	if name > len(x.body) {
		return cut()
	}
	end := bytes.IndexByte(x.body[name:], 0)
	if end < 0 || prefix == "" && end == 0 {
		return cut()
	}
	e := indexEntry{
		path: prefix + string(x.body[name:name+end]),
		mode: binary.BigEndian.Uint32(x.body[pos+24:]),
		size: binary.BigEndian.Uint32(x.body[pos+36:]),
	}
	if len(e.path) > maxAddress {
		return indexEntry{}, 0, fmt.Errorf("read index: a path is too long")
	}
	next := name + end + 1
	if x.version < 4 {
		// Entries are padded with one to eight NULs to a multiple of eight bytes.
		next = pos + (name+end-pos+8)/8*8
	}
	if next > len(x.body) {
		return cut()
	}
	return e, next, nil
}

// offset reads git's variable-length integer; n is 0 when there is none.
func offset(b []byte) (value, n int) {
	for i, c := range b {
		if i == 4 {
			return 0, 0
		}
		if i > 0 {
			value++
		}
		value = value<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}

// readIndex lists the entries of an index of either object format.
func readIndex(raw []byte) ([]indexEntry, error) {
	var last error
	for _, h := range []hash.Hash{sha1.New(), sha256.New()} {
		x, err := openIndex(raw, h.Size())
		if err != nil {
			last = err
			continue
		}
		sum := raw[len(x.body):]
		h.Write(x.body)
		if !bytes.Equal(sum, h.Sum(nil)) && !allZero(sum) {
			last = fmt.Errorf("read index: its checksum is wrong")
			continue
		}
		var out []indexEntry
		if last = x.each(func(_ int, e indexEntry) { out = append(out, e) }); last == nil {
			return out, nil
		}
	}
	return nil, last
}

// allZero recognises a checksum that git left out (index.skipHash).
func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// retime sets the modification time of every entry of a git index and returns the
// new index with its entries. Git sees a file as unchanged when time and size are
// those of the index, and hashes it again when it is as young as the index itself
// ("racily clean"); a checkout whose files and entries all bear one time in the
// past is trusted at once, wherever it is copied to.
func retime(raw []byte, format string, at time.Time) ([]byte, []indexEntry, error) {
	sum := hash.Hash(sha1.New())
	if format == "sha256" {
		sum = sha256.New()
	}
	out := bytes.Clone(raw)
	x, err := openIndex(out, sum.Size())
	if err != nil {
		return nil, nil, err
	}
	var entries []indexEntry
	err = x.each(func(pos int, e indexEntry) {
		if e.mode&modeMask != modeGitlink {
			binary.BigEndian.PutUint32(x.body[pos+8:], uint32(at.Unix()))
			binary.BigEndian.PutUint32(x.body[pos+12:], uint32(at.Nanosecond()))
		}
		entries = append(entries, e)
	})
	if err != nil {
		return nil, nil, err
	}
	sum.Write(x.body)
	copy(out[len(x.body):], sum.Sum(nil))
	return out, entries, nil
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
