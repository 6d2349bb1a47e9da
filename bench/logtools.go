//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/tui/longlog"
)

const (
	// printedEvents is how many events the log has that is printed and exported.
	printedEvents = 500_000
	// followed is how many lines are followed, and followPause lies between them.
	followed    = 200
	followPause = "0.05"
)

// logTools measures how fast a log is printed and exported, and how soon a follower sees
// what happens.
func (s *suite) logTools(ctx context.Context) ([]row, error) {
	state, log, err := s.longRun(ctx)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(log)
	if err != nil {
		return nil, err
	}
	var rows []row
	env := []string{"INSIGHTSCLI_STATE_DIR=" + state}
	printed, err := interleaved(ctx, min(s.n, 5),
		command{argv: []string{s.cli, "logs", "latest", "--json"}, env: env, out: io.Discard},
		command{argv: []string{"cat", log}, out: io.Discard})
	if err != nil {
		return nil, err
	}
	rate := func(d time.Duration) string { return fmt.Sprintf("%.0f MB/s", float64(info.Size())/1e6/d.Seconds()) }
	rows = append(rows, row{
		fmt.Sprintf("logs RUN --json, %d MB", info.Size()/1e6), rate(printed[0]), "cat " + rate(printed[1]),
		ratio(printed[0], printed[1]), "≥ 200 MB/s",
	})
	for _, format := range []string{"md", "html"} {
		took, err := command{argv: []string{s.cli, "logs", "export", "latest", "--format", format, "-o", filepath.Join(s.tmp, "export")}, env: env}.once(ctx)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{"logs export --format " + format, rate(took), "-", "-", "-"})
	}
	late, err := s.latency(ctx)
	if err != nil {
		return rows, err
	}
	slices.Sort(late)
	return append(rows, row{
		fmt.Sprintf("logs -f, event to stdout, %d events", len(late)),
		fmt.Sprintf("%s median, %s at 95 %%", ms(late[len(late)/2]), ms(late[len(late)*95/100])), "-", "-", "≤ 20 ms median",
	}), nil
}

// longRun records a run with a long log, and returns its state directory and its log.
func (s *suite) longRun(ctx context.Context) (dir, log string, err error) {
	dir = filepath.Join(s.tmp, "long")
	_, log, err = fakeRun(ctx, dir, true)
	if err != nil {
		return "", "", err
	}
	f, err := os.Create(log)
	if err != nil {
		return "", "", err
	}
	return dir, log, errors.Join(longlog.Write(f, printedEvents), f.Close())
}

// latency follows a run whose command says a line now and then, and returns how long after
// it was said each line came.
func (s *suite) latency(ctx context.Context) (late []time.Duration, err error) {
	script := fmt.Sprintf("for i in $(seq %d); do sleep %s; date +%%s%%N; done", followed, followPause)
	start := s.run("-d", "--provider", "local", "--", "bash", "-c", script).build(ctx)
	var exit *exec.ExitError
	if out, err := start.CombinedOutput(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == errs.Running.Code()) {
		return nil, fmt.Errorf("%w: %s", err, tail(string(out)))
	}
	follow := s.run().build(ctx)
	follow.Args = []string{s.cli, "logs", "-f", "latest", "--json"}
	out, err := follow.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := follow.Start(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, follow.Wait()) }()
	for sc := bufio.NewScanner(out); sc.Scan(); {
		now := time.Now()
		var ev struct {
			Notification struct {
				Params struct{ Stdout string }
			}
		}
		if err := json.Unmarshal(sc.Bytes(), &ev); err != nil {
			return nil, err
		}
		for said := range strings.FieldsSeq(ev.Notification.Params.Stdout) {
			var ns int64
			if _, err := fmt.Sscan(said, &ns); err == nil {
				late = append(late, now.Sub(time.Unix(0, ns)))
			}
		}
	}
	if len(late) != followed {
		return nil, fmt.Errorf("%d of %d lines came", len(late), followed)
	}
	return late[followed/10:], nil // the first may have been said before anybody followed
}
