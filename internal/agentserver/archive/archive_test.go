package archive

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// stream makes a tar stream of headers; a regular file's content is its name.
func stream(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		must(t, w.WriteHeader(&h))
		if h.Typeflag == tar.TypeReg {
			_, err := io.WriteString(w, h.Name)
			must(t, err)
		}
	}
	must(t, w.Close())
	return &b
}

func TestRoundTrip(t *testing.T) {
	src := filepath.Join(t.TempDir(), "tree")
	must(t, os.MkdirAll(filepath.Join(src, "dir", "empty"), 0o755))
	must(t, os.WriteFile(filepath.Join(src, "dir", "run.sh"), []byte("#!/bin/sh\n"), 0o755))
	must(t, os.WriteFile(filepath.Join(src, "secret"), []byte("x"), 0o600))
	must(t, os.WriteFile(filepath.Join(src, "locked"), []byte("y"), 0o400))
	when := time.Date(2001, 2, 3, 4, 5, 6, 7000, time.UTC)
	must(t, os.Chtimes(filepath.Join(src, "secret"), when, when))
	must(t, os.Chtimes(filepath.Join(src, "dir"), when, when))
	links := runtime.GOOS != "windows"
	if links {
		must(t, os.Symlink("dir/run.sh", filepath.Join(src, "link")))
	}
	var b bytes.Buffer
	must(t, Write(t.Context(), &b, src))
	dst := t.TempDir()
	must(t, Extract(t.Context(), &b, dst, Limits{}))

	got := filepath.Join(dst, "tree")
	for _, name := range []string{"dir/run.sh", "secret", "locked", "dir"} {
		want, err := os.Stat(filepath.Join(src, name))
		must(t, err)
		info, err := os.Stat(filepath.Join(got, name))
		must(t, err)
		if info.Mode() != want.Mode() || !info.ModTime().Equal(want.ModTime()) {
			t.Errorf("%s: %v %v, want %v %v", name, info.Mode(), info.ModTime(), want.Mode(), want.ModTime())
		}
	}
	if _, err := os.Stat(filepath.Join(got, "dir", "empty")); err != nil {
		t.Error(err)
	}
	if target, err := os.Readlink(filepath.Join(got, "link")); links && (err != nil || target != "dir/run.sh") {
		t.Error(target, err)
	}
}

func TestContentsOfADirectory(t *testing.T) {
	src, dst := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(src, "file"), []byte("x"), 0o644))
	var b bytes.Buffer
	must(t, Write(t.Context(), &b, src+"/."))
	must(t, Extract(t.Context(), &b, dst, Limits{}))
	if _, err := os.Stat(filepath.Join(dst, "file")); err != nil {
		t.Error(err)
	}
}

func TestOneFile(t *testing.T) {
	src := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(src, []byte("content"), 0o644))
	var b bytes.Buffer
	must(t, Write(t.Context(), &b, src))
	dst := filepath.Join(t.TempDir(), "made", "here")
	must(t, Extract(t.Context(), &b, dst, Limits{}))
	if got, err := os.ReadFile(filepath.Join(dst, "file")); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
	link := func(kind byte, name, to string) tar.Header {
		return tar.Header{Typeflag: kind, Name: name, Linkname: to}
	}
	tests := []struct {
		name    string
		entries []tar.Header
	}{
		{"parent", []tar.Header{file("../x")}},
		{"parent inside", []tar.Header{file("a/../../x")}},
		{"absolute", []tar.Header{file("/etc/x")}},
		{"the directory itself", []tar.Header{file(".")}},
		{"absolute link", []tar.Header{link(tar.TypeSymlink, "l", "/etc/passwd")}},
		{"link out", []tar.Header{link(tar.TypeSymlink, "a/l", "../../x")}},
		{"hard link out", []tar.Header{link(tar.TypeLink, "l", "../x")}},
		{"hard link to a link", []tar.Header{link(tar.TypeSymlink, "s", "x"), link(tar.TypeLink, "l", "s")}},
		{"character device", []tar.Header{{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}}},
		{"block device", []tar.Header{{Typeflag: tar.TypeBlock, Name: "sda", Devmajor: 8}}},
		{"pipe", []tar.Header{{Typeflag: tar.TypeFifo, Name: "pipe"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "below", "here")
			err := Extract(t.Context(), stream(t, tt.entries...), dir, Limits{})
			if !errors.Is(err, ErrRefused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestExistingLinkIsNotFollowed: the way out was there before the archive came.
func TestExistingLinkIsNotFollowed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs symbolic links")
	}
	outside, dir := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "kept"), []byte("kept"), 0o644))
	must(t, os.Symlink(outside, filepath.Join(dir, "way")))
	must(t, os.Symlink(filepath.Join(outside, "kept"), filepath.Join(dir, "file")))
	in := stream(t, tar.Header{Typeflag: tar.TypeReg, Name: "way/new", Mode: 0o644})
	if err := Extract(t.Context(), in, dir, Limits{}); err == nil {
		t.Error("a file was made through a link")
	}
	must(t, Extract(t.Context(), stream(t, tar.Header{Typeflag: tar.TypeReg, Name: "file", Mode: 0o644}), dir, Limits{}))
	if b, err := os.ReadFile(filepath.Join(outside, "kept")); err != nil || string(b) != "kept" {
		t.Errorf("%q, %v", b, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
}

func TestSetUIDBitIsDropped(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs mode bits")
	}
	dir := t.TempDir()
	must(t, Extract(t.Context(), stream(t, tar.Header{Typeflag: tar.TypeReg, Name: "su", Mode: 0o4755}), dir, Limits{}))
	info, err := os.Stat(filepath.Join(dir, "su"))
	must(t, err)
	if info.Mode() != 0o755 {
		t.Error(info.Mode())
	}
}

func TestLimits(t *testing.T) {
	entries := []tar.Header{{Typeflag: tar.TypeReg, Name: "0123456789"}, {Typeflag: tar.TypeReg, Name: "abcdefghij"}}
	for _, limits := range []Limits{{Bytes: 19}, {Entries: 1}} {
		if err := Extract(t.Context(), stream(t, entries...), t.TempDir(), limits); !errors.Is(err, ErrRefused) {
			t.Errorf("%+v: %v", limits, err)
		}
	}
	must(t, Extract(t.Context(), stream(t, entries...), t.TempDir(), Limits{Bytes: 20, Entries: 2}))
}

func TestDirectoryIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "d", "content"), 0o755))
	err := Extract(t.Context(), stream(t, tar.Header{Typeflag: tar.TypeReg, Name: "d"}), dir, Limits{})
	if err == nil {
		t.Error("a directory was replaced by a file")
	}
}

func TestTornStream(t *testing.T) {
	src := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(src, make([]byte, 100_000), 0o644))
	var b bytes.Buffer
	must(t, Write(t.Context(), &b, src))
	err := Extract(t.Context(), io.LimitReader(&b, 50_000), t.TempDir(), Limits{})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestAbsentPath(t *testing.T) {
	if err := Write(t.Context(), io.Discard, "/no/such/path"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzExtract(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	_ = w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "a/l", Linkname: "../x"})
	_ = w.Close()
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		top := t.TempDir()
		dir := filepath.Join(top, "here")
		_ = Extract(t.Context(), bytes.NewReader(in), dir, Limits{Bytes: 1 << 20, Entries: 100})
		entries, err := os.ReadDir(top)
		if err != nil || len(entries) > 1 {
			t.Errorf("outside: %v, %v", entries, err)
		}
	})
}
