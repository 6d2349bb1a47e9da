package runner

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

// TestFirstFile: an archive comes from a sandbox; nothing of it but the content of one
// plain file may count.
func TestFirstFile(t *testing.T) {
	for _, tt := range []struct {
		name  string
		entry *tar.Header // nil: the archive is empty, as that of a pipe is
		want  string
		kind  errs.Kind
	}{
		{name: "file", entry: &tar.Header{Name: "../../x", Typeflag: tar.TypeReg, Size: 2}, want: "hi"},
		{name: "link", entry: &tar.Header{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, kind: errs.Usage},
		{name: "directory", entry: &tar.Header{Name: "x/", Typeflag: tar.TypeDir}, kind: errs.Usage},
		{name: "device", entry: &tar.Header{Name: "x", Typeflag: tar.TypeChar}, kind: errs.Usage},
	} {
		var archive, got bytes.Buffer
		w := tar.NewWriter(&archive)
		if err := w.WriteHeader(tt.entry); err != nil {
			t.Fatal(err)
		}
		if tt.entry.Size > 0 {
			_, _ = io.WriteString(w, "hi")
		}
		_ = w.Close()
		err := firstFile(&archive, "x", &got)
		if (err != nil) != (tt.kind != "") || err != nil && errs.KindOf(err) != tt.kind || got.String() != tt.want {
			t.Errorf("%s: %q, %v", tt.name, got.String(), err)
		}
	}
	if err := firstFile(strings.NewReader(""), "x", io.Discard); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
}
