//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// lines and lineSize are what the throughput row pushes through.
const (
	lines    = 1_000_000
	lineSize = 100
)

// throughput pushes a million lines of a hundred bytes through the link to the
// journal and to --json, and checks every byte.
func (s *suite) throughput(ctx context.Context) ([]row, error) {
	repo := filepath.Join(s.tmp, "flow")
	if err := gitRepo(ctx, repo, map[string][]byte{"lines": numbered()}); err != nil {
		return nil, err
	}
	c := s.run("--provider", "local", "--repo", repo, "--json", "--", "cat", "lines")
	c.argv = slices.DeleteFunc(c.argv, func(arg string) bool { return arg == "--quiet" })
	cmd := c.build(ctx)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	got, err := count(out, cmd.Process.Pid)
	if err = errors.Join(err, cmd.Wait()); err != nil {
		return nil, err
	}
	mb := float64(got.bytes) / 1e6
	rate := mb / got.took.Seconds()
	ok := "all bytes in order"
	if !got.inOrder || got.bytes != lines*lineSize {
		ok = fmt.Sprintf("BYTES WRONG: %d", got.bytes)
	}
	return []row{
		{"output through the link, journal, --json", fmt.Sprintf("%.0f MB/s, %s", rate, ok), "-", "-", "≥ 100 MB/s"},
		{"1,000,000 lines", fmt.Sprintf("%d events", got.events), "-", "-", "≤ 2,000"},
		{"RSS of the CLI", fmt.Sprintf("%d MB", got.rss), "-", "-", "< 64 MB"},
	}, nil
}

// numbered is a million lines that tell their own place.
func numbered() []byte {
	b := make([]byte, 0, lines*lineSize)
	for i := range lines {
		b = fmt.Appendf(b, "%0*d\n", lineSize-1, i)
	}
	return b
}

type counted struct {
	bytes, events int
	inOrder       bool
	took          time.Duration // from the first output to the last
	rss           int           // MB, the highest the process has had
}

// count reads the events of the run in process pid, and checks its output when it is
// over: looking at it meanwhile would measure this program.
func count(r io.Reader, pid int) (counted, error) {
	var c counted
	var first, last time.Time
	var outputs [][]byte
	br := bufio.NewReaderSize(r, 1<<20)
	for {
		line, err := br.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c, err
		}
		if !bytes.Contains(line[:min(200, len(line))], []byte(`"_insights/sandbox_output"`)) {
			continue
		}
		last = time.Now()
		if first.IsZero() {
			first = last
		}
		outputs = append(outputs, line)
		if len(outputs)%100 == 0 {
			c.rss = max(c.rss, highWater(pid))
		}
	}
	c.took = last.Sub(first)
	return c, c.check(outputs)
}

// check compares what came with what was sent.
func (c *counted) check(outputs [][]byte) error {
	want, off := numbered(), 0
	c.inOrder = true
	for _, line := range outputs {
		var ev struct {
			Notification struct {
				Params struct{ Stdout string }
			}
		}
		if err := json.Unmarshal(line, &ev); err != nil {
			return err
		}
		out := ev.Notification.Params.Stdout
		if out == "" {
			continue
		}
		c.events++
		c.bytes += len(out)
		if off+len(out) > len(want) || string(want[off:off+len(out)]) != out {
			c.inOrder = false
		}
		off += len(out)
	}
	return nil
}

// highWater is the most memory that a process has had, in MB.
func highWater(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, _ := strconv.Atoi(strings.Fields(rest + " 0")[0]) // 0 where there is none
	return kb / 1024
}

// concurrency starts twenty runs at once.
func (s *suite) concurrency(ctx context.Context) ([]row, error) {
	const at = 20
	var rows []row
	var yard time.Duration
	if s.engine(ctx) == nil {
		var err error
		yard, err = atOnce(ctx, at, command{argv: []string{"docker", "run", "--rm", "--network", "none", s.image, "true"}})
		if err != nil {
			return nil, err
		}
	}
	for _, provider := range []string{"local", "docker"} {
		if provider == "docker" && yard == 0 {
			continue
		}
		took, err := atOnce(ctx, at, s.run("--provider", provider, "--network", "link", "--", "true"))
		if err != nil {
			return rows, fmt.Errorf("%s: %w", provider, err)
		}
		r := row{what: fmt.Sprintf("%d runs at once, %s", at, provider), measured: ms(took) + leftovers(ctx, s.state), target: "≤ 1.5"}
		if yard > 0 {
			r.yardstick, r.ratio = fmt.Sprintf("%d docker run %s", at, ms(yard)), ratio(took, yard)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func atOnce(ctx context.Context, n int, c command) (time.Duration, error) {
	var wg sync.WaitGroup
	all := make([]error, n)
	start := time.Now()
	for i := range n {
		wg.Go(func() { _, all[i] = c.once(ctx) })
	}
	wg.Wait()
	return time.Since(start), errors.Join(all...)
}

// leftovers says what runs left behind, or that there is nothing.
func leftovers(ctx context.Context, state string) string {
	var left []string
	if out, err := exec.CommandContext(ctx, "docker", "ps", "-aq", "--filter", "label=insightscli.run").Output(); err == nil && len(out) > 0 {
		left = append(left, fmt.Sprintf("%d containers", bytes.Count(out, []byte("\n"))))
	}
	if dirs, err := os.ReadDir(filepath.Join(state, "run")); err == nil && len(dirs) > 0 {
		left = append(left, fmt.Sprintf("%d run directories", len(dirs)))
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err == nil && bytes.Contains(mounts, []byte(state)) {
		left = append(left, "mounts")
	}
	if len(left) == 0 {
		return ", nothing left"
	}
	return ", LEFT: " + strings.Join(left, ", ")
}
