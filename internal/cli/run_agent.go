package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/Insights/insightscli/internal/agentcli"
	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/gateway/llm"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/reply"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/skills"
	"github.com/Insights/insightscli/internal/task"
)

// defaultMCPURL is where the Insights MCP server of a developer's machine listens.
const defaultMCPURL = "http://localhost:8787/mcp"

// freezeModel decides how an agent that talks to a model does so: its words, where its
// requests go, what they may cost.
func (o *runOptions) freezeModel(_ context.Context, p *plan) error {
	if !p.spec.Agent.Drives() {
		return o.refuseModel()
	}
	a := p.config.Agents
	p.spec.Agent.Model, p.spec.Agent.Effort = a.Model, a.Effort
	p.spec.Agent.PermissionMode = a.PermissionMode
	if err := checkPermissionMode(p.spec.Agent.Name, a.PermissionMode); err != nil {
		return err
	}
	if a.PermissionMode == "" && p.spec.Mode == task.ModeInteractive {
		p.spec.Agent.PermissionMode = askingMode(p.spec.Agent.Name)
	}
	p.spec.TurnTime = task.Duration(a.TurnTimeout)
	p.spec.Session = o.session
	p.spec.LLM = task.LLM{
		AnthropicURL: a.AnthropicURL, OpenAIURL: a.OpenAIURL,
		MaxCost: a.MaxCost, MaxTokens: int64(a.MaxTokens), Prices: a.Prices,
	}
	if _, err := llm.ParsePrices(a.Prices); err != nil {
		return err
	}
	if url := p.config.LLMGatewayURL; url != "" && !ownGateway(url) {
		p.spec.LLM.ForwardURL = url
		return nil
	}
	return o.freezeKeys(p)
}

// refuseModel refuses the flags that mean nothing to a plain command.
func (o *runOptions) refuseModel() error {
	for _, s := range config.Settings() {
		if _, given := o.settings[s.Name]; given && slices.Contains(modelFlags(), s.Flag) {
			return usageError("--%s needs an agent that talks to a model, which a command does not", s.Flag)
		}
	}
	return nil
}

func modelFlags() []string {
	return []string{"model", "effort", "permission-mode", "turn-timeout", "max-cost", "max-tokens", "require-mcp", "follow-ci"}
}

// askingMode is the permission mode of an agent that somebody sits with.
func askingMode(agent string) string {
	switch agent {
	case task.AgentClaude:
		return "default"
	case task.AgentCodex:
		return "auto"
	}
	return ""
}

// freezeKeys takes the keys that the agent's requests need. They are sealed with the run.
func (o *runOptions) freezeKeys(p *plan) error {
	anthropic, err := o.freezeKey(p, anthropicKey(p.config))
	if err != nil {
		return err
	}
	openAI, err := o.freezeKey(p, openAIKey(p.config))
	if err != nil {
		return err
	}
	return checkRoute(p.spec.Agent.Name, anthropic, openAI)
}

// modelKey is the key of one maker of models, and its place.
type modelKey struct {
	variable, url string // names of settings
	agent         string // that needs it
	value         secret.String
	endpoint      string // empty: the maker's own
	sealed        string
	check         func(llm.Upstream) error
}

func anthropicKey(c config.Config) modelKey {
	return modelKey{
		"ANTHROPIC_API_KEY", "INSIGHTS_LLM_ANTHROPIC_URL", task.AgentClaude,
		c.Account.AnthropicKey, c.Agents.AnthropicURL, secretAnthropic, llm.CheckAnthropicKey,
	}
}

func openAIKey(c config.Config) modelKey {
	return modelKey{
		"OPENAI_API_KEY", "INSIGHTS_LLM_OPENAI_URL", task.AgentCodex,
		c.Account.OpenAIKey, c.Agents.OpenAIURL, secretOpenAI, llm.CheckOpenAIKey,
	}
}

// freezeKey takes one key, unless the agent has no use for it. It reports whether the
// requests of its dialect go anywhere.
func (o *runOptions) freezeKey(p *plan, k modelKey) (ready bool, err error) {
	agent := p.spec.Agent.Name
	if other := agent == task.AgentClaude || agent == task.AgentCodex; other && agent != k.agent {
		return false, nil
	}
	if k.value.Empty() {
		return k.endpoint != "", nil
	}
	if err := k.check(llm.Upstream{URL: k.endpoint, Key: k.value}); err != nil {
		return false, err
	}
	p.secrets[k.sealed] = k.value
	return true, nil
}

// The names under which the keys of models are sealed.
const (
	secretAnthropic = "insightscli.llm.anthropic"
	secretOpenAI    = "insightscli.llm.openai"
	secretMCP       = "insightscli.mcp." // followed by the name of the variable
)

// checkRoute refuses an agent whose requests to a model could go nowhere.
func checkRoute(agent string, anthropic, openAI bool) error {
	const hint = "set %s in the environment or in .env, or point %s at a compatible endpoint"
	switch {
	case anthropic || openAI:
		return nil
	case agent == task.AgentClaude:
		return errs.New("cli.run", errs.Config, fmt.Sprintf(hint, "ANTHROPIC_API_KEY", "INSIGHTS_LLM_ANTHROPIC_URL"),
			"agent claude needs a key of the Anthropic API, and ANTHROPIC_API_KEY is not set")
	case agent == task.AgentCodex:
		return errs.New("cli.run", errs.Config, fmt.Sprintf(hint, "OPENAI_API_KEY", "INSIGHTS_LLM_OPENAI_URL"),
			"agent codex needs a key of the OpenAI API, and OPENAI_API_KEY is not set")
	}
	return errs.New("cli.run", errs.Config, fmt.Sprintf(hint, "ANTHROPIC_API_KEY or OPENAI_API_KEY", "INSIGHTS_LLM_ANTHROPIC_URL or INSIGHTS_LLM_OPENAI_URL"),
		"agent %s needs a model, and no key is set", agent)
}

// freezeSchema reads the schema of the reply.
func (o *runOptions) freezeSchema(_ context.Context, p *plan) error {
	if o.schema == "" {
		return nil
	}
	raw, err := readSchema(o.schema)
	p.spec.Schema = raw
	return err
}

// readSchema reads and checks a file with a JSON Schema.
func readSchema(path string) ([]byte, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, errs.New("cli.run", errs.Usage, "give the path of a file with a JSON Schema", "read the schema: %w", err)
	}
	s, err := reply.Compile(bytes.TrimPrefix(raw, []byte("\ufeff"))) // as some editors begin a file
	if err != nil {
		return nil, errs.New("cli.run", errs.Usage, "correct the schema", "%s: %w", path, err)
	}
	return s.Raw(), nil
}

// freezeProgram finds the agent's program on this machine, for sandboxes whose image has
// none. A provider without images has nothing else.
func (o *runOptions) freezeProgram(_ context.Context, p *plan) error {
	name := p.spec.Agent.Name
	explicit := map[string]string{task.AgentClaude: p.config.Agents.ClaudePath, task.AgentCodex: p.config.Agents.CodexPath}
	path, ours := explicit[name]
	if !ours {
		return o.checkACP(p)
	}
	found, err := o.app.findAgent(name, agentcli.Options{
		Path: p.config.Machine.Path, Explicit: path, Platform: "linux/" + runtime.GOARCH,
	})
	if err != nil && (p.spec.Image == "" || path != "" || isTemplate(p.spec)) {
		return err // our own images have no agents
	}
	p.spec.Agent.Program = found.Source
	return nil
}

// isTemplate reports whether the image of a run is that of its template.
func isTemplate(spec task.Spec) bool {
	t, err := image.Parse(spec.Template)
	return err == nil && spec.Image == t.Tag()
}

// checkACP refuses an agent of the protocol whose program this machine does not have,
// where the sandbox has nothing else.
func (o *runOptions) checkACP(p *plan) error {
	command, acp := strings.CutPrefix(p.spec.Agent.Name, task.AgentACP)
	words := strings.Fields(command)
	if !acp || len(words) == 0 || p.spec.Image != "" || strings.ContainsAny(words[0], `'"\`) {
		return nil // an image may have it, and quotes are the agent server's to read
	}
	dirs := filepath.SplitList(p.config.Machine.Path)
	if strings.ContainsRune(words[0], '/') {
		dirs = []string{""}
	}
	for _, dir := range dirs {
		if info, err := os.Stat(filepath.Join(dir, words[0])); err == nil && !info.IsDir() {
			return nil
		}
	}
	return errs.New("cli.run", errs.Config, "install it in a directory of your PATH, or use --provider=docker with an image that has it",
		"this machine has no program %q for agent %s", words[0], p.spec.Agent.Name)
}

// freezeSkills builds the bundle of skills, where any are configured.
func (o *runOptions) freezeSkills(ctx context.Context, p *plan) error {
	a := p.config.Agents
	if !p.spec.Agent.Drives() || len(a.Skills) == 0 && a.SkillsOverlay == "" {
		return nil
	}
	s, err := o.app.openState(ctx, p.config)
	if err != nil {
		return err
	}
	options, err := s.skillOptions(ctx)
	if err != nil {
		return err
	}
	b, err := skills.Ensure(ctx, options)
	if err != nil {
		return err
	}
	p.spec.Skills = b.Hash
	p.warnings = append(p.warnings, b.Warnings...)
	return nil
}

// skillOptions say what a bundle is made of, and which bundles live runs use.
func (s *state) skillOptions(ctx context.Context) (skills.Options, error) {
	live, err := s.store.Runs(ctx, journal.Filter{Live: true})
	if err != nil {
		return skills.Options{}, err
	}
	a := s.config.Agents
	o := skills.Options{Sources: a.Skills, Overlay: a.SkillsOverlay, Dir: s.dir}
	for _, rec := range live {
		o.Keep = append(o.Keep, rec.Spec.Skills)
	}
	return o, nil
}
