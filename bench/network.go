//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// policed is what one benchmark of package egress measured.
type policed struct {
	took time.Duration
	rate float64 // MB/s; 0 where it says nothing of one
}

// network measures what the policy costs: the benchmarks of package egress, in which a plain
// copy over the same link is the yardstick, and a run with and without it.
func (s *suite) network(ctx context.Context) ([]row, error) {
	rows, err := s.gate(ctx)
	if err != nil {
		return rows, err
	}
	held, err := s.thousand(ctx)
	if err != nil {
		return rows, err
	}
	rows = append(rows, held...)
	if s.engine(ctx) != nil {
		return rows, nil
	}
	free := s.run("--provider", "docker", "--network", "full", "--", "true")
	bound := s.run("--provider", "docker", "--network", "custom", "--allow", "example.com", "--", "true")
	m, err := interleaved(ctx, 2*s.n, bound, free)
	if err != nil {
		return rows, err
	}
	return append(rows, row{
		"run -- true, docker, network custom", ms(m[0]), "network full " + ms(m[1]),
		fmt.Sprintf("%+.1f ms", float64((m[0]-m[1]).Microseconds())/1000), "≤ +15 ms",
	}), nil
}

// gate runs the benchmarks. Each is taken five times, and the medians count.
func (s *suite) gate(ctx context.Context) ([]row, error) {
	out, err := goTest(ctx, "-run", "^$", "-bench", "OneStream|Connection|Denied", "-benchtime", "1s", "-count", "5")
	if err != nil {
		return nil, err
	}
	all := medians(out)
	var rows []row
	for _, way := range []string{"up", "down"} {
		plain := all["OneStream/"+way+"/plain"]
		for _, through := range []string{"tls", "http", "other"} {
			got := all["OneStream/"+way+"/"+through]
			if got.rate == 0 || plain.rate == 0 {
				return rows, errors.New("a benchmark of package egress has another name now")
			}
			rows = append(rows, row{
				"network policy: one stream " + way + ", " + through, fmt.Sprintf("%.0f MB/s", got.rate),
				fmt.Sprintf("a plain copy over the link %.0f MB/s", plain.rate), fmt.Sprintf("%.2f", got.rate/plain.rate), "≥ 0.6, ≥ 500 MB/s",
			})
		}
	}
	plain, got, denied := all["Connection/plain"], all["Connection/gate"], all["Denied"]
	return append(rows,
		row{"network policy: a connection, one byte each way", ms(got.took), "a plain copy " + ms(plain.took), fmt.Sprintf("%+.2f ms", float64(got.took-plain.took)/1e6), "≤ +2 ms"},
		row{"network policy: a denied connection", ms(denied.took), "-", "-", "< 20 ms"}), nil
}

// thousand has the test of package egress hold a thousand connections, and takes over what
// it says of the host's memory.
func (s *suite) thousand(ctx context.Context) ([]row, error) {
	out, err := goTest(ctx, "-count", "1", "-v", "-run", "^TestThousandConnections$")
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, m := range regexp.MustCompile(`(fast|reader|server): (\d+) .*; (-?\d+) MiB more`).FindAllStringSubmatch(out, -1) {
		what := map[string]string{"fast": "with fast peers", "reader": "whose clients do not read", "server": "whose servers do not read"}[m[1]]
		target := "< 320 MB"
		if m[1] == "fast" {
			target = "< 100 MB"
		}
		rows = append(rows, row{"network policy: " + m[2] + " connections at once, " + what, m[3] + " MiB more RSS", "-", "-", target})
	}
	return rows, nil
}

func goTest(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	_, err := command{argv: append(append([]string{"go", "test"}, args...), "./internal/egress"), out: &out}.once(ctx)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, tail(out.String()))
	}
	return out.String(), err
}

// medians reads what `go test -bench` prints, by the name of the benchmark.
func medians(out string) map[string]policed {
	all := map[string][]policed{}
	line := regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+([\d.]+) ns/op(?:\s+([\d.]+) MB/s)?`)
	for _, m := range line.FindAllStringSubmatch(out, -1) {
		ns, _ := strconv.ParseFloat(m[2], 64) // the expression takes numbers only
		rate, _ := strconv.ParseFloat(m[3], 64)
		all[m[1]] = append(all[m[1]], policed{time.Duration(ns), rate})
	}
	middle := map[string]policed{}
	for name, ps := range all {
		slices.SortFunc(ps, func(a, b policed) int { return int(a.took - b.took) })
		middle[name] = ps[len(ps)/2]
	}
	return middle
}
