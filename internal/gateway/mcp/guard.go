package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/Insights/insightscli/internal/task"
)

// writes matches the names of tools that change something, for servers that do not
// annotate theirs.
var writes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(^|-)(partial-update|update|patch|delete|destroy|create|add|set|put|post|remove|archive|restore|` +
		`enable|disable|move|rename|copy|duplicate|launch|pause|resume|reset|end|ship|merge|invite|write|import|upload|send)(-|$)`)
})

// guard decides which tools of one server are listed and called.
type guard struct {
	server   string
	readOnly bool
	approve  *regexp.Regexp // nil: no tool needs leave
	ask      func(ctx context.Context, p task.Permission) (string, error)

	asking  chan struct{}   // held while people are asked: one question at a time
	asked   int             // questions; who holds asking has it
	mu      sync.Mutex      // guards allowed
	allowed map[string]bool // what may be called without another question
}

func newGuard(server string, readOnly bool, cfg Config, approve *regexp.Regexp) *guard {
	return &guard{
		server: server, readOnly: readOnly, approve: approve, ask: cfg.Ask,
		asking: make(chan struct{}, 1), allowed: map[string]bool{},
	}
}

// kebab is the form of a tool's name that patterns are written for.
func kebab(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "-")) }

// listed reports whether the agent may know of t.
func (g *guard) listed(t *sdk.Tool) bool {
	switch {
	case !g.readOnly || dispatches(g.server, t.Name):
		return true
	case t.Annotations != nil:
		return t.Annotations.ReadOnlyHint
	}
	return !writes().MatchString(kebab(t.Name))
}

// check decides about one call: refused is what the model is told if it may not be made.
func (g *guard) check(ctx context.Context, t *sdk.Tool, args json.RawMessage) (refused string, err error) {
	names := []string{t.Name}
	if dispatches(g.server, t.Name) {
		names = append(names, dispatched(args)...)
	}
	if g.readOnly {
		if !g.listed(t) {
			return fmt.Sprintf("%q may change data, and this run may only read: its scopes have no write.", t.Name), nil
		}
		for _, n := range names[1:] {
			if writes().MatchString(kebab(n)) {
				return fmt.Sprintf("%q may change data, and this run may only read: its scopes have no write.", cut(n, maxName)), nil
			}
		}
	}
	if g.approve == nil {
		return "", nil
	}
	for _, n := range names {
		if n = kebab(n); g.approve.MatchString(n) {
			if refused, err := g.leave(ctx, n, args); refused != "" || err != nil {
				return refused, err
			}
		}
	}
	return "", nil
}

// leave asks people whether the tool may be called, unless they said always.
func (g *guard) leave(ctx context.Context, tool string, args json.RawMessage) (refused string, err error) {
	select {
	case g.asking <- struct{}{}:
		defer func() { <-g.asking }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	g.mu.Lock()
	ok := g.allowed[tool]
	g.mu.Unlock()
	if ok {
		return "", nil
	}
	option := task.RejectOnce
	if g.asked++; g.asked > maxQuestions {
		return fmt.Sprintf("%q needs somebody's leave, and this run has asked for it as often as it may.", cut(tool, maxName)), nil
	}
	if g.ask != nil {
		if option, err = g.ask(ctx, g.question(tool, args)); err != nil {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			return fmt.Sprintf("%q needs somebody's leave, and nobody could be asked: %s", cut(tool, maxName), err), nil
		}
	}
	switch option {
	case task.AllowAlways:
		g.mu.Lock()
		g.allowed[tool] = true
		g.mu.Unlock()
		return "", nil
	case task.AllowOnce:
		return "", nil
	}
	return fmt.Sprintf("%q changes or deletes data and needs somebody's leave, which was not given. Do not try again or work around it; "+
		"go on without, and say what you would have done. People can give leave in a run with --mode interactive, "+
		"or let such tools through with INSIGHTS_EXEC_PERMISSION_REGEX.", cut(tool, maxName)), nil
}

// maxQuestions is how often people are asked about the tools of one server in one run:
// every question is kept for good.
const maxQuestions = 1000

// maxShown bounds the arguments that people are shown.
const maxShown = 16 << 10

func (g *guard) question(tool string, args json.RawMessage) task.Permission {
	kind := "edit"
	if strings.Contains(tool, "delete") || strings.Contains(tool, "destroy") {
		kind = "delete"
	}
	if len(args) > maxShown || !json.Valid(args) {
		args, _ = json.Marshal(map[string]string{"cut": cut(string(args), maxShown)})
	}
	id := string(task.NewID())
	return task.Permission{
		RequestID: id,
		ToolCall:  task.PermissionTool{ID: id, Title: g.server + ": " + cut(tool, maxName), Kind: kind, Input: args},
		Options: []task.PermissionOption{
			{ID: task.AllowOnce, Name: "Allow once", Kind: task.AllowOnce},
			{ID: task.AllowAlways, Name: "Allow this tool in this run", Kind: task.AllowAlways},
			{ID: task.RejectOnce, Name: "Reject", Kind: task.RejectOnce},
		},
		Default: task.RejectOnce,
	}
}
