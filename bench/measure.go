//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// account is a user other than root.
type account struct{ uid, gid int }

// unprivileged returns an ordinary user to measure as when this process is root, and
// opens the way to tmp for it.
func unprivileged(tmp string) (*account, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return nil, err
	}
	if u, err := user.Lookup("nobody"); err == nil {
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		return &account{uid, gid}, nil
	}
	return &account{1001, 1001}, nil
}

// command is a program to time.
type command struct {
	argv []string
	env  []string
	dir  string
	as   *account
	out  io.Writer
}

func (c command) build(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Dir = c.dir
	cmd.Stdout = c.out
	if c.as != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(c.as.uid), Gid: uint32(c.as.gid)}}
	}
	return cmd
}

// once runs the command and returns how long it took.
func (c command) once(ctx context.Context) (time.Duration, error) {
	cmd := c.build(ctx)
	var says bytes.Buffer
	cmd.Stderr = &says
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err != nil {
		return took, fmt.Errorf("%s: %w: %s", filepath.Base(c.argv[0]), err, tail(says.String()))
	}
	return took, nil
}

func tail(s string) string {
	if len(s) > 300 {
		s = s[len(s)-300:]
	}
	return s
}

// interleaved runs several commands in turn, n times, and returns the median of
// each: what else the machine does meets all of them alike.
func interleaved(ctx context.Context, n int, cs ...command) ([]time.Duration, error) {
	ways := make([]func(context.Context) (time.Duration, error), len(cs))
	for i, c := range cs {
		ways[i] = c.once
	}
	return inTurn(ctx, n, ways...)
}

// inTurn is interleaved for anything that tells how long it took.
func inTurn(ctx context.Context, n int, ways ...func(context.Context) (time.Duration, error)) ([]time.Duration, error) {
	all := make([][]time.Duration, len(ways))
	for round := range n + 1 {
		for i, way := range ways {
			d, err := way(ctx)
			if err != nil {
				return nil, err
			}
			if round > 0 { // the first warms caches
				all[i] = append(all[i], d)
			}
		}
	}
	medians := make([]time.Duration, len(ways))
	for i, ds := range all {
		slices.Sort(ds)
		medians[i] = ds[len(ds)/2]
	}
	return medians, nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func ratio(a, b time.Duration) string { return fmt.Sprintf("%.2f", float64(a)/float64(b)) }

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// engine reports whether a Docker engine answers and has the image.
func (s *suite) engine(ctx context.Context) error {
	if !has("docker") {
		return fmt.Errorf("no docker client")
	}
	if out, err := exec.CommandContext(ctx, "docker", "image", "inspect", s.image).CombinedOutput(); err != nil {
		return fmt.Errorf("no engine with %s: %s", s.image, tail(string(out)))
	}
	return nil
}

// run is an insightscli run with its own quiet state directory.
func (s *suite) run(args ...string) command {
	return command{
		argv: append([]string{s.cli, "run", "--quiet"}, args...),
		env:  []string{"INSIGHTSCLI_STATE_DIR=" + s.state}, dir: s.tmp,
	}
}

// asUser makes a command an ordinary user's, with a state directory of its own.
func (s *suite) asUser(c command) (command, error) {
	if s.user == nil {
		return c, nil
	}
	dir := filepath.Join(s.tmp, "user")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return c, err
	}
	c.as, c.dir = s.user, dir
	c.env = []string{"INSIGHTSCLI_STATE_DIR=" + filepath.Join(dir, "state"), "HOME=" + dir}
	return c, os.Chown(dir, s.user.uid, s.user.gid)
}
