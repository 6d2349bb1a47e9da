package selftest

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/doctor"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/link/wire"
)

// toolTime bounds one tool.
const toolTime = 30 * time.Second

// tool is a program that people need, with what shows that it works.
type tool struct {
	name     string
	commands [][]string
}

func tools() []tool {
	return []tool{
		{"git", [][]string{{"git", "init", "-q"}, {"git", "add", "."}, {"git", "status", "--short"}, {"git", "write-tree"}}},
		{"go", [][]string{{"go", "version"}, {"go", "env", "GOROOT"}}},
		{"node", [][]string{{"node", "-e", "require('fs').writeFileSync('/tmp/node', 'x')"}}},
		{"npm", [][]string{{"npm", "--version"}}},
		{"python", [][]string{{"python3", "-c", "import ssl, socket, subprocess; subprocess.run(['true'], check=True)"}}},
		{"pip", [][]string{{"python3", "-m", "pip", "--version"}}},
	}
}

// tools tries each of them in the sandbox that has a run's own limits.
func (t *test) tools(ctx context.Context) []doctor.Report {
	var reports []doctor.Report
	for _, one := range tools() {
		r := row{code: "sandbox-" + one.name, title: one.name + " works", fix: "insightscli doctor", text: "works"}
		for _, argv := range one.commands {
			words, code, err := t.runTool(ctx, argv)
			if errs.KindOf(err) == errs.NotFound || strings.Contains(words, "No module named pip") {
				r.skipped = "is not there"
				break
			}
			if err != nil || code != 0 {
				if err != nil {
					words = err.Error()
				}
				r.wrong(strings.Join(argv[:min(3, len(argv))], " ") + ": " + words)
				break
			}
			if words != "" && strings.HasSuffix(argv[len(argv)-1], "ersion") {
				r.text = words
			}
		}
		reports = append(reports, r.report())
	}
	return reports
}

// runTool returns the end of what a tool says, on one line.
func (t *test) runTool(ctx context.Context, argv []string) (words string, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	var out bytes.Buffer
	code, err = t.other.client.Exec(ctx, wire.Command{Argv: argv, Dir: repoDir}, agent.Stdio{Out: &out, Err: &out})
	text := strings.Join(strings.Fields(strings.ToValidUTF8(out.String(), "?")), " ")
	if r := []rune(text); len(r) > 200 {
		text = "…" + string(r[len(r)-200:])
	}
	return text, code, err
}
