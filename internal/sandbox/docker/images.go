package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	dockerimage "github.com/docker/docker/api/types/image"

	"github.com/Insights/insightscli/internal/image"
)

// Images is what package image needs of an engine.
type Images struct{ engine *engine }

// Images returns the engine's images.
func (p *Provider) Images() Images { return Images{p.engine} }

// Platform returns the engine's own platform.
func (im Images) Platform(ctx context.Context) (string, error) {
	f, err := im.engine.facts(ctx)
	return f.platform, err
}

// Inspect describes an image; the error wraps [image.ErrMissing] when there is none.
func (im Images) Inspect(ctx context.Context, ref string) (image.Info, error) {
	api, err := im.engine.connect(ctx)
	if err != nil {
		return image.Info{}, err
	}
	got, err := api.ImageInspect(ctx, ref)
	if cerrdefs.IsNotFound(err) {
		return image.Info{}, fmt.Errorf("image %s: %w", ref, image.ErrMissing)
	}
	if err != nil {
		return image.Info{}, fmt.Errorf("inspect image %s: %w", ref, err)
	}
	info := image.Info{ID: got.ID, Platform: got.Os + "/" + got.Architecture}
	if got.Config != nil {
		info.Labels = got.Config.Labels
	}
	return info, nil
}

// Pull fetches an image from its registry.
func (im Images) Pull(ctx context.Context, ref string, progress func(string)) error {
	api, err := im.engine.connect(ctx)
	if err != nil {
		return err
	}
	stream, err := api.ImagePull(ctx, ref, dockerimage.PullOptions{})
	if err != nil {
		return err
	}
	return follow(stream, progress)
}

// Import makes an image of a tar stream with a root file system.
func (im Images) Import(ctx context.Context, ref string, root io.Reader) error {
	api, err := im.engine.connect(ctx)
	if err != nil {
		return err
	}
	stream, err := api.ImageImport(ctx, dockerimage.ImportSource{Source: root, SourceName: "-"}, ref, dockerimage.ImportOptions{})
	if err != nil {
		return err
	}
	return follow(stream, func(string) {})
}

// Build builds and tags an image, and removes the one that had the tag before. It
// uses the engine's classic builder, which every engine has and which needs no
// session with the client.
func (im Images) Build(ctx context.Context, req image.BuildRequest, progress func(string)) error {
	api, err := im.engine.connect(ctx)
	if err != nil {
		return err
	}
	files, err := dockerfileTar(req.Dockerfile)
	if err != nil {
		return err
	}
	args := make(map[string]*string, len(req.Args))
	for k, v := range req.Args {
		args[k] = &v
	}
	old, _ := im.Inspect(ctx, req.Tag) // none is fine
	answer, err := api.ImageBuild(ctx, files, build.ImageBuildOptions{
		Version: build.BuilderV1, Tags: []string{req.Tag}, Labels: req.Labels,
		BuildArgs: args, NoCache: req.NoCache, Remove: true, ForceRemove: true,
	})
	if err != nil {
		return err
	}
	if err := follow(answer.Body, progress); err != nil {
		return err
	}
	if now, err := im.Inspect(ctx, req.Tag); err == nil && old.ID != "" && old.ID != now.ID {
		// One that a container still uses, or that has another tag, stays.
		_, _ = api.ImageRemove(ctx, old.ID, dockerimage.RemoveOptions{PruneChildren: true})
	}
	return nil
}

func dockerfileTar(dockerfile string) (io.Reader, error) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	header := tar.Header{Typeflag: tar.TypeReg, Name: "Dockerfile", Mode: 0o644, Size: int64(len(dockerfile))}
	if err := tw.WriteHeader(&header); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(tw, dockerfile); err != nil {
		return nil, err
	}
	return &buf, tw.Close()
}

// follow reads the engine's stream of progress messages to its end and closes it.
// A failure arrives as a message too.
func follow(stream io.ReadCloser, progress func(string)) error {
	defer func() { _ = stream.Close() }()
	for messages := json.NewDecoder(stream); ; {
		var m struct {
			Stream, Status, ID, Error string
			Progress                  string
		}
		err := messages.Decode(&m)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read progress: %w", err)
		case m.Error != "":
			return errors.New(strings.TrimSpace(m.Error))
		case m.Progress != "": // a bar that moves many times a second
			continue
		}
		line := m.Stream
		if m.Status != "" {
			line = strings.TrimSpace(m.ID + " " + m.Status)
		}
		for part := range strings.Lines(line) {
			if part = strings.TrimSpace(part); part != "" {
				progress(part)
			}
		}
	}
}
