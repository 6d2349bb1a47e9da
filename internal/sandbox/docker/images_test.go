package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	dockerimage "github.com/docker/docker/api/types/image"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/sandbox"
)

// archive makes a tar stream of files by name.
func archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for name, content := range files {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// loadImage gives the engine an empty image for another architecture.
func loadImage(t testing.TB, p *Provider, ref, arch string) {
	t.Helper()
	layer := archive(t, nil)
	config := fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%x"]}}`,
		arch, sha256.Sum256(layer))
	data := archive(t, map[string]string{
		"manifest.json": fmt.Sprintf(`[{"Config":"config.json","RepoTags":[%q],"Layers":["layer.tar"]}]`, ref),
		"config.json":   config, "layer.tar": string(layer),
	})
	api, err := p.engine.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := api.ImageLoad(t.Context(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := follow(answer.Body, func(string) {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = api.ImageRemove(context.Background(), ref, dockerimage.RemoveOptions{}) })
}

// An image of another platform is refused before anything is made (C11).
func TestForeignImage(t *testing.T) {
	p := realEngine(t, TransportAuto)
	platform, err := p.Images().Platform(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	foreign := "arm64"
	if platform == "linux/arm64" {
		foreign = "amd64"
	}
	r := newRequest(t, "insightscli-test-foreign:"+randomHex(4), networkLink)
	loadImage(t, p, r.Image, foreign)
	box, err := p.Create(within(t, time.Minute), r.Spec)
	if err == nil {
		destroy(t, box)
	}
	if errs.KindOf(err) != errs.Config || !strings.Contains(err.Error(), foreign) || !strings.Contains(err.Error(), platform) {
		t.Errorf("Create: %v", err)
	}
	nothingLeft(t, p, r.Labels[sandbox.LabelRun])
}

// A build leaves no image without a name behind, and tells what it does.
func TestBuildReplacesTheImage(t *testing.T) {
	p := realEngine(t, TransportAuto)
	base, tag := "insightscli-test-base:"+randomHex(4), "insightscli-test-built:"+randomHex(4)
	platform, err := p.Images().Platform(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	loadImage(t, p, base, strings.TrimPrefix(platform, "linux/"))
	api := p.engine.api
	t.Cleanup(func() {
		_, _ = api.ImageRemove(context.Background(), tag, dockerimage.RemoveOptions{PruneChildren: true})
	})
	build := func(value string) image.Info {
		var lines []string
		err := p.Images().Build(within(t, time.Minute), image.BuildRequest{
			Tag: tag, Dockerfile: "ARG BASE\nFROM ${BASE}\nENV VALUE=" + value + "\n",
			Args: map[string]string{"BASE": base}, Labels: map[string]string{"value": value},
		}, func(line string) { lines = append(lines, line) })
		if err != nil || len(lines) == 0 {
			t.Fatalf("build: %v, progress %v", err, lines)
		}
		info, err := p.Images().Inspect(t.Context(), tag)
		if err != nil || info.Labels["value"] != value {
			t.Fatalf("built: %+v, %v", info, err)
		}
		return info
	}
	first := build("1")
	build("2")
	if _, err := p.Images().Inspect(t.Context(), first.ID); !errors.Is(err, image.ErrMissing) {
		t.Errorf("the first image is still there: %v", err)
	}
}

func TestBuildFailureIsReported(t *testing.T) {
	p := realEngine(t, TransportAuto)
	err := p.Images().Build(within(t, time.Minute), image.BuildRequest{Tag: "insightscli-test-bad", Dockerfile: "FROM scratch\nRUN no-such-program\n"}, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "no-such-program") && !strings.Contains(err.Error(), "sh") {
		t.Errorf("got %v", err)
	}
}

func TestFollowReportsFailures(t *testing.T) {
	stream := `{"stream":"Step 1\n\nStep 2\n"}{"status":"Downloading","id":"ab","progress":"[=>  ]"}{"status":"Pulled","id":"ab"}{"error":"boom\n"}`
	var lines []string
	err := follow(io.NopCloser(strings.NewReader(stream)), func(line string) { lines = append(lines, line) })
	if err == nil || err.Error() != "boom" {
		t.Errorf("error %v", err)
	}
	if got := strings.Join(lines, "|"); got != "Step 1|Step 2|ab Pulled" {
		t.Errorf("lines %q", got)
	}
	if err := follow(io.NopCloser(strings.NewReader(`{"stream":`)), func(string) {}); err == nil {
		t.Error("a torn stream is no error")
	}
}
