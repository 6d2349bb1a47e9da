//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/agentcli"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/test/fakemodel"
)

// client is a real agent, called by us and by hand.
type client struct {
	name, program, option string
	// alone are its arguments when it is called by hand, with a model at this address.
	alone func(url, prompt string) []string
}

func (s *suite) clients() []client {
	return []client{
		{agentcli.Claude, s.claude, "-claude", func(_, prompt string) []string {
			return []string{"-p", "--permission-mode", "bypassPermissions", "--strict-mcp-config", "--", prompt}
		}},
		{agentcli.Codex, s.codex, "-codex", func(url, prompt string) []string {
			args := []string{"exec", "--json", "--skip-git-repo-check"}
			for _, set := range []string{
				`model_provider="gw"`, fmt.Sprintf(`model_providers.gw={name="gw",base_url=%q,wire_api="responses",env_key="OPENAI_API_KEY"}`, url),
				`sandbox_mode="danger-full-access"`, "check_for_update_on_startup=false", "analytics.enabled=false",
				"features.plugins=false", "features.apps=false",
			} {
				args = append(args, "-c", set)
			}
			return append(args, prompt)
		}},
	}
}

// stage is where agents are measured: a model that answers at once, and a state directory.
type stage struct {
	s     *suite
	model *fakemodel.Model
	url   string
	dir   string
	close func()
}

func (s *suite) stage(name string) (*stage, error) {
	st := &stage{s: s, dir: filepath.Join(s.tmp, name), model: fakemodel.New(fakemodel.Options{})}
	if err := os.MkdirAll(filepath.Join(st.dir, "home"), 0o700); err != nil {
		return nil, err
	}
	var err error
	st.url, st.close, err = listen(st.model)
	return st, err
}

// command is insightscli with the model.
func (st *stage) command(args ...string) command {
	return command{
		argv: append([]string{st.s.cli}, args...), dir: filepath.Join(st.dir, "home"),
		env: []string{
			"HOME=" + filepath.Join(st.dir, "home"), "INSIGHTSCLI_STATE_DIR=" + filepath.Join(st.dir, "state"), "INSIGHTSCLI_NETWORK=link",
			"INSIGHTS_LLM_ANTHROPIC_URL=" + st.url + "/anthropic", "INSIGHTS_LLM_OPENAI_URL=" + st.url + "/openai",
			"ANTHROPIC_API_KEY=sk-ant-api03-bench", "OPENAI_API_KEY=sk-proj-bench",
			"CLAUDE_CODE_EXECUTABLE=" + st.s.claude, "CODEX_PATH=" + st.s.codex,
		},
	}
}

// say is what insightscli prints.
func (st *stage) say(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	c := st.command(args...)
	c.out = &out
	_, err := c.once(ctx)
	return strings.TrimSpace(out.String()), err
}

// detach begins a run in the background, which is said to be running still.
func (st *stage) detach(ctx context.Context, args ...string) (id string, err error) {
	id, err = st.say(ctx, append([]string{"run", "-d"}, args...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == errs.Running.Code() {
		err = nil
	}
	return id, err
}

// idle begins a run whose agent has done a turn and waits for another.
func (st *stage) idle(ctx context.Context, c client, provider string) (id string, err error) {
	id, err = st.detach(ctx, "--mode", "interactive", "--provider", provider, "--agent", c.name, "say who you are")
	if err != nil {
		return "", err
	}
	return id, waitFor(ctx, func() bool {
		log, err := st.say(ctx, "logs", id, "--json")
		return err == nil && strings.Contains(log, `"_insights/turn_result"`)
	})
}

// agents compares whole runs with their agents' own programs, called by hand.
func (s *suite) agents(ctx context.Context) ([]row, error) {
	st, err := s.stage("agents")
	if err != nil {
		return nil, err
	}
	defer st.close()
	var rows []row
	memory := 0
	for _, c := range s.clients() {
		for _, provider := range []string{"local", "docker"} {
			what := fmt.Sprintf("a turn of %s, %s", c.name, provider)
			if why := s.lacks(ctx, c, provider); why != "" {
				rows = append(rows, row{what: what, measured: "not measured: " + why})
				continue
			}
			more, rss, err := st.overhead(ctx, c, provider, what)
			if err != nil {
				return rows, fmt.Errorf("%s: %w", what, err)
			}
			rows, memory = append(rows, more...), max(memory, rss)
		}
	}
	if memory > 0 {
		rows = append(rows, row{"agent server in the sandbox of an idle agent, RSS", fmt.Sprintf("%.1f MB", float64(memory)/1000), "-", "-", "≤ 20 MB"})
	}
	return rows, nil
}

// lacks says why an agent cannot be measured, or nothing.
func (s *suite) lacks(ctx context.Context, c client, provider string) string {
	if c.program == "" {
		return "no " + c.name + "; give it with " + c.option
	}
	if provider == "docker" {
		if err := s.engine(ctx); err != nil {
			return err.Error()
		}
	}
	return ""
}

// overhead measures one agent in one provider: whole runs, its program alone in the sandbox
// of a run, and in docker its program in a container of its own, in turn. Beside the rows it
// returns the memory of the agent server behind all that, in kB.
func (st *stage) overhead(ctx context.Context, c client, provider, what string) ([]row, int, error) {
	id, err := st.idle(ctx, c, provider)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _, _ = st.say(context.WithoutCancel(ctx), "cancel", id) }() // it is in the way of nothing
	prompt := "say who you are"
	run := st.command("run", "--quiet", "--provider", provider, "--agent", c.name, prompt)
	ways := []func(context.Context) (time.Duration, error){
		run.once, func(ctx context.Context) (time.Duration, error) { return st.alone(ctx, id, c, prompt) },
	}
	if provider == "docker" {
		yardstick, err := st.container(ctx, c, prompt)
		if err != nil {
			return nil, 0, err
		}
		ways = append(ways, yardstick.once)
	}
	m, err := inTurn(ctx, st.s.n, ways...)
	if err != nil {
		return nil, 0, err
	}
	inside := row{what, ms(m[0]), "its program alone in the sandbox, " + ms(m[1]), signed(m[0] - m[1]), "≤ +150 ms"}
	rows := []row{inside}
	if provider == "docker" {
		inside.target = "-"
		rows = []row{{what, ms(m[0]), "docker run of its program, " + ms(m[2]), signed(m[0] - m[2]), "≤ +150 ms"}, inside}
	}
	rss, err := st.memory(ctx, id, provider)
	return rows, rss, err
}

func signed(d time.Duration) string {
	if d < 0 {
		return ms(d)
	}
	return "+" + ms(d)
}

// timed runs its arguments in a fresh home, as each run has one, and prints how many
// microseconds they took.
const timed = `HOME=$(mktemp -d ~/XXXXXX); export HOME IS_SANDBOX=1
begin=$(date +%s%N)
"$@" </dev/null >"$HOME/says" 2>&1 || { cat "$HOME/says" >&2; exit 1; }
echo $((($(date +%s%N) - begin) / 1000))`

// alone calls an agent's program in the sandbox of a run, and returns the time that it
// took there.
func (st *stage) alone(ctx context.Context, run string, c client, prompt string) (time.Duration, error) {
	argv := []string{"exec", run, "--", "sh", "-c", timed, "sh", c.inside()}
	said, err := st.say(ctx, append(argv, c.alone(fmt.Sprintf("http://127.0.0.1:%d/openai/v1", wire.PortLLM), prompt)...)...)
	if err != nil {
		return 0, err
	}
	us, err := strconv.Atoi(said)
	return time.Duration(us) * time.Microsecond, err
}

// inside is where a run has the program mounted.
func (c client) inside() string {
	if c.name == agentcli.Claude {
		return path.Join(wire.ProgramsDir, c.name)
	}
	return path.Join(wire.ProgramsDir, c.name, "bin", "codex")
}

// beside starts the model as a neighbour of the program that it becomes.
const beside = `/model -listen 127.0.0.1:47822 >/dev/null 2>&1 & exec "$@"`

// container is an agent's program in a container that docker run makes for it, on the
// network that runs have. That one has no way out: the model is in there, too.
func (st *stage) container(ctx context.Context, c client, prompt string) (command, error) {
	model := filepath.Join(st.dir, "model")
	build := command{argv: []string{"go", "build", "-o", model, "./test/fakemodel/serve"}, env: []string{"CGO_ENABLED=0"}}
	if _, err := build.once(ctx); err != nil {
		return command{}, err
	}
	source := c.program
	if c.name == agentcli.Codex {
		source = filepath.Dir(filepath.Dir(c.program)) // with what lies beside it
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", wire.PortLLM)
	argv := []string{
		"docker", "run", "--rm", "--network", "none", "-w", "/root", "-e", "IS_SANDBOX=1", "-e", "OPENAI_API_KEY=any",
		"-e", "ANTHROPIC_BASE_URL=" + url + "/anthropic", "-e", "ANTHROPIC_AUTH_TOKEN=any",
		"-e", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "-e", "DISABLE_TELEMETRY=1", "-e", "DISABLE_ERROR_REPORTING=1",
		"-v", model + ":/model:ro", "-v", source + ":" + path.Join(wire.ProgramsDir, c.name) + ":ro",
		st.s.image, "sh", "-c", beside, "sh", c.inside(),
	}
	return command{argv: append(argv, c.alone(url+"/openai/v1", prompt)...)}, nil
}

// memory is what PID 1 of a run's sandbox has in memory, in kB, as the host sees it.
func (st *stage) memory(ctx context.Context, run, provider string) (int, error) {
	var pid string
	if provider == "docker" {
		out, err := exec.CommandContext(ctx, "docker", "ps", "-q", "--filter", "label=insightscli.run="+run).Output()
		if err != nil {
			return 0, err
		}
		out, err = exec.CommandContext(ctx, "docker", "inspect", "-f", "{{.State.Pid}}", strings.TrimSpace(string(out))).Output()
		if err != nil {
			return 0, err
		}
		pid = strings.TrimSpace(string(out))
	} else if pid = st.first(); pid == "" {
		return 0, errors.New("the sandbox has no process")
	}
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	return strconv.Atoi(strings.Fields(rest + " -")[0])
}

// first is the process that is the first of a local sandbox: only one is there at a time.
func (st *stage) first() string {
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	i := slices.IndexFunc(all, func(proc string) bool {
		program, _ := os.Readlink(filepath.Join(proc, "exe")) // it may have ended
		status, _ := os.ReadFile(filepath.Join(proc, "status"))
		_, rest, _ := strings.Cut(string(status), "NSpid:")
		line, _, _ := strings.Cut(rest, "\n")
		ids := strings.Fields(line)
		return strings.HasPrefix(program, st.dir) && len(ids) > 1 && ids[len(ids)-1] == "1"
	})
	if i < 0 {
		return ""
	}
	return filepath.Base(all[i])
}
