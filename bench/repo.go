//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// gitRepo makes a repository with one commit of the given files.
func gitRepo(ctx context.Context, dir string, files map[string][]byte) error {
	for name, data := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "-A"},
		{"-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-qm", "bench"},
	} {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("git %s: %w: %s", args[0], err, out)
		}
	}
	return nil
}

// repository compares bringing a 200 MB repository of 4,000 files into a sandbox with
// a plain clone of it.
func (s *suite) repository(ctx context.Context) ([]row, error) {
	src := filepath.Join(s.tmp, "big")
	rng := rand.NewChaCha8([32]byte{1})
	files := map[string][]byte{}
	for i := range 4000 {
		data := make([]byte, 50_000)
		_, _ = rng.Read(data) // never fails
		files[fmt.Sprintf("d%02d/f%04d", i%50, i)] = data
	}
	if err := gitRepo(ctx, src, files); err != nil {
		return nil, err
	}
	// Packed, as repositories that people work in are: a clone of loose objects looks
	// for deltas first, which would make the yardstick three times as long.
	if _, err := (command{argv: []string{"git", "-C", src, "gc", "-q"}}).once(ctx); err != nil {
		return nil, err
	}
	clone := func() (time.Duration, error) {
		dst := filepath.Join(s.tmp, "clone")
		defer func() { _ = os.RemoveAll(dst) }()
		return command{argv: []string{"git", "clone", "-q", "--no-local", src, dst}}.once(ctx)
	}
	var rows []row
	kinds := []struct {
		name, provider, second string
		user                   bool
	}{{"local, root", "local", "≤ 0.2", false}, {"docker", "docker", "≤ 0.2", false}, {"local, unprivileged", "local", "≤ 0.7 (0.2 with reflinks)", true}}
	for _, k := range kinds {
		if k.provider == "docker" && s.engine(ctx) != nil {
			continue
		}
		more, err := s.intoSandbox(ctx, src, k.provider, k.name, k.second, k.user, clone)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", k.name, err)
		}
		rows = append(rows, more...)
	}
	grown, err := s.grown(ctx, src, clone)
	return append(rows, grown...), err
}

// grown compares the second run on a repository on a server, which has a new commit of ten
// files since the first, with a fresh clone.
func (s *suite) grown(ctx context.Context, src string, clone func() (time.Duration, error)) ([]row, error) {
	run := s.run("--provider", "local", "--repo", "file://"+src, "--", "true")
	run.env = []string{"INSIGHTSCLI_STATE_DIR=" + filepath.Join(s.tmp, "state-grown")}
	if _, err := run.once(ctx); err != nil {
		return nil, err
	}
	n := 0
	again := func(ctx context.Context) (time.Duration, error) {
		n++
		files := map[string][]byte{}
		for i := range 10 {
			files[fmt.Sprintf("d%02d/f%04d", i, i)] = fmt.Appendf(nil, "%d\n", n)
		}
		if err := gitRepo(ctx, src, files); err != nil {
			return 0, err
		}
		return run.once(ctx)
	}
	m, err := inTurn(ctx, 3, again, func(context.Context) (time.Duration, error) { return clone() })
	if err != nil {
		return nil, err
	}
	return []row{{
		"200 MB repository on a server, ten files changed since the first run", ms(m[0]), "git clone --no-local " + ms(m[1]), ratio(m[0], m[1]), "≤ 0.3",
	}}, nil
}

func (s *suite) intoSandbox(ctx context.Context, src, provider, name, second string, user bool, clone func() (time.Duration, error)) ([]row, error) {
	run := s.run("--provider", provider, "--repo", src, "--", "true")
	// A state directory of its own: the first run is one without a cached checkout.
	run.env = []string{"INSIGHTSCLI_STATE_DIR=" + filepath.Join(s.tmp, "state-"+strings.ReplaceAll(name, " ", ""))}
	if user {
		var err error
		if run, err = s.asUser(run); err != nil {
			return nil, err
		}
		if s.user != nil { // git refuses the repository of somebody else
			src += "-user"
			if out, err := exec.CommandContext(ctx, "cp", "-a", strings.TrimSuffix(src, "-user"), src).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("cp: %w: %s", err, out)
			}
			if out, err := exec.CommandContext(ctx, "chown", "-R", fmt.Sprintf("%d:%d", s.user.uid, s.user.gid), src).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("chown: %w: %s", err, out)
			}
			run.argv[len(run.argv)-3] = src
		}
	}
	c1, err := clone()
	if err != nil {
		return nil, err
	}
	first, err := run.once(ctx)
	if err != nil {
		return nil, err
	}
	m, err := interleaved(ctx, 3, run)
	if err != nil {
		return nil, err
	}
	c2, err := clone()
	if err != nil {
		return nil, err
	}
	yard := (c1 + c2) / 2
	return []row{
		{"200 MB repository, first run, " + name, ms(first), "git clone --no-local " + ms(yard), ratio(first, yard), "≤ 1.1"},
		{"200 MB repository, second run, " + name, ms(m[0]), "git clone --no-local " + ms(yard), ratio(m[0], yard), second},
	}, nil
}

// recovery kills the processes of twenty live runs and asks for the list of runs.
func (s *suite) recovery(ctx context.Context) ([]row, error) {
	const n = 20
	state := filepath.Join(s.tmp, "recovery")
	var cmds []*exec.Cmd
	for range n {
		c := s.run("--provider", "local", "--", "sh", "-c", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.1; done")
		c.env = []string{"INSIGHTSCLI_STATE_DIR=" + state}
		cmd := c.build(ctx)
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		cmds = append(cmds, cmd)
	}
	if err := waitFor(ctx, func() bool { return talking(state) >= n }); err != nil {
		return nil, err
	}
	for _, cmd := range cmds {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	before := logs(state)
	start := time.Now()
	ps := command{argv: []string{s.cli, "ps", "--json"}, env: []string{"INSIGHTSCLI_STATE_DIR=" + state}}
	if _, err := ps.once(ctx); err != nil {
		return nil, err
	}
	err := waitFor(ctx, func() bool { return grown(state, before) >= n })
	took := time.Since(start)
	if err != nil {
		return nil, err
	}
	lost, err := missing(state)
	if err != nil {
		return nil, err
	}
	stop := command{argv: []string{s.cli, "stop", "--cancel"}, env: ps.env}
	if _, err := stop.once(ctx); err != nil {
		return nil, err
	}
	return []row{{
		fmt.Sprintf("kill -9 with %d live runs, then ps", n), fmt.Sprintf("all re-attached after %s, %d events lost", ms(took), lost), "-", "-", "≤ 2 s, 0 lost",
	}}, nil
}
