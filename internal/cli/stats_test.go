package cli

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/Insights/insightscli/internal/stats"
	"github.com/Insights/insightscli/internal/task"
)

func someStats() stats.Report {
	share := 0.75
	g := func(name string, runs int) stats.Group {
		return stats.Group{Name: name, Runs: runs, Success: &share, Median: 61.2, P90: 3600, Used: task.Tokens{Total: 12_345, Requests: 2, CostUSD: 1.5}}
	}
	total := g("total", 111)
	total.Used.Unpriced = 1
	return stats.Report{By: stats.ByAgent, Groups: []stats.Group{g("claude", 100), g("codex", 10), g("acp:\x1b[2Jan agent with a very long name of its own", 1)}, Total: total}
}

// Bars fit the terminal, whatever its width, and a run is always seen.
func TestStatsChart(t *testing.T) {
	for _, width := range []int{1, 20, 40, 80, 100, 120, 200} {
		var b strings.Builder
		if err := statsChart(&b, someStats(), width, false); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width || strings.Contains(line, "\x1b") {
				t.Errorf("width %d: %d columns: %q", width, n, line)
			}
		}
		if bars := strings.Count(b.String(), "█") > 0 && strings.ContainsAny(b.String(), "▏▎▍"); bars != (width >= 80) {
			t.Errorf("width %d: bars %v:\n%s", width, bars, b.String())
		}
	}
}

func TestStatsTable(t *testing.T) {
	var b strings.Builder
	if err := statsTable(&b, someStats()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"AGENT", "claude ", " 75%", "1m1s", "1h0m0s", "12k", "$1.50\n", "$1.50+\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.ContainsAny(b.String(), "█#\x1b") {
		t.Error(b.String())
	}
}

func TestBar(t *testing.T) {
	for _, tt := range []struct {
		n, most int
		dumb    bool
		want    string
	}{{0, 5, false, ""}, {1, 1000, false, "▏"}, {5, 5, false, "██████████"}, {1, 4, false, "██▌"}, {1, 1000, true, "#"}, {5, 5, true, "##########"}} {
		if got := bar(tt.n, tt.most, 10, tt.dumb); got != tt.want {
			t.Errorf("%s: %q, want %q", fmt.Sprint(tt.n, tt.most, tt.dumb), got, tt.want)
		}
	}
}
