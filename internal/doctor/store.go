package doctor

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// store are the checks of what is recorded in the state directory, and of the runner
// at work in it.
func (m *machine) store() []Check {
	return []Check{
		{
			Code: "state", Title: "The state directory", Severity: Error, Fix: "set INSIGHTSCLI_STATE_DIR to a directory on a local disk",
			Look: m.lookState,
		},
		{Code: "tasks-flag", Title: "The tasks flag", Severity: Error, Fix: setupStep("tasks-flag"), Look: m.lookFlag},
		m.appCheck("array-app", "Array", Error),
		m.appCheck("insights-ai-app", "Insights AI", Error),
		{
			Code: "runner", Title: "The background runner", Severity: Error, Fix: "insightscli stop; insightscli start -d",
			Look: func(ctx context.Context) (Finding, error) {
				text, err := m.Runner(ctx)
				if err != nil {
					return Finding{}, err
				}
				return ok(text)
			},
		},
	}
}

// lookState also sees, where there is no state directory yet, whether one can be made.
func (m *machine) lookState(ctx context.Context) (Finding, error) {
	if err := m.Stores(ctx); err != nil {
		return Finding{}, err
	}
	dir := existing(m.State)
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return Finding{}, err
	case !info.IsDir():
		return problem("", dir, "is not a directory")
	case dir == m.State:
		return ok(dir)
	}
	if err := writable(dir); err != nil {
		return problem("", m.State, "cannot be made in", dir+":", err.Error())
	}
	return ok(m.State)
}

func (m *machine) lookFlag(ctx context.Context) (Finding, error) {
	off, err := m.FlagOff(ctx)
	switch {
	case err != nil:
		return Finding{}, err
	case len(off) == 0:
		return ok("on for every team")
	}
	return Finding{State: Problem, Step: "tasks-flag", Text: "off for team " + strings.Trim(strings.ReplaceAll(fmt.Sprint(off), " ", ", "), "[]")}, nil
}

func (m *machine) appCheck(code, label string, s Severity) Check {
	return Check{
		Code: code, Title: "The " + label + " OAuth application", Severity: s,
		Fix: "insightscli setup-tasks-oauth",
		Look: func(ctx context.Context) (Finding, error) {
			switch err := m.App(ctx, label); {
			case errs.KindOf(err) == errs.NotFound:
				return Finding{Step: "oauth-apps"}, err
			case err != nil: // in the regions US and EU no step makes it
				return Finding{}, err
			}
			return ok("there")
		},
	}
}
