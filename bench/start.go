//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// startup compares the start of the program with that of act, a Go CLI of the same
// kind.
func (s *suite) startup(ctx context.Context) ([]row, error) {
	if s.act == "" {
		return nil, fmt.Errorf("no act; give it with -act")
	}
	m, err := interleaved(ctx, 3*s.n,
		command{argv: []string{s.cli, "version"}}, command{argv: []string{s.cli, "--help"}}, command{argv: []string{s.act, "--version"}})
	if err != nil {
		return nil, err
	}
	return []row{
		{"insightscli version", ms(m[0]), "act --version " + ms(m[2]), ratio(m[0], m[2]), "≤ 1.5"},
		{"insightscli --help", ms(m[1]), "act --version " + ms(m[2]), ratio(m[1], m[2]), "≤ 1.5"},
	}, nil
}

// docker compares a whole run with the engine's own client, on the same network.
func (s *suite) docker(ctx context.Context) ([]row, error) {
	if err := s.engine(ctx); err != nil {
		return nil, err
	}
	var rows []row
	for _, net := range []struct{ level, engine string }{{"full", "insightscli"}, {"link", "none"}} {
		run := s.run("--provider", "docker", "--network", net.level, "--", "true")
		if _, err := run.once(ctx); err != nil { // makes the network
			return rows, err
		}
		m, err := interleaved(ctx, s.n, run,
			command{argv: []string{"docker", "run", "--rm", "--network", net.engine, s.image, "true"}})
		if err != nil {
			return rows, err
		}
		rows = append(rows, row{
			"run -- true, docker, network " + net.level, ms(m[0]), "docker run --rm --network " + net.engine + " " + ms(m[1]),
			ratio(m[0], m[1]), "≤ 1.2",
		})
	}
	return rows, nil
}

// local compares a whole run, and the sandbox alone, with docker run and bwrap.
func (s *suite) local(ctx context.Context) ([]row, error) {
	run := s.run("--provider", "local", "--", "true")
	users, err := s.asUser(run)
	if err != nil {
		return nil, err
	}
	var rows []row
	if err := s.engine(ctx); err == nil {
		m, err := interleaved(ctx, s.n, run, users, command{argv: []string{"docker", "run", "--rm", s.image, "true"}})
		if err != nil {
			return nil, err
		}
		yard := "docker run --rm " + ms(m[2])
		rows = append(rows,
			row{"run -- true, local", ms(m[0]), yard, ratio(m[0], m[2]), "≤ 0.15"},
			row{"run -- true, local, unprivileged", ms(m[1]), yard, ratio(m[1], m[2]), "≤ 0.15"})
	}
	if !has("bwrap") {
		return append(rows, row{what: "the sandbox alone", measured: "not measured: no bwrap"}), nil
	}
	alone, err := s.alone(ctx)
	if err != nil {
		return rows, err
	}
	m, err := interleaved(ctx, s.n, alone, command{argv: []string{
		"bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "true",
	}})
	if err != nil {
		return rows, err
	}
	return append(rows, row{"the sandbox alone (provider, no journal)", ms(m[0]), "bwrap " + ms(m[1]), ratio(m[0], m[1]), "≤ 3"}), nil
}

// alone is a program that uses the provider without anything around it.
func (s *suite) alone(ctx context.Context) (command, error) {
	bin := filepath.Join(s.tmp, "sandboxalone")
	_, err := command{
		argv: []string{"go", "build", "-o", bin, "./bench/sandboxalone"}, env: []string{"CGO_ENABLED=0"},
	}.once(ctx)
	if err != nil {
		return command{}, err
	}
	server := filepath.Join(s.tmp, "insights-agent-server")
	_, err = command{
		argv: []string{"go", "build", "-trimpath", "-ldflags", "-s -w", "-o", server, "./cmd/insights-agent-server"},
		env:  []string{"CGO_ENABLED=0"},
	}.once(ctx)
	return command{argv: []string{bin, server, filepath.Join(s.tmp, "alone")}, dir: s.tmp, out: os.Stdout}, err
}
