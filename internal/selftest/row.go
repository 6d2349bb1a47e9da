package selftest

import (
	"strings"

	"github.com/Insights/insightscli/internal/doctor"
	"github.com/Insights/insightscli/internal/errs"
)

// row is one report in the making.
type row struct {
	code, title string
	fix         string
	text        string // where all is well
	problems    []string
	warnings    []string // what is impaired, but is no hole
	skipped     string
}

// maxNamed bounds how many problems one row names.
const maxNamed = 5

func (r row) report() doctor.Report {
	out := doctor.Report{Code: r.code, State: doctor.OK, Title: r.title, Finding: r.text}
	wrong := r.problems
	switch {
	case len(wrong) > 0:
		out.State, out.Severity, out.Fix = doctor.Problem, doctor.Error, r.fix
	case len(r.warnings) > 0:
		wrong = r.warnings
		out.State, out.Severity, out.Fix = doctor.Problem, doctor.Warning, r.fix
	case r.skipped != "":
		out.State, out.Finding = doctor.Skipped, r.skipped
	}
	if len(wrong) > maxNamed {
		wrong = append(wrong[:maxNamed:maxNamed], "and others")
	}
	if len(wrong) > 0 {
		out.Finding = strings.Join(wrong, "; ")
	}
	return out
}

// broken is a row whose question could not be asked.
func broken(r row, err error) doctor.Report {
	r.problems = []string{strings.Join(strings.Fields(err.Error()), " ")}
	if hint := errs.HintOf(err); hint != "" {
		r.fix = hint
	}
	out := r.report()
	out.Away = errs.KindOf(err) == errs.Unavailable
	return out
}

// warn notes what is impaired, and what helps.
func (r *row) warn(text, fix string) { r.warnings, r.fix = append(r.warnings, text), fix }

// wrong notes a problem.
func (r *row) wrong(text string) { r.problems = append(r.problems, text) }
