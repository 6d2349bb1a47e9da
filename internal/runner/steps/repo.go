package steps

import (
	"context"
	"io"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/task"
)

// RepoIn asks for what only the sandbox itself can do to its repositories.
type RepoIn struct {
	Repos []repo.Prepared `json:"repos"`
}

// RepoOut is empty: the repositories are ready.
type RepoOut struct{}

// Repo finishes the repositories inside the sandbox, before there is an agent.
func (s *Steps) Repo(ctx context.Context, c *agent.Client, in RepoIn) (RepoOut, error) {
	for _, r := range in.Repos {
		if err := s.Repos.Setup(ctx, execer{c}, r); err != nil {
			return RepoOut{}, err
		}
	}
	return RepoOut{}, nil
}

// CaptureIn asks for what became of the repositories.
type CaptureIn struct {
	Repos []repo.Prepared `json:"repos"`
}

// CaptureOut has one result a repository.
type CaptureOut struct {
	Repos []task.RepoResult `json:"repos"`
}

// Capture takes the changes out of the sandbox. What goes wrong with one repository
// is in its result and does not keep the others.
func (s *Steps) Capture(ctx context.Context, c *agent.Client, in CaptureIn) CaptureOut {
	var out CaptureOut
	for _, r := range in.Repos {
		res, err := s.Repos.Capture(ctx, execer{c}, r)
		if err != nil {
			res.Org, res.Name, res.Base, res.Error = r.Repo.Org, r.Repo.Name, r.Base, err.Error()
		}
		out.Repos = append(out.Repos, res)
	}
	return out
}

// NewWorkspace returns the workspace behind a link.
func NewWorkspace(repos []repo.Prepared, c *agent.Client) Workspace {
	return Workspace{Repos: repos, Exec: execer{c}}
}

// execer lets package repo run commands over the link.
type execer struct{ c *agent.Client }

// Exec implements repo.Execer.
func (e execer) Exec(ctx context.Context, cmd wire.Command, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	return e.c.Exec(ctx, cmd, agent.Stdio{In: stdin, Out: stdout, Err: stderr})
}
