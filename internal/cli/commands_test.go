package cli

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/term"
)

// parse runs one command up to its work and returns the options that the work would
// have got, without the app.
func parse[O any](t *testing.T, newCmd func(*app, func(context.Context, *O) error) *cobra.Command, tty bool, args ...string) (*O, error) {
	t.Helper()
	streams, _, _, _ := term.Test()
	streams.InTTY, streams.OutTTY = tty, tty
	var got *O
	cmd := newCmd(newApp(Process{Streams: streams}), func(_ context.Context, o *O) error {
		got = o
		return nil
	})
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError("%w", err) })
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	if args == nil {
		cmd.SetArgs([]string{})
	}
	return got, cmd.ExecuteContext(t.Context())
}

func TestParseExec(t *testing.T) {
	for _, tt := range []struct {
		args []string
		tty  bool
		want execOptions
	}{
		{args: []string{"latest", "--", "ls", "-l"}, want: execOptions{run: "latest", command: []string{"ls", "-l"}}},
		{args: []string{"latest", "ls", "-l", "--", "x"}, want: execOptions{run: "latest", command: []string{"ls", "-l", "--", "x"}}},
		{args: []string{"-w", "/", "-e", "A=b", "latest", "env"}, want: execOptions{run: "latest", command: []string{"env"}, dir: "/", env: []string{"A=b"}}},
		{args: []string{"latest"}, tty: true, want: execOptions{run: "latest", command: []string{}}},
	} {
		o, err := parse(t, newExecCmd, tt.tty, tt.args...)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		o.app = nil
		if !reflect.DeepEqual(*o, tt.want) {
			t.Errorf("%q: %+v, want %+v", tt.args, *o, tt.want)
		}
	}
}

func TestExecHasATerminalOnlyBetweenTwo(t *testing.T) {
	for _, tt := range []struct {
		args []string
		tty  bool
		want bool
	}{
		{[]string{"latest", "sh"}, true, true},
		{[]string{"latest", "sh"}, false, false},
		{[]string{"--no-tty", "latest", "sh"}, true, false},
	} {
		o, err := parse(t, newExecCmd, tt.tty, tt.args...)
		if err != nil {
			t.Fatal(err)
		}
		if c := o.wire(""); c.TTY != tt.want || c.TTY && c.Env[0] != "TERM=xterm" {
			t.Errorf("%q: %+v", tt.args, c)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	check := func(args []string, err error) {
		t.Helper()
		if errs.KindOf(err) != errs.Usage {
			t.Errorf("%q: %v", args, err)
		}
	}
	for _, args := range [][]string{nil, {"latest"}, {"-e", "=x", "latest", "env"}} {
		_, err := parse(t, newExecCmd, false, args...)
		check(args, err)
	}
	for _, args := range [][]string{nil, {"a"}, {"a", "b"}, {"a:b", "c:d"}, {"a:b", "c", "d"}} {
		_, err := parse(t, newCpCmd, false, args...)
		check(args, err)
	}
	for _, args := range [][]string{nil, {"a", "b"}, {"--stat", "--json", "a"}} {
		_, err := parse(t, newDiffCmd, false, args...)
		check(args, err)
	}
	for _, args := range [][]string{{"check"}, {"check", "nothing"}, {"build", "vm_base"}, {"ls", "x"}, nil, {"rm"}} {
		_, err := parse(t, newImageCmd, false, args...)
		check(args, err)
	}
	for _, args := range [][]string{nil, {"--timeout", "soon", "a"}} {
		_, err := parse(t, newCancelCmd, false, args...)
		check(args, err)
	}
}

func TestParseTheRest(t *testing.T) {
	if o, err := parse(t, newImageCmd, false, "build", "Default_Base", "--no-cache"); err != nil || o.template != image.DefaultBase || !o.noCache {
		t.Errorf("image build: %+v, %v", o, err)
	}
	if o, err := parse(t, newWaitCmd, false, "a", "b", "--timeout", "3s"); err != nil || len(o.runs) != 2 || o.timeout != 3*time.Second {
		t.Errorf("wait: %+v, %v", o, err)
	}
	if o, err := parse(t, newCancelCmd, false, "a"); err != nil || o.timeout != cancelBound || o.noWait {
		t.Errorf("cancel: %+v, %v", o, err)
	}
	if o, err := parse(t, newStartCmd, false, "--idle-end", "30s"); err != nil || o.detach || o.idleEnd != 30*time.Second {
		t.Errorf("start: %+v, %v", o, err)
	}
	if o, err := parse(t, newStopCmd, false, "--cancel"); err != nil || !o.cancel {
		t.Errorf("stop: %+v, %v", o, err)
	}
	if o, err := parse(t, newPsCmd, false, "-a", "--json"); err != nil || !o.all || !o.json {
		t.Errorf("ps: %+v, %v", o, err)
	}
	if o, err := parse(t, newPruneCmd, false, "--dry-run", "-y", "--all"); err != nil || !o.dryRun || !o.yes || !o.all {
		t.Errorf("prune: %+v, %v", o, err)
	}
	if o, err := parse(t, newApplyCmd, false, "x", "--repo", "a/b", "--to", "d"); err != nil || o.run != "x" || o.repo != "a/b" || o.to != "d" {
		t.Errorf("apply: %+v, %v", o, err)
	}
	if o, err := parse(t, newLogsCmd, false, "x", "-f", "--kind", "step,output", "--kind", "notice"); err != nil || !o.follow || len(o.chosen.kinds) != 3 {
		t.Errorf("logs: %+v, %v", o, err)
	}
}

func TestAgeAndCell(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 59 * time.Second: "59s", 90 * time.Minute: "1h", 47 * time.Hour: "47h", 50 * time.Hour: "2d"} {
		if got := age(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	for text, want := range map[string]string{"": "-", "a\x1b[2Jb\nc\t d": "ab c d", "a long title": "a long…"} {
		if got := cell(text, 7); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
