package cli

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/testenv"
)

func TestInSandbox(t *testing.T) {
	for _, tt := range []struct {
		arg, run, name string
		ok             bool
	}{
		{"latest:a/b", "latest", "a/b", true},
		{"3f9a:", "3f9a", "", true},
		{"3f9a:a:b", "3f9a", "a:b", true},
		{"./a:b", "", "./a:b", false},
		{"/a:b", "", "/a:b", false},
		{"a", "", "a", false},
		{":a", "", ":a", false},
	} {
		run, name, ok := inSandbox(tt.arg)
		if run != tt.run || name != tt.name || ok != tt.ok {
			t.Errorf("%q: %q, %q, %v", tt.arg, run, name, ok)
		}
	}
}

// hostile is a sandbox that answers every archive with the same bytes.
func hostile(stream []byte) agent.Remote {
	return agent.Remote{Open: func(context.Context, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer func() { _ = theirs.Close() }()
			r, w := wire.NewStreamReader(theirs), wire.NewStreamWriter(theirs)
			var a wire.Archive
			if r.Line(&a) != nil {
				return
			}
			go func() {
				for {
					if _, _, err := r.Next(); err != nil {
						return
					}
				}
			}()
			if w.Write(wire.StreamOutput, stream) == nil {
				_ = w.Exit(wire.Exit{})
			}
		}()
		return ours, nil
	}}
}

func tarOf(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range entries {
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// Whatever a sandbox sends, nothing outside of the destination changes.
func TestCopyOutStaysInside(t *testing.T) {
	for name, entries := range map[string][]tar.Header{
		"name up":           {{Name: "../evil", Typeflag: tar.TypeReg, Size: 1}},
		"absolute name":     {{Name: "/evil", Typeflag: tar.TypeReg, Size: 1}},
		"through a link":    {{Name: "x", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "x/evil", Typeflag: tar.TypeReg, Size: 1}},
		"absolute link":     {{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
		"link up":           {{Name: "d/x", Typeflag: tar.TypeSymlink, Linkname: "../../victim"}},
		"hard link":         {{Name: "x", Typeflag: tar.TypeLink, Linkname: "../victim"}},
		"device":            {{Name: "x", Typeflag: tar.TypeBlock, Devmajor: 8}},
		"pipe":              {{Name: "x", Typeflag: tar.TypeFifo}},
		"planted link":      {{Name: "planted/evil", Typeflag: tar.TypeReg, Size: 1}},
		"over planted link": {{Name: "planted/victim", Typeflag: tar.TypeReg, Size: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dest := filepath.Join(top, "dest")
			victim := filepath.Join(top, "victim")
			if err := os.WriteFile(victim, []byte("untouched"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dest, 0o700); err != nil {
				t.Fatal(err)
			}
			err := os.Symlink("..", filepath.Join(dest, "planted"))
			testenv.Need(t, fmt.Sprintf("symbolic links (%v)", err), err == nil)
			if err := copyOut(t.Context(), hostile(tarOf(t, entries...)), "/x", dest); err == nil {
				t.Error("it was taken")
			}
			if b, err := os.ReadFile(victim); err != nil || string(b) != "untouched" {
				t.Errorf("victim: %q, %v", b, err)
			}
			if _, err := os.Lstat(filepath.Join(top, "evil")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("evil: %v", err)
			}
		})
	}
}

func TestRefusedCopyLeavesNothing(t *testing.T) {
	top := t.TempDir()
	box := hostile(tarOf(t, tar.Header{Name: "x/a", Typeflag: tar.TypeReg, Size: 1}, tar.Header{Name: "x/b", Typeflag: tar.TypeFifo}))
	err := copyOut(t.Context(), box, "/x", filepath.Join(top, "new"))
	if errs.KindOf(err) != errs.Conflict || errs.HintOf(err) == "" {
		t.Errorf("err = %v", err)
	}
	if left, err := os.ReadDir(top); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestCopyOutNamesAndModes(t *testing.T) {
	top := t.TempDir()
	box := hostile(tarOf(t, tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 3, Mode: 0o751}))
	if err := copyOut(t.Context(), box, "/dir/x", filepath.Join(top, "y")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(top, "y"))
	if err != nil || info.Size() != 3 || info.Mode().Perm() != 0o751 {
		t.Errorf("%v, %v", info, err)
	}
	if err := copyOut(t.Context(), box, "/dir/x", filepath.Join(top, "no", "y")); errs.KindOf(err) != errs.NotFound {
		t.Errorf("err = %v", err)
	}
}
