//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// logs are the paths of the event logs in a state directory, with their sizes.
func logs(state string) map[string]int64 {
	all := map[string]int64{}
	paths, _ := filepath.Glob(filepath.Join(state, "logs", "*", "*", "*.jsonl")) // the pattern is well-formed
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil {
			all[p] = info.Size()
		}
	}
	return all
}

// talking counts the runs whose command has said something.
func talking(state string) int {
	n := 0
	for p := range logs(state) {
		if b, err := os.ReadFile(p); err == nil && bytes.Contains(b, []byte("_insights/sandbox_output")) {
			n++
		}
	}
	return n
}

// grown counts the logs that are longer than they were.
func grown(state string, before map[string]int64) int {
	n := 0
	for p, size := range logs(state) {
		if size > before[p] {
			n++
		}
	}
	return n
}

// missing counts the gaps in the logs of commands that count aloud from 1: events
// without their successor, and numbers without theirs.
func missing(state string) (int, error) {
	n := 0
	for p := range logs(state) {
		lost, err := missingIn(p)
		if err != nil {
			return n, fmt.Errorf("%s: %w", filepath.Base(p), err)
		}
		n += lost
	}
	return n, nil
}

func missingIn(path string) (lost int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // only read from
	seq, said := 0, 0
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var ev struct {
			Seq          int
			Notification struct {
				Params struct{ Stdout string }
			}
		}
		if err := json.Unmarshal(sc.Bytes(), &ev); err != nil {
			return lost, err
		}
		if seq++; ev.Seq != seq {
			lost++
			seq = ev.Seq
		}
		for word := range strings.FieldsSeq(ev.Notification.Params.Stdout) {
			i, err := strconv.Atoi(word)
			if err != nil {
				return lost, err
			}
			if said++; i != said {
				lost++
				said = i
			}
		}
	}
	return lost, nil
}

// waitFor waits until ok, for a minute at most.
func waitFor(ctx context.Context, ok func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for a minute in vain")
		case <-t.C:
		}
	}
	return nil
}
