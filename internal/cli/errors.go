package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/render"
	"github.com/Insights/insightscli/internal/term"
)

// exitError ends the process with a code and prints nothing: what there was to say
// has been said, or the code is a command's own.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitWith returns an error that ends the process quietly with code, nil for 0.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code}
}

// errorObject is what --json prints on stderr.
type errorObject struct {
	Type    string    `json:"type"` // "error"
	Kind    errs.Kind `json:"kind"`
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Hint    string    `json:"hint,omitempty"`
	Op      string    `json:"op,omitempty"` // with --debug
}

// report prints err, once and in one place, and returns the exit code.
func (a *app) report(cmd *cobra.Command, err error) int {
	var exit *exitError
	switch {
	case err == nil, errors.Is(err, term.ErrGone):
		return 0 // nobody reads any more: end as quietly as other tools do
	case errors.As(err, &exit):
		return exit.code
	}
	kind := errs.KindOf(err)
	o := errorObject{Type: "error", Kind: kind, Code: kind.Code(), Message: oneLine(err.Error()), Hint: oneLine(errs.HintOf(err))}
	if o.Hint == "" && kind == errs.Usage {
		o.Hint = fmt.Sprintf("run '%s --help'", cmd.CommandPath())
	}
	if a.debug {
		o.Op = opChain(err)
	}
	switch {
	case wantsJSON(a.process.Args):
		b, _ := json.Marshal(o) // plain strings always marshal
		fmt.Fprintf(a.streams.Err, "%s\n", b)
	case kind == errs.Canceled || kind == errs.Terminated:
		// The one who pressed Ctrl-C knows.
	default:
		a.printError(o)
	}
	return o.Code
}

func (a *app) printError(o errorObject) {
	fmt.Fprintf(a.streams.Err, "error: %s\n", o.Message)
	if o.Hint != "" {
		fmt.Fprintf(a.streams.Err, "hint: %s\n", o.Hint)
	}
	if o.Op != "" {
		fmt.Fprintf(a.streams.Err, "at: %s\n", o.Op)
	}
}

// opChain names the operations an error went through, the outermost first.
func opChain(err error) string {
	var ops []string
	var e *errs.Error
	for ; errors.As(err, &e); err = e.Err {
		ops = append(ops, e.Op)
	}
	return strings.Join(ops, " > ")
}

// oneLine keeps an error on its line, whatever a server put into it.
func oneLine(s string) string {
	return render.Clean(strings.Join(strings.Fields(s), " "))
}

// wantsJSON looks for --json itself, because a command line that cannot be parsed
// is reported in that form too.
func wantsJSON(args []string) bool {
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// usageError returns an error of kind Usage with the default hint.
func usageError(format string, args ...any) error {
	return errs.New("cli.Parse", errs.Usage, "", format, args...)
}

// notInBuild refuses what a later build will do: never ignored, always exit 2.
func notInBuild(hint, format string, args ...any) error {
	return errs.New("cli.Parse", errs.Usage, hint, format, args...)
}
