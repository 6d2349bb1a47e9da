package mcp

import (
	"context"
	"io"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// The names of the servers that are not the user's.
const (
	Own      = "sandbox"  // our own tools
	Insights = "insights" // the relay to the Insights MCP server
)

// Config is everything that a hub needs to know. Run, Do and CheckToken are required.
type Config struct {
	Run        task.ID
	Do         Run
	CheckToken func(ctx context.Context, token secret.String) error

	Insights *InsightsServer  // nil, or without a URL: none
	Servers  []task.MCPServer // the user's
	Require  []string         // names of servers without which Connect is an error
	Approve  string           // pattern of the tools that need leave; empty: none does
	Tools    []Tool           // served beside our own

	// Expand replaces "${NAME}" in a header's or a variable's value; nil leaves it.
	Expand func(value string) (secret.String, error)
	// Ask asks people for leave and returns the id of an option; nil: nobody is there.
	Ask func(ctx context.Context, p task.Permission) (string, error)
	// Notice tells people one line; nil: nobody listens. Level is info or warn.
	Notice func(level, text string)
	// Fetch reads a file of the sandbox; nil: upload_artifact takes no path.
	Fetch func(ctx context.Context, path string) (io.ReadCloser, error)

	// Environ is what a server's process gets beside its own variables, such as PATH and
	// HOME. It never gets the environment of this process.
	Environ []string
	WorkDir string // where relative paths of the agent begin; empty is the workspace
}

// InsightsServer is the Insights MCP server.
type InsightsServer struct {
	URL       string // host.docker.internal in it means this machine
	Token     secret.String
	ProjectID string
	ReadOnly  bool
	Default   bool // nobody chose the URL: its absence is no surprise
}

// Run is what the tools of the agent do to its run.
type Run interface {
	// Progress records what the agent says it is doing.
	Progress(ctx context.Context, step, message string) error
	// Artifact stores what r gives, which ends in an error when it is too large, and
	// returns what became of it, such as "kept as report.md". What it could not store
	// leaves nothing behind.
	Artifact(ctx context.Context, a Artifact, r io.Reader) (where string, err error)
	// Finish records the agent's own verdict: completed or failed. It may come more than
	// once.
	Finish(ctx context.Context, status, summary string) error
}

// Artifact says what a stored file is. Name is one element of a path, without
// surprises; MediaType is well-formed.
type Artifact struct {
	Name      string
	MediaType string
}

var (
	serverName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	})
	headerName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	})
)

// Validate checks what the user wrote about a server. Errors are of kind Config, have a
// hint and repeat no header's and no variable's value.
func Validate(s task.MCPServer) error {
	bad := func(hint, format string, args ...any) error {
		return errs.New("mcp.Validate", errs.Config, hint, "MCP server %q: "+format, append([]any{s.Name}, args...)...)
	}
	switch {
	case !serverName().MatchString(s.Name) || strings.Contains(s.Name, "__"):
		return bad("use lower-case letters, digits, - and single _, such as my-server", "that is no name for a server")
	case s.Name == Own || s.Name == Insights || s.Name == "mcp":
		return bad("give it another name", "the name is taken by a server of ours")
	case (s.URL == "") == (len(s.Command) == 0):
		return bad("give it a url, or a command that speaks MCP over its standard streams", "it needs exactly one of url and command")
	case s.URL == "" && s.Command[0] == "":
		return bad("name a program", "its command is empty")
	case s.URL != "" && !validURL(s.URL):
		return bad("write it as http://HOST:PORT/PATH or https://HOST/PATH", "%q is no address of an MCP server", s.URL)
	}
	for k := range s.Headers {
		if !headerName().MatchString(k) {
			return bad("write headers as a mapping from name to value", "%q is no name of a header", k)
		}
	}
	for k := range s.Env {
		if k == "" || strings.ContainsAny(k, "=\x00") {
			return bad("write env as a mapping from name to value", "%q is no name of a variable", k)
		}
	}
	return nil
}

func validURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.Fragment == ""
}

func (c Config) hasInsights() bool { return c.Insights != nil && c.Insights.URL != "" }

// check reports what is wrong with the configuration as a whole, and compiles the
// pattern.
func (c Config) check() (*regexp.Regexp, error) {
	names := map[string]bool{Own: true}
	if c.hasInsights() {
		names[Insights] = true
		if !validURL(c.Insights.URL) {
			return nil, errs.New("mcp.New", errs.Config, "set SANDBOX_MCP_URL to http://HOST:PORT/mcp",
				"%q is no address of the Insights MCP server", c.Insights.URL)
		}
	}
	for _, s := range c.Servers {
		if err := Validate(s); err != nil {
			return nil, err
		}
		if names[s.Name] {
			return nil, errs.New("mcp.New", errs.Config, "give one of them another name", "two MCP servers are named %q", s.Name)
		}
		names[s.Name] = true
	}
	for _, n := range c.Require {
		if !names[n] {
			return nil, errs.New("mcp.New", errs.Config, "add it to INSIGHTS_MCP_SERVERS, or require it no more",
				"the required MCP server %q is not configured", n)
		}
	}
	return CompileApproval(c.Approve)
}

// CompileApproval reads the pattern of the tools that need leave, which does not mind
// case. The empty pattern is nil.
func CompileApproval(pattern string) (*regexp.Regexp, error) {
	if pattern == "" {
		return nil, nil
	}
	re, err := regexp.Compile("(?i:" + pattern + ")")
	if err != nil {
		return nil, errs.New("mcp.CompileApproval", errs.Config, "set INSIGHTS_EXEC_PERMISSION_REGEX to a regular expression of Go",
			"the pattern of tools that need leave: %w", err)
	}
	return re, nil
}
