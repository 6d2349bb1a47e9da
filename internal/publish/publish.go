package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/gateway/mcp"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/signing"
	"github.com/Insights/insightscli/internal/task"
)

// Options say whose tools they are, and what they work with.
type Options struct {
	Run, Task task.ID
	WorkDir   string // where relative paths of the agent begin
	CreatePR  bool   // the agent may open pull requests

	// Workspace returns the repositories of the run and a way into its sandbox.
	Workspace func() ([]repo.Prepared, repo.Execer, error)
	// Repos fetches with the access of the run.
	Repos func(context.Context) (*repo.Cache, error)
	// Credential returns what may write to one repository: to its contents, or to its pull
	// requests. An error says what to do about it.
	Credential func(ctx context.Context, owner, name string, pulls bool) (Credential, error)
	// Tell is told of everything that was published.
	Tell func(task.Published)

	GitHub  string       // where the pages and repositories are; "" is https://github.com
	APIURL  string       // of its API; "" is that of github.com
	Environ []string     // what git may find its way by
	Client  *http.Client // of GitHub's API; nil is a plain one
	Notify  func(string) // told of a wait; nil is nobody
}

// Credential writes to one repository.
type Credential struct {
	Token   func(context.Context) (secret.String, error)
	Refused func() // told that GitHub does not take the token any more; nil is nobody
	// User says that it is a person's: GitHub signs then only what createCommitOnBranch
	// makes.
	User bool
}

// Publisher has the tools of one run.
type Publisher struct {
	o Options

	mu    sync.Mutex
	locks map[int]chan struct{} // of the repositories, by number; full while a call works on it
}

// New returns the publisher of a run. It does nothing yet.
func New(o Options) *Publisher {
	if o.GitHub == "" {
		o.GitHub = "https://github.com"
	}
	o.GitHub = strings.TrimRight(o.GitHub, "/")
	return &Publisher{o: o, locks: map[int]chan struct{}{}}
}

// callBound is how long one call may take: a little less than whoever calls waits.
const callBound = 9 * time.Minute

// lock waits for the turn of a call on a repository.
func (p *Publisher) lock(ctx context.Context, n int) (unlock func(), err error) {
	p.mu.Lock()
	l := p.locks[n]
	if l == nil {
		l = make(chan struct{}, 1)
		p.locks[n] = l
	}
	p.mu.Unlock()
	select {
	case l <- struct{}{}:
		return func() { <-l }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// client publishes with a credential.
func (p *Publisher) client(c Credential) (*signing.Client, error) {
	return signing.New(signing.Options{
		APIURL: p.o.APIURL, Token: c.Token, Refused: c.Refused, UserToken: c.User,
		Environ: p.o.Environ, Client: p.o.Client, Notify: p.o.Notify,
	})
}

// tool makes a tool of a function that takes its arguments as they are decoded.
func tool[A any](name, description, schema string, do func(context.Context, A) (string, error)) mcp.Tool {
	return mcp.Tool{
		Name: name, Description: description, Schema: json.RawMessage(schema),
		Call: func(ctx context.Context, raw json.RawMessage) (string, error) {
			var args A
			if err := decode(raw, &args); err != nil {
				return "", err
			}
			late := fmt.Errorf("it did not end within %s: call it again, it does no harm", callBound)
			ctx, cancel := context.WithTimeoutCause(ctx, callBound, late)
			defer cancel()
			text, err := do(ctx, args)
			return text, forModel(ctx, err)
		},
	}
}

// forModel is an error with what to do about it.
func forModel(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	hint := errs.HintOf(err)
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w. To recover: %s", err, hint)
}
