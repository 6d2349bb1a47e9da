//go:build linux

// Command attempt does, from inside a sandbox, what a shell cannot. A verb that has to take
// a privilege first says "ok" and exits with 0 where it has, so that a script goes on to
// send its token only then; what a script achieves is told by the targets, never by it.
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
)

// errLacks is wrapped where the kernel of this machine has not got what is tried.
var errLacks = errors.New("lacks")

func main() {
	verbs := map[string]func(args []string) error{"run": runAll, "off": off, "own": own, "victim": victimMain, "serve": serve}
	maps.Copy(verbs, network())
	maps.Copy(verbs, kernel())
	maps.Copy(verbs, escapes())
	if len(os.Args) < 2 || verbs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: attempt VERB ...; verbs:", slices.Sorted(maps.Keys(verbs)))
		os.Exit(2)
	}
	if err := verbs[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Println(os.Args[1]+":", err)
		os.Exit(1)
	}
}

// unescape reads the escapes of a Go string: \r, \n, \x00.
func unescape(s string) (string, error) {
	var raw []byte
	for len(s) > 0 {
		if s[0] == '"' {
			raw, s = append(raw, '"'), s[1:]
			continue
		}
		c, multi, rest, err := strconv.UnquoteChar(s, 0)
		if err != nil {
			return "", err
		}
		if multi {
			raw = append(raw, string(c)...)
		} else {
			raw = append(raw, byte(c))
		}
		s = rest
	}
	return string(raw), nil
}
