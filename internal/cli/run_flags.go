package cli

import (
	"net"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// maxPrompt is the length of a prompt, in bytes: as much as an event holds.
const maxPrompt = 1<<20 - 1<<16

// maxTitle is the length of a task's title, in characters.
const maxTitle = 255

// completeValues has the shell propose the values of those flags that have few.
func (a *app) completeValues(cmd *cobra.Command) {
	for flag, values := range map[string][]string{
		"agent":           {task.AgentClaude, task.AgentCodex, agentExec},
		"mode":            {string(task.ModeBackground), string(task.ModeInteractive)},
		"permission-mode": slices.Compact(slices.Sorted(slices.Values(slices.Concat(permissionModes(task.AgentClaude), permissionModes(task.AgentCodex))))),
		"provider":        {config.ProviderDocker, config.ProviderLocal},
		"network":         {string(task.NetworkFull), string(task.NetworkTrusted), string(task.NetworkCustom), string(task.NetworkLink), networkNone},
		"scopes":          {"full", "read_only"},
		"template":        {"default_base"},
		"tools":           {"auto", "none"},
		"origin-product":  originProducts(),
	} {
		// It fails only for a flag that does not exist, which the test of completion sees.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("env", a.completeEnvironmentFlag) // as above
	_ = cmd.MarkFlagDirname("repo")                                      // as above
	_ = cmd.MarkFlagFilename("schema")                                   // as above
}

// addFlags binds the flags of `run`. Those that override a setting are only
// declared: givenSettings hands them to the configuration, which knows their types
// and defaults.
func (o *runOptions) addFlags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.agent, "agent", "", "`AGENT` that works: exec (the default with -- COMMAND), claude, codex or acp:CMD")
	f.StringArrayVar(&o.repos, "repo", nil, "`REPO` to work in: org/repo, a git URL or a local path (repeatable)")
	f.StringVar(&o.branch, "branch", "", "`BRANCH` to start from (default: HEAD of a local path, else the remote's default)")
	f.BoolVar(&o.fullHistory, "full-history", false, "fetch all commits and branches of a repository on a server, not only the newest")
	f.BoolVar(&o.uncommitted, "uncommitted", false, "bring the uncommitted work of local repositories along")
	f.BoolVar(&o.mount, "mount", false, "bind local repositories read-write instead of cloning them")
	f.BoolVar(&o.trustMount, "trust-mount", false, "mount although .git/config and hooks cannot be protected from the sandbox")
	f.StringVar(&o.title, "title", "", "`TITLE` of the task (default: from PROMPT or COMMAND)")
	f.StringVar(&o.originProduct, "origin-product", "user_created", "`PRODUCT` that creates the task")
	f.String("scopes", "full", "what the agent may do in Insights: read_only, full or a `LIST` such as query:read,insight:read")
	f.BoolVar(&o.createPR, "create-pr", true, "have the agent publish on GitHub and open a pull request; false: it opens none")
	f.Bool("follow-ci", false, "ask the agent again where checks or reviews of its pull request find something (needs --create-pr)")
	f.String("model", "", "`MODEL` of the agent (default: its own choice)")
	f.String("effort", "", "reasoning `EFFORT` of the agent, in its own words")
	f.String("permission-mode", "", "what the agent may do without asking: `MODE` in its own words (default: everything, or asking if interactive)")
	f.String("turn-timeout", "30m", "limit of `TIME` for one turn of the agent; 0: none")
	f.String("max-cost", "0", "end of the budget in US `DOLLARS`, by the price list; 0: none")
	f.String("max-tokens", "0", "end of the budget in `TOKENS`; 0: none")
	f.String("require-mcp", "", "fail without these MCP servers: `NAMES`, comma-separated; insights is the Insights MCP server")
	f.StringVar(&o.mode, "mode", string(task.ModeBackground), "`MODE` of the run: background, or interactive if somebody is there to answer")
	f.StringArrayVar(&o.envVars, "env-var", nil, "variable for the agent: `K[=V]`, without V the value it has here (repeatable)")
	f.StringArrayVar(&o.secrets, "secret", nil, "secret for the agent: `K[=V]`, masked everywhere (repeatable)")
	f.StringVar(&o.schema, "schema", "", "`FILE` with the JSON Schema of the agent's reply")
	f.String("provider", "", "`PROVIDER` of the sandbox: docker, local, modal or MODAL_DOCKER (default: docker if an engine answers, else local)")
	f.StringVar(&o.environment, "env", "", "sandbox environment called `NAME`")
	f.String("template", "default_base", "`TEMPLATE` of the sandbox")
	f.StringVar(&o.image, "image", "", "`IMAGE` of the sandbox (default: the template's)")
	f.String("runtime", "", "OCI `RUNTIME` of a Docker sandbox, such as runsc (default: the engine's own choice)")
	f.String("cpus", "", "`N` processor cores, such as 2 or 0.5")
	f.String("memory", "", "memory of `SIZE`, such as 512m or 8g")
	f.String("network", "full", "network `LEVEL`: full, trusted, custom, link or none")
	f.StringArrayVar(&o.allow, "allow", nil, "`DOMAIN` that may be reached: example.com, *.example.com or example.com:8443 (repeatable; makes the level custom)")
	f.BoolVar(&o.includeDefault, "include-default-domains", false, "allow the trusted list beside --allow")
	f.String("tools", "auto", "`WHICH` tool directories of PATH a local sandbox gets: auto or none")
	f.String("timeout", "3h", "wall-clock limit of `TIME`; 0: none")
	f.String("idle-timeout", "30m", "complete the run after `TIME` without activity; 0: never")
	f.String("host-grace", "2m", "`TIME` that the sandbox waits for a host process that is gone")
	f.BoolVar(&o.keep, "keep", false, "leave the sandbox for a look afterwards")
	f.StringVar(&o.publishAgent, "publish-agent", "", "open the agent server's HTTP surface on `ADDR`")
	f.Lookup("publish-agent").NoOptDefVal = "127.0.0.1:0"
	f.BoolVar(&o.exitCode, "exit-code", false, "exit with COMMAND's own code")
	f.BoolVarP(&o.detach, "detach", "d", false, "let the background runner do it; print the run's id")
	f.BoolVar(&o.noStart, "no-start", false, "only record the run; print its id")
	f.StringVar(&o.start, "start", "", "start the recorded run `RUN`")
	f.BoolVar(&o.json, "json", false, "print the events as JSON lines")
	f.Bool("plain", false, "print lines instead of showing the run on the screen")
	f.BoolVar(&o.quiet, "quiet", false, "print only what the command or the agent says")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the frozen Spec as JSON and start nothing")
}

// givenSettings returns the flags given on the command line that override a
// setting.
func givenSettings(f *pflag.FlagSet) map[string]string {
	given := map[string]string{}
	for _, s := range config.Settings() {
		if s.Flag != "" && f.Changed(s.Flag) {
			given[s.Name] = f.Lookup(s.Flag).Value.String()
		}
	}
	return given
}

// validate refuses what contradicts itself and what this build cannot honour yet.
func (o *runOptions) validate() error {
	for _, check := range []func() error{o.checkStart, o.checkWork, o.checkOutput, o.checkTask, o.checkRepos, o.checkLater} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkStart keeps --start apart from everything that describes a new run.
func (o *runOptions) checkStart() error {
	switch {
	case o.start == "":
		return nil
	case o.prompt != "" || len(o.command) > 0 || len(o.repos) > 0 || o.describes():
		return usageError("--start takes the run as it was recorded: no PROMPT, COMMAND, --repo or settings beside it")
	case o.noStart || o.dryRun:
		return usageError("--start cannot be combined with --no-start or --dry-run")
	}
	return nil
}

// describes reports whether a setting says what the run is, and not only how it is shown.
func (o *runOptions) describes() bool {
	_, plain := o.settings["INSIGHTSCLI_PLAIN"]
	return len(o.settings) > 1 || len(o.settings) == 1 && !plain
}

// checkWork wants exactly one of PROMPT and COMMAND, and the agent that suits it.
func (o *runOptions) checkWork() error {
	switch {
	case o.start != "":
		return nil
	case o.prompt != "" && len(o.command) > 0:
		return usageError("give a PROMPT or -- COMMAND, not both")
	case o.prompt == "" && len(o.command) == 0:
		return usageError("run needs a PROMPT, or a command after --")
	case len(o.prompt) > maxPrompt:
		return usageError("the prompt has %d bytes; at most %d are taken: put the rest into a file of the repository", len(o.prompt), maxPrompt)
	case !utf8.ValidString(o.prompt):
		return usageError("the prompt is not text in UTF-8")
	case o.agent == agentExec && o.prompt != "":
		return usageError("agent exec runs a command: put it after --")
	case o.agent != "" && o.agent != agentExec && len(o.command) > 0:
		if err := checkAgent(o.agent); err != nil {
			return err
		}
		return usageError("agent %s takes a PROMPT, not a command", o.agent)
	case o.exitCode && len(o.command) == 0:
		return usageError("--exit-code needs a command after --")
	}
	return nil
}

func (o *runOptions) checkOutput() error {
	switch {
	case o.json && o.quiet:
		return usageError("give --json or --quiet, not both")
	case o.detach && o.noStart:
		return usageError("give --detach or --no-start, not both")
	case o.exitCode && (o.detach || o.noStart):
		return usageError("--exit-code needs the run to end here: leave out --detach and --no-start")
	}
	return nil
}

func (o *runOptions) checkTask() error {
	switch {
	case utf8.RuneCountInString(o.title) > maxTitle:
		return usageError("the title has more than %d characters", maxTitle)
	case !slices.Contains(originProducts(), o.originProduct):
		return errs.New("cli.Parse", errs.Usage, "use one of "+strings.Join(originProducts(), ", "),
			"unknown origin product %q", o.originProduct)
	case o.mode != string(task.ModeBackground) && o.mode != string(task.ModeInteractive):
		return usageError("unknown mode %q; there are background and interactive", o.mode)
	}
	if o.publishAgent == "" {
		return nil
	}
	if _, _, err := net.SplitHostPort(o.publishAgent); err != nil {
		return usageError("--publish-agent: %q is not an address such as 127.0.0.1:0", o.publishAgent)
	}
	return nil
}

func (o *runOptions) checkRepos() error {
	switch {
	case o.branch != "" && !validBranch(o.branch):
		return usageError("%q is not the name of a branch", o.branch)
	case o.branch != "" && len(o.repos) == 0:
		return usageError("--branch needs --repo")
	case o.fullHistory && len(o.repos) == 0:
		return usageError("--full-history needs --repo")
	case (o.mount || o.uncommitted) && len(o.repos) == 0:
		return usageError("--mount and --uncommitted need --repo with a local path")
	case o.mount && o.uncommitted:
		return usageError("a mounted repository has its uncommitted work already: give --mount or --uncommitted, not both")
	case o.mount && o.branch != "":
		return usageError("--branch would switch the branch of your own checkout: give --mount or --branch, not both")
	}
	return nil
}

// checkLater refuses what a later build will do.
func (o *runOptions) checkLater() error {
	switch {
	case o.createPRGiven && o.createPR && len(o.command) > 0:
		return usageError("--create-pr needs an agent that publishes, which a command does not")
	case o.schema != "" && len(o.command) > 0:
		return usageError("--schema needs an agent that replies, which a command does not")
	case o.mode == string(task.ModeInteractive) && len(o.command) > 0:
		return usageError("--mode interactive needs an agent that takes messages, which a command does not")
	}
	return o.checkInteractive()
}

// checkInteractive wants somebody at the terminal, unless others will answer.
func (o *runOptions) checkInteractive() error {
	if o.mode != string(task.ModeInteractive) || o.detach || o.noStart || o.dryRun || o.start != "" {
		return nil
	}
	if s := o.app.streams; !s.InTTY || !s.ErrTTY {
		return errs.New("cli.run", errs.Usage, "use --detach and answer with 'insightscli send', or --mode background",
			"--mode interactive needs a terminal to ask at")
	}
	return nil
}

// validBranch accepts what git does, and nothing that could be an option.
func validBranch(name string) bool {
	bad := strings.HasPrefix(name, "-") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") ||
		strings.HasSuffix(name, ".") || strings.HasSuffix(name, ".lock") || strings.Contains(name, "..") ||
		strings.Contains(name, "//") || strings.Contains(name, "@{") || strings.ContainsAny(name, " ~^:?*[\\")
	return !bad && len(name) <= 250 && strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}
