package cli

import (
	"fmt"
	"slices"
	"strings"
)

// exitCode is one row of the published table.
type exitCode struct {
	code    string
	meaning string
}

// exitCodes is the table of `help exit-codes`, README and every command's help.
func exitCodes() []exitCode {
	return []exitCode{
		{"0", "success"},
		{"1", "insightscli itself failed"},
		{"2", "usage or configuration; nothing was started"},
		{"3", "work done, but something was left behind"},
		{"4", "not authenticated or not allowed"},
		{"5", "a needed service is not reachable"},
		{"7", "the run ended in order, and the task failed"},
		{"8", "still running: detached, or `wait` gave up"},
		{"124", "the wall-clock limit ended the run"},
		{"130", "interrupted"},
		{"143", "terminated"},
		{"n", "the command's own code"},
	}
}

// exits describes the codes a command can end with, for its Long text.
func exits(codes ...string) string {
	var b strings.Builder
	b.WriteString("\n\nExit codes:\n")
	for _, e := range exitCodes() {
		if slices.Contains(codes, e.code) {
			fmt.Fprintf(&b, "  %-4s %s\n", e.code, e.meaning)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// signalNumber is the number of a signal that ended a command in a sandbox, which is
// a Linux one wherever this program runs; 0 for none.
func signalNumber(name string) int {
	return map[string]int{
		"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGILL": 4, "SIGTRAP": 5, "SIGABRT": 6, "SIGBUS": 7, "SIGFPE": 8,
		"SIGKILL": 9, "SIGUSR1": 10, "SIGSEGV": 11, "SIGUSR2": 12, "SIGPIPE": 13, "SIGALRM": 14, "SIGTERM": 15,
		"SIGXCPU": 24, "SIGXFSZ": 25, "SIGSYS": 31,
	}[name]
}
