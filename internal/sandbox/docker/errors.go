package docker

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/Insights/insightscli/internal/errs"
)

// unreachable says why the engine does not answer and what helps.
func unreachable(ctx context.Context, ep endpoint, err error, after time.Duration) error {
	var own *errs.Error
	switch {
	case errors.As(err, &own):
		return err
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.Is(err, fs.ErrPermission):
		return errs.New("docker.Connect", errs.Unavailable,
			"add yourself to the group of the socket (`sudo usermod -aG docker $USER`, then log in again), or use --provider=local",
			"no permission to use docker at %s", ep)
	case errors.Is(err, context.DeadlineExceeded):
		return errs.New("docker.Connect", errs.Unavailable,
			"restart the engine, or use --provider=local",
			"docker at %s did not answer within %s", ep, after.Round(100*time.Millisecond))
	case strings.HasPrefix(ep.host, "ssh://"):
		return errs.New("docker.Connect", errs.Unavailable,
			"check that `ssh "+ep.host+" docker version` works without a question",
			"docker is not reachable at %s: %w", ep, cause(err))
	}
	return errs.New("docker.Connect", errs.Unavailable,
		"start the Docker engine, or use --provider=local",
		"docker is not reachable at %s: %w", ep, cause(err))
}

// cause drops the SDK's own sentence, which names the address again.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// explain gives an engine's refusal to make or start a container the kind and the
// hint that it has for the user.
func explain(ep endpoint, what string, err error) error {
	text := err.Error()
	kind, hint := errs.Internal, "see the log of the engine"
	switch {
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return err
	case strings.Contains(text, "no space left on device"):
		kind, hint = errs.Unavailable, "free disk space, for example with `docker system prune`"
	case noBindSource(err):
		kind, hint = errs.Config, "use an engine that sees the files of this machine, or --provider=local"
	case strings.Contains(text, "Range of CPUs"):
		kind, hint = errs.Usage, "ask for fewer with --cpus"
	case strings.Contains(text, "inimum memory limit"):
		kind, hint = errs.Usage, "ask for more with --memory"
	case strings.Contains(text, "exec format error"):
		kind, hint = errs.Config, "use an image and an agent server of the engine's platform"
	case cerrdefs.IsUnavailable(err) || strings.Contains(text, "Cannot connect to the Docker daemon"):
		kind, hint = errs.Unavailable, "start the Docker engine again"
	}
	return errs.New("docker.Create", kind, hint, "%s on docker at %s: %w", what, ep, &refused{err})
}

// maxRefusal bounds what is shown of an engine's words: some repeat the request.
const maxRefusal = 600

// refused is an engine's error on one line of bearable length.
type refused struct{ err error }

// Error implements error.
func (r *refused) Error() string {
	text := strings.Join(strings.Fields(strings.TrimPrefix(r.err.Error(), "Error response from daemon: ")), " ")
	if len(text) > maxRefusal {
		half := maxRefusal / 2
		text = strings.ToValidUTF8(text[:half]+" ... "+text[len(text)-half:], "")
	}
	return text
}

// Unwrap gives the cause to errors.Is and errors.As.
func (r *refused) Unwrap() error { return r.err }
