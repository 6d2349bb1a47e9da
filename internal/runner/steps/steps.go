// Package steps holds the steps of a run, written once: methods with a plain struct
// in and a plain struct out, which the embedded runner calls directly and a
// workflow engine may wrap as activities. Every struct round-trips JSON and holds
// no secret; every step is safe to repeat, because a crash between a step and the
// record of it repeats it.
//
// The steps know nothing of events, screens, signals or time limits: the runner
// has those.
package steps

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"path/filepath"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// Names of the secrets that the steps themselves put beside the user's.
const (
	SecretLinkKey = journal.SecretLinkKey // the run's link keys
	SecretToken   = "insightscli.token"
	// SecretPlain is followed by a name: such a value is sealed like the others and not
	// masked, because it may be an ordinary word.
	SecretPlain = "insightscli.plain."
)

// tokens mints the scoped access token of a run.
type tokens interface {
	Mint(ctx context.Context, run task.ID, scopes []string, ttl time.Duration) (secret.String, error)
	Renew(ctx context.Context, run task.ID, ttl time.Duration) error
	Revoke(ctx context.Context, run task.ID) error
}

// secrets keeps the sealed values of a run.
type secrets interface {
	Get(ctx context.Context, run task.ID, name string) (secret.String, error)
	All(ctx context.Context, run task.ID) (map[string]secret.String, error)
	Put(ctx context.Context, run task.ID, name string, value secret.String) error
}

// Steps is what the steps need. The zero value is not usable; wiring fills it.
type Steps struct {
	// Provider returns the provider that a Spec names, or why there is none here.
	Provider func(ctx context.Context, spec task.Spec) (sandbox.Provider, error)
	Tokens   tokens
	Secrets  secrets
	Repos    *repo.Cache
	// ReposOf is Repos with the access to private repositories that a run has; nil: that
	// of Repos.
	ReposOf func(ctx context.Context, run task.ID) (*repo.Cache, error)

	// AgentServer returns the path of the agent-server binary for this machine's
	// sandboxes, unpacked if need be.
	AgentServer func(ctx context.Context) (string, error)
	// EnsureImage builds the image of a template unless it is there.
	EnsureImage func(ctx context.Context, spec task.Spec, t image.Template, progress func(string)) error
	// JWTKey returns the PEM of the public key that outside clients of a published
	// agent server are checked against, and its key id.
	JWTKey func(ctx context.Context) (pem []byte, kid string, err error)

	// Proxies are those of this machine, for sandboxes with a network of their own.
	Proxies Proxies
	// Services makes what the host offers to the sandbox of a run; nil: nothing.
	Services func(ctx context.Context, spec task.Spec, run Reporter) (Services, error)
	// GitHubToken makes a credential that reads a run's repositories. It is among the run's
	// secrets when it is returned. Not ok: nobody has such credentials, and gh in the
	// sandbox is on its own. nil: likewise.
	GitHubToken func(ctx context.Context, spec task.Spec) (t GitHubToken, ok bool, err error)
	// RevokeGitHub ends every credential of GitHub that was made for a run, as far as it
	// can. It may be nil.
	RevokeGitHub func(ctx context.Context, run task.ID)
	// FirstRefresh is after how long a credential is first renewed; 0 is the default.
	FirstRefresh time.Duration
	// SkillsDir is the directory of a bundle of skills, by its hash.
	SkillsDir func(hash string) string
	// SkillsTar writes the skills of a bundle as a tar archive, one directory each.
	SkillsTar func(hash string, w io.Writer) error
	Debug     bool   // this is a developer's machine: agents do not fall back to other models
	Dir       string // the state directory
	Owner     string // value of sandbox.LabelOwner
	Domain    string // value of sandbox.LabelState
}

// RunDir is the run's own directory on the host.
func (s *Steps) RunDir(run task.ID) string { return filepath.Join(s.Dir, "run", string(run)) }

// hostKey reads the run's link keys.
func (s *Steps) hostKey(ctx context.Context, run task.ID) (link.HostKey, error) {
	v, err := s.Secrets.Get(ctx, run, SecretLinkKey)
	if err != nil {
		return link.HostKey{}, err
	}
	return ParseLinkKey(run, v)
}

// linkKey is the stored form of link.HostKey.
type linkKey struct {
	Private []byte `json:"private"`
	Secret  []byte `json:"secret"`
}

// NewLinkKey makes the link keys of a run, in the form that is sealed.
func NewLinkKey(run task.ID) (secret.String, error) {
	k, err := link.NewKeys(string(run))
	if err != nil {
		return secret.String{}, err
	}
	private, err := k.Bytes()
	if err != nil {
		return secret.String{}, err
	}
	b, err := json.Marshal(linkKey{Private: private, Secret: k.Secret})
	return secret.New(string(b)), err
}

// ParseLinkKey reads what NewLinkKey made.
func ParseLinkKey(run task.ID, v secret.String) (link.HostKey, error) {
	var k linkKey
	err := json.Unmarshal([]byte(v.Reveal()), &k)
	if err == nil {
		var key link.HostKey
		if key, err = link.ParseKeys(string(run), k.Private, k.Secret); err == nil {
			return key, nil
		}
	}
	// Without the cause, which could hold what was read.
	return link.HostKey{}, errs.New("steps.ParseLinkKey", errs.Internal, "", "link key of run %s is damaged", run.Short())
}

// Connect opens a link to a sandbox, makes the handshake and serves handlers over it.
func (s *Steps) Connect(ctx context.Context, run task.ID, box sandbox.Sandbox, handlers map[string]link.Handler) (*agent.Client, error) {
	key, err := s.hostKey(ctx, run)
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	if conn, err = box.Link(ctx); err != nil {
		return nil, err
	}
	c, err := agent.Connect(ctx, conn, key, handlers)
	if err != nil {
		_ = conn.Close() // the handshake's error is the one that matters
		return nil, err
	}
	return c, nil
}
