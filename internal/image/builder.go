package image

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/filelock"
)

// baseRef is the image that the Dockerfiles start from.
const baseRef = "debian:bookworm-slim"

// Info describes an image that an engine has.
type Info struct {
	ID       string
	Platform string // "linux/amd64"
	Labels   map[string]string
}

// BuildRequest is one build from a single Dockerfile.
type BuildRequest struct {
	Tag        string
	Dockerfile string
	Args       map[string]string
	Labels     map[string]string
	NoCache    bool
}

// engine is what a builder needs of a container engine. Progress functions get
// one line at a time, without its end.
type engine interface {
	// Platform returns the engine's own platform, "linux/amd64".
	Platform(ctx context.Context) (string, error)
	// Inspect describes an image; the error wraps ErrMissing when there is none.
	Inspect(ctx context.Context, ref string) (Info, error)
	// Pull fetches an image from its registry.
	Pull(ctx context.Context, ref string, progress func(string)) error
	// Import makes an image of a tar stream with a root file system.
	Import(ctx context.Context, ref string, root io.Reader) error
	// Build builds and tags an image.
	Build(ctx context.Context, req BuildRequest, progress func(string)) error
}

// Builder builds the images of templates.
type Builder struct {
	Engine engine
	// Lock is a file that processes lock while they build; "" does not lock.
	Lock string
	// Args are build arguments, such as http_proxy.
	Args map[string]string
	// Bootstrap makes a Debian where the base cannot be pulled; nil is
	// [SystemBootstrap].
	Bootstrap Bootstrapper
}

// Ensure returns the image of t and builds it first when it is missing or stale.
func (b *Builder) Ensure(ctx context.Context, t Template, progress func(string)) (Info, error) {
	info, err := b.fresh(ctx, t)
	if err == nil || !needsBuild(err) {
		return info, err
	}
	return b.locked(ctx, progress, func() (Info, error) {
		// Another process may have built it while this one waited.
		if info, err := b.fresh(ctx, t); err == nil || !needsBuild(err) {
			return info, err
		}
		return b.build(ctx, t, false, progress)
	})
}

// Build builds the image of t, whether or not there is one. With noCache no layer
// of an earlier build is used.
func (b *Builder) Build(ctx context.Context, t Template, noCache bool, progress func(string)) (Info, error) {
	return b.locked(ctx, progress, func() (Info, error) { return b.build(ctx, t, noCache, progress) })
}

func needsBuild(err error) bool { return errors.Is(err, ErrMissing) || errors.Is(err, ErrStale) }

func (b *Builder) fresh(ctx context.Context, t Template) (Info, error) {
	info, err := b.Engine.Inspect(ctx, t.Tag())
	if err != nil {
		return Info{}, err
	}
	if Stale(t.Tag(), info.Labels) {
		return Info{}, fmt.Errorf("image %s: %w", t.Tag(), ErrStale)
	}
	return info, nil
}

func (b *Builder) locked(ctx context.Context, progress func(string), f func() (Info, error)) (Info, error) {
	if b.Lock == "" {
		return f()
	}
	lock, err := filelock.TryPath(b.Lock, filelock.Exclusive)
	if err == nil && lock == nil {
		progress("waiting for another process that is building an image")
		lock, err = filelock.LockPath(ctx, b.Lock, filelock.Exclusive)
	}
	if err != nil {
		return Info{}, fmt.Errorf("lock image build: %w", err)
	}
	defer func() { _ = lock.Close() }() // gives the lock back
	return f()
}

func (b *Builder) build(ctx context.Context, t Template, noCache bool, progress func(string)) (Info, error) {
	if t.Dockerfile() == "" {
		return Info{}, errs.New("image.Build", errs.Usage, "use default_base, or name an image with --image",
			"this build cannot make the image of template %s", t)
	}
	base, err := b.base(ctx, t, noCache, progress)
	if err != nil {
		return Info{}, err
	}
	args := map[string]string{"BASE": base}
	for k, v := range b.Args {
		args[k] = v
	}
	progress("building " + t.Tag())
	err = b.Engine.Build(ctx, BuildRequest{
		Tag:        t.Tag(),
		Dockerfile: t.Dockerfile(),
		Args:       args,
		Labels:     map[string]string{LabelTemplate: string(t), LabelDockerfile: t.Hash()},
		NoCache:    noCache,
	}, progress)
	if err != nil {
		return Info{}, fmt.Errorf("build image %s: %w", t.Tag(), err)
	}
	return b.Engine.Inspect(ctx, t.Tag())
}

// base returns the reference of an image to build on: the registry's where it is
// here or can be had, else a bootstrapped one.
func (b *Builder) base(ctx context.Context, t Template, again bool, progress func(string)) (string, error) {
	boot := bootstrapRef(t)
	if !again {
		for _, ref := range []string{baseRef, boot} {
			_, err := b.Engine.Inspect(ctx, ref)
			if err == nil {
				return ref, nil
			}
			if !errors.Is(err, ErrMissing) {
				return "", err
			}
		}
	}
	progress("pulling " + baseRef)
	pullErr := b.Engine.Pull(ctx, baseRef, progress)
	if pullErr == nil {
		return baseRef, nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	progress(fmt.Sprintf("%s cannot be pulled (%v)", baseRef, pullErr))
	if err := b.bootstrap(ctx, t, boot, progress); err != nil {
		if errors.Is(err, errNoTool) {
			return "", errs.New("image.Build", errs.Unavailable,
				"give the engine access to its registry, or install mmdebstrap (apt-get install mmdebstrap)",
				"pull %s: %w, and neither mmdebstrap nor debootstrap is installed", baseRef, pullErr)
		}
		return "", err
	}
	return boot, nil
}
