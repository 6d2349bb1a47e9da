package doctor

import (
	"context"
	"fmt"
	"strings"
)

// store are the checks of what is recorded in the state directory, and of the runner
// at work in it.
func (m *machine) store() []Check {
	return []Check{
		{
			Code: "state", Title: "The state directory", Severity: Error, Fix: "set INSIGHTSCLI_STATE_DIR to a directory on a local disk",
			Look: func(ctx context.Context) (Finding, error) {
				if err := m.Stores(ctx); err != nil {
					return Finding{}, err
				}
				return ok(m.State)
			},
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
			if err := m.App(ctx, label); err != nil {
				return Finding{Step: "oauth-apps"}, err
			}
			return ok("there")
		},
	}
}
