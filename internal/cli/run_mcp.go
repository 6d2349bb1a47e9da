package cli

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/gateway/mcp"
	"github.com/Insights/insightscli/internal/runner/steps"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// freezeMCP decides which MCP servers the agent gets.
func (o *runOptions) freezeMCP(_ context.Context, p *plan) error {
	if !p.spec.Agent.Drives() {
		return nil
	}
	a := p.config.Agents
	m := task.MCP{URL: p.config.MCPURL, Require: a.RequireMCP, Approve: a.Approval}
	if m.URL == "" {
		m.URL = defaultMCPURL
	}
	if m.Approve == "none" {
		m.Approve = ""
	}
	if _, err := mcp.CompileApproval(m.Approve); err != nil {
		return errs.New("cli.run", errs.Config, "correct it, or set it to none", "INSIGHTS_EXEC_PERMISSION_REGEX: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(a.MCPServers)) {
		s := a.MCPServers[name]
		server := task.MCPServer{Name: name, URL: s.URL, Headers: s.Headers, Env: s.Env}
		if s.Command != "" {
			server.Command = append([]string{s.Command}, s.Args...)
		}
		if err := mcp.Validate(server); err != nil {
			return err
		}
		if err := o.sealServer(p, &server); err != nil {
			return err
		}
		m.Servers = append(m.Servers, server)
	}
	p.spec.MCP = m
	return checkRequired(m)
}

// checkRequired refuses the requirement of a server that there cannot be.
func checkRequired(m task.MCP) error {
	known := []string{mcp.Insights, mcp.Own}
	for _, s := range m.Servers {
		known = append(known, s.Name)
	}
	for _, name := range m.Require {
		if !slices.Contains(known, name) {
			return errs.New("cli.run", errs.Usage, "there are "+strings.Join(known, ", "), "--require-mcp: there is no MCP server %q", name)
		}
	}
	return nil
}

// sealServer keeps the values of a server's headers and variables out of the Spec, which
// is recorded and shown as it is: every value is sealed, and a name stands in its place.
func (o *runOptions) sealServer(p *plan, s *task.MCPServer) (err error) {
	if s.Headers, err = o.sealValues(p, s.Name, s.Headers); err == nil {
		s.Env, err = o.sealValues(p, s.Name, s.Env)
	}
	return err
}

// sealValues seals the variables of ours that a text names and, where it names none, the
// text itself.
func (o *runOptions) sealValues(p *plan, server string, texts map[string]string) (map[string]string, error) {
	named := make(map[string]string, len(texts))
	for key, text := range texts {
		names := variables(text)
		if len(names) == 0 && text != "" {
			name := server + ":" + key // no variable is called so
			named[key] = "${" + name + "}"
			p.secrets[literalPrefix(key)+name] = secret.New(text)
			continue
		}
		named[key] = text
		for _, name := range names {
			_, value, err := config.ParseVar(name, o.app.process.Environ)
			if err != nil {
				return nil, errs.New("cli.run", errs.Config, "set the variable, or correct the entry", "INSIGHTS_MCP_SERVERS: server %s: %w", server, err)
			}
			p.secrets[secretMCP+name] = secret.New(value)
		}
	}
	return named, nil
}

var credential = regexp.MustCompile(`(?i)auth|cookie|key|token|secret|passw|credential`)

// literalPrefix is the kind of secret that the value of a header or variable is. An
// ordinary one must not be masked: it may be a word such as "production".
func literalPrefix(key string) string {
	if credential.MatchString(key) {
		return secretMCP
	}
	return steps.SecretPlain + secretMCP
}

// variables are the names in the ${NAME} of a text.
func variables(text string) []string {
	var names []string
	for _, m := range variable.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// variable is what a user writes, reference what stands in the Spec.
var (
	variable  = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	reference = regexp.MustCompile(`\$\{([^}]+)\}`)
)

// expand replaces each ${NAME} in text by the value that was sealed under that name.
func expand(text string, values map[string]secret.String) (secret.String, error) {
	var missing error
	out := reference.ReplaceAllStringFunc(text, func(m string) string {
		name := secretMCP + m[2:len(m)-1]
		value, ok := values[name]
		if !ok {
			value, ok = values[steps.SecretPlain+name]
		}
		if !ok {
			missing = errs.New("cli.services", errs.Conflict, "start the run again", "the value of %s is gone", m)
		}
		return value.Reveal()
	})
	return secret.New(out), missing
}
