//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

// row is one line of the table.
type row struct {
	what, measured, yardstick, ratio, target string
}

// suite is what the measurements share.
type suite struct {
	cli           string // path of insightscli
	act           string // path of act, or empty
	claude, codex string // paths of the agents' programs, or empty
	tmp           string
	state         string // state directory
	image         string
	n             int
	user          *account // an unprivileged user to measure as, when we are root
}

func main() {
	s := &suite{image: "insights-sandbox-base"}
	flag.StringVar(&s.cli, "cli", "bin/insightscli", "the program to measure")
	flag.StringVar(&s.act, "act", "", "the yardstick of start-up time: path of act")
	flag.StringVar(&s.claude, "claude", "", "path of Claude Code, to measure its runs")
	flag.StringVar(&s.codex, "codex", "", "path of Codex, to measure its runs")
	flag.IntVar(&s.n, "n", 15, "repetitions; the median counts")
	only := flag.String("only", "", "measure only what contains this word")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := s.measure(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (s *suite) measure(ctx context.Context, only string) (err error) {
	if s.cli, err = filepath.Abs(s.cli); err != nil {
		return err
	}
	if s.tmp, err = os.MkdirTemp("", "insightscli-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.tmp) }()
	s.state = filepath.Join(s.tmp, "state")
	if s.user, err = unprivileged(s.tmp); err != nil {
		return err
	}
	measurements := []struct {
		name string
		f    func(context.Context) ([]row, error)
	}{
		{"startup", s.startup},
		{"docker", s.docker},
		{"local", s.local},
		{"throughput", s.throughput},
		{"concurrency", s.concurrency},
		{"logs", s.logTools},
		{"repository", s.repository},
		{"recovery", s.recovery},
		{"network", s.network},
		{"gateway", s.gateway},
		{"agents", s.agents},
		{"kills", s.kills},
		{"screen", s.screen},
	}
	tw := tabwriter.NewWriter(os.Stdout, 2, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "what\tmeasured\tyardstick\tratio\ttarget")
	for _, m := range measurements {
		if only != "" && !strings.Contains(m.name, only) {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", m.name)
		rows, err := m.f(ctx)
		if err != nil {
			rows = append(rows, row{what: m.name, measured: "not measured: " + err.Error()})
		}
		for _, r := range rows {
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", r.what, r.measured, r.yardstick, r.ratio, r.target)
		}
	}
	return tw.Flush()
}
