package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"path"
	"regexp"
	"strings"
	"sync"
)

// Bounds of artifacts, in bytes. Content comes in the request itself, which is held in
// memory, so it is bounded more tightly than a file.
const (
	maxArtifact  = 50 << 20
	maxArtifacts = 1 << 30 // of one run together
	maxFiles     = 1000    // of one run
	maxContent   = 4 << 20
	maxName      = 128
	maxPath      = 4096
)

// ErrTooLarge is what the reader of an artifact ends in when there is too much of it.
var ErrTooLarge = errors.New("larger than 50 MiB, or than what this run may still keep")

func (h *Hub) uploadArtifact(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct {
		Name      string  `json:"name"`
		Path      string  `json:"path"`
		Content   *string `json:"content"`
		Encoding  string  `json:"encoding"`
		MediaType string  `json:"media_type"`
	}
	if err := decode(args, &in); err != nil {
		return "", err
	}
	if (in.Path == "") == (in.Content == nil) {
		return "", errors.New("give exactly one of path and content")
	}
	a := Artifact{Name: artifactName(in.Name), MediaType: "application/octet-stream"}
	if a.Name == "" {
		return "", fmt.Errorf("%q is no file name; use letters, digits, dots and dashes", cut(in.Name, maxName))
	}
	if in.Content != nil && in.Encoding != "base64" {
		a.MediaType = "text/plain; charset=utf-8"
	}
	if in.MediaType != "" {
		typ, params, err := mime.ParseMediaType(in.MediaType)
		if err != nil || !strings.Contains(typ, "/") {
			return "", fmt.Errorf("media_type %q is not of the form type/subtype", cut(in.MediaType, maxName))
		}
		a.MediaType = mime.FormatMediaType(typ, params)
	}
	r, err := h.content(ctx, in.Path, in.Content, in.Encoding)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	return h.keep(ctx, a, r)
}

// keep hands an artifact over, within what a run may keep. What the host says about its
// own disk is not for the agent.
func (h *Hub) keep(ctx context.Context, a Artifact, r io.Reader) (string, error) {
	h.mu.Lock()
	left := min(maxArtifact, maxArtifacts-h.kept)
	h.files++
	full := left <= 0 || h.files > maxFiles
	h.mu.Unlock()
	if full {
		return "", errors.New("this run has kept as much as it may; say in your reply what is missing")
	}
	in := &bounded{r: r, left: left, over: ErrTooLarge}
	where, err := h.cfg.Do.Artifact(ctx, a, in)
	h.mu.Lock()
	h.kept += left - in.left
	h.mu.Unlock()
	switch {
	case err == nil:
		return "The artifact is " + where + ".", nil
	case in.err != nil:
		return "", fmt.Errorf("%s was not kept: %w", a.Name, in.err)
	}
	h.notice("warn", fmt.Sprintf("the artifact %s was not kept: %v", a.Name, err))
	return "", fmt.Errorf("%s could not be stored on the host", a.Name)
}

// content opens what the agent wants to be kept.
func (h *Hub) content(ctx context.Context, file string, content *string, encoding string) (io.ReadCloser, error) {
	if content == nil {
		return h.fetch(ctx, file)
	}
	text, limit := *content, maxContent
	switch encoding {
	case "", "text":
	case "base64":
		limit = base64.StdEncoding.EncodedLen(maxContent)
	default:
		return nil, fmt.Errorf("encoding is %q; it must be text or base64", cut(encoding, maxStep))
	}
	if len(text) > limit {
		return nil, errors.New("content is larger than 4 MiB; write it to a file and give its path")
	}
	if encoding == "base64" {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("content is not base64: %w", err)
		}
		text = string(b)
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

func (h *Hub) fetch(ctx context.Context, file string) (io.ReadCloser, error) {
	switch {
	case h.cfg.Fetch == nil:
		return nil, errors.New("files cannot be read here; give content instead of path")
	case len(file) > maxPath || strings.ContainsRune(file, 0):
		return nil, errors.New("that is no path")
	}
	if !path.IsAbs(file) {
		file = path.Join(h.workDir(), file)
	}
	r, err := h.cfg.Fetch(ctx, path.Clean(file))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", file, err)
	}
	return r, nil
}

var (
	notInNames = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[^A-Za-z0-9._-]+`)
	})
	// reserved are names that are devices on Windows, with any ending.
	reserved = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)`)
	})
)

// artifactName makes one harmless element of a path of what the agent wrote, or "" when
// nothing is left of it.
func artifactName(s string) string {
	if i := strings.LastIndexAny(s, `/\`); i >= 0 {
		s = s[i+1:]
	}
	s = strings.TrimLeft(notInNames().ReplaceAllString(s, "-"), ".-")
	if len(s) > maxName {
		ext := path.Ext(s)
		if len(ext) > 16 {
			ext = ""
		}
		s = s[:maxName-len(ext)] + ext
	}
	s = strings.TrimRight(s, ".")
	if reserved().MatchString(s) {
		s = "_" + s
	}
	return s
}

// bounded reads at most left bytes of r and ends in over when there are more. It
// remembers the error that it ended in.
type bounded struct {
	r    io.Reader
	left int64
	over error
	err  error
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if int64(n) > b.left {
		n, err = int(b.left), b.over
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}
