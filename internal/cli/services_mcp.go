package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/gateway/mcp"
	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// newHub makes the MCP servers of a run.
func (v *services) newHub(ctx context.Context, spec task.Spec, r steps.Reporter) (*mcp.Hub, error) {
	values, err := v.secrets.All(ctx, spec.Run)
	if err != nil {
		return nil, err
	}
	return mcp.New(mcp.Config{
		Run: spec.Run,
		Do:  &agentsHand{run: spec.Run, reporter: r, dir: artifactsDir(v.dir, spec.Run)},
		CheckToken: func(ctx context.Context, token secret.String) error {
			g, err := v.check(ctx, token, "")
			if err == nil && g.Run != spec.Run {
				return errs.New("cli.services", errs.Auth, "", "the access token is another run's")
			}
			return err
		},
		Insights: &mcp.InsightsServer{
			URL: spec.MCP.URL, Token: values[steps.SecretToken], ProjectID: fmt.Sprint(spec.Team),
			ReadOnly: !platform.HasWrite(spec.Scopes), Default: spec.MCP.URL == defaultMCPURL,
		},
		Servers: spec.MCP.Servers, Require: spec.MCP.Require, Approve: spec.MCP.Approve,
		Expand: func(text string) (secret.String, error) { return expand(text, values) },
		Ask:    r.Ask,
		Notice: func(level, text string) { r.Tell(task.KindNotice, task.Notice{Level: level, Message: text}) },
		Fetch: func(ctx context.Context, path string) (io.ReadCloser, error) {
			return fetch(func(w io.Writer) error { return r.ReadFile(ctx, path, w) }), nil
		},
		Environ: []string{"PATH=" + v.config.Machine.Path, "HOME=" + v.config.Machine.Home},
		WorkDir: spec.WorkDir(), Tools: v.publishTools(spec, r, unsealGitHubKeys(values)),
	})
}

// fetched is a file on its way.
type fetched struct {
	*io.PipeReader
	copying sync.WaitGroup
}

// fetch returns what copy writes, as it comes.
func fetch(from func(w io.Writer) error) io.ReadCloser {
	pr, pw := io.Pipe()
	f := &fetched{PipeReader: pr}
	f.copying.Go(func() { _ = pw.CloseWithError(from(pw)) })
	return f
}

// Close implements io.Closer: nothing is copied any more when it returns.
func (f *fetched) Close() error {
	err := f.PipeReader.Close()
	f.copying.Wait()
	return err
}

// hubOf finds the MCP servers of the run whose token this is, for outside clients.
func (v *services) hubOf(ctx context.Context, token secret.String) (*mcp.Hub, error) {
	g, err := v.check(ctx, token, "")
	if err != nil {
		return nil, err
	}
	if s := v.find(g.Run); s != nil && s.hub != nil {
		return s.hub, nil
	}
	return nil, errs.New("cli.services", errs.NotFound, "", "run %s is not carried out by this process", g.Run.Short())
}

// agentsHand is what the agent's own tools do to its run.
type agentsHand struct {
	run      task.ID
	reporter steps.Reporter
	dir      string // of artifacts
}

var _ mcp.Run = (*agentsHand)(nil)

// Progress implements mcp.Run.
func (a *agentsHand) Progress(_ context.Context, step, message string) error {
	if step != "" {
		message = step + ": " + message
	}
	a.reporter.Tell(task.KindNotice, task.Notice{Level: "info", Message: message})
	return nil
}

// Finish implements mcp.Run.
func (a *agentsHand) Finish(ctx context.Context, status, summary string) error {
	return a.reporter.End(ctx, task.State(status), summary)
}

// Artifact implements mcp.Run: the file lies below the state directory, whole or not at
// all, and is never larger than the reader lets it become.
func (a *agentsHand) Artifact(_ context.Context, f mcp.Artifact, r io.Reader) (string, error) {
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return "", err
	}
	tmp, err := os.CreateTemp(a.dir, ".new-*")
	if err != nil {
		return "", err
	}
	_, err = io.Copy(tmp, r)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	path := filepath.Join(a.dir, f.Name)
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(tmp.Name()))
	}
	a.reporter.Tell(task.KindNotice, task.Notice{Level: "info", Message: "the agent has left an artifact: " + path})
	return "kept as " + f.Name, nil
}

// The directory of artifacts in the state directory, and the beginning of the names in it.
const (
	artifacts      = "artifacts"
	artifactsOfRun = "run_"
)

// artifactsDir is where the artifacts of a run are kept.
func artifactsDir(state string, run task.ID) string {
	return filepath.Join(state, artifacts, artifactsOfRun+string(run))
}
