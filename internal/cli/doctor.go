package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/doctor"
	"github.com/Insights/insightscli/internal/errs"
)

type doctorOptions struct {
	app *app

	fix      bool
	all      bool
	json     bool
	sandbox  bool
	settings map[string]string
}

func newDoctorCmd(a *app, runF func(context.Context, *doctorOptions) error) *cobra.Command {
	o := &doctorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what keeps background agents from working",
		Long: `Looks at the settings, the engine, the image, keys, addresses, ports and the state
directory, all at the same time, and names one remedy for each problem. Every
question has a code that stays the same. Changes nothing, unless --fix is given,
which applies the remedies that are safe. A warning does not change the exit
code.

With --sandbox it makes two real sandboxes instead, at the network level that
allows nothing, tries from inside what must not work and what must, and removes
them: see docs/isolation.md.` + exits("0", "1", "2", "3", "5", "130", "143"),
		Example: `  insightscli doctor
  insightscli doctor --sandbox --provider local
  insightscli doctor --json | jq -r '.checks[] | select(.state == "problem") | .fix'`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.settings = givenSettings(cmd.Flags())
			if err := o.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runDoctor(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.fix, "fix", false, "apply the remedies that are safe")
	cmd.Flags().BoolVarP(&o.all, "all", "a", false, "show what is well and what does not concern this machine, too")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&o.sandbox, "sandbox", false, "make sandboxes and try their walls from inside")
	cmd.Flags().String("provider", "", "`PROVIDER` of --sandbox: docker or local (default: as a run has it)")
	cmd.Flags().String("image", "", "`IMAGE` of --sandbox (default: the template's)")
	cmd.Flags().String("runtime", "", "OCI `RUNTIME` of --sandbox (default: the engine's own choice)")
	return cmd
}

func (o *doctorOptions) validate() error {
	switch {
	case o.sandbox && o.fix:
		return usageError("give --sandbox or --fix, not both")
	case !o.sandbox && len(o.settings) > 0:
		return usageError("--provider, --image and --runtime need --sandbox")
	}
	return nil
}

func runDoctor(ctx context.Context, o *doctorOptions) error {
	look := o.look
	if o.sandbox {
		look, o.all = o.lookInside, true
	}
	reports, err := look(ctx)
	if err != nil {
		return err
	}
	if o.fix {
		if reports, err = o.repair(ctx, reports); err != nil {
			return err
		}
	}
	verdict := doctor.Verdict(reports)
	if o.json {
		err = writeJSON(o.app.streams.Out, struct {
			Checks []doctor.Report `json:"checks"`
			Code   int             `json:"code"`
		}{reports, codeOf(verdict)})
	} else {
		err = o.print(reports)
	}
	if err != nil {
		return err
	}
	return exitWith(codeOf(verdict))
}

// look asks everything, with the settings as they are now.
func (o *doctorOptions) look(ctx context.Context) ([]doctor.Report, error) {
	c, err := o.app.config(nil)
	if err != nil {
		return doctor.Unreadable(err), nil
	}
	m, err := o.app.machine(ctx, c)
	if err != nil { // there is no place for a state directory
		return doctor.Unreadable(err), nil
	}
	return doctor.Run(ctx, doctor.Checks(m))
}

// repair applies the safe remedies and looks again.
func (o *doctorOptions) repair(ctx context.Context, before []doctor.Report) ([]doctor.Report, error) {
	failed, err := doctor.Repair(ctx, before, func(ctx context.Context, step string) error {
		s := &setupOptions{app: o.app, only: []string{step}}
		results, err := s.run(ctx)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Undone {
				return errors.New(r.Text)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	after, err := o.look(ctx)
	if err == nil {
		doctor.Compare(before, after, failed)
	}
	return after, err
}

func codeOf(err error) int {
	if err == nil {
		return 0
	}
	return errs.KindOf(err).Code()
}

// print shows problems, the gravest first, each with its remedy below it.
func (o *doctorOptions) print(reports []doctor.Report) error {
	w := tabwriter.NewWriter(o.app.streams.Out, 0, 0, 2, ' ', 0)
	counts := map[string]int{}
	for _, word := range []string{"error", "warning", "fixed", "ok", "skipped"} {
		for _, r := range reports {
			if wordOf(r) != word {
				continue
			}
			counts[word]++
			if (word == "ok" || word == "skipped") && !o.all {
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", word, r.Code, cell(r.Finding, 0))
			if r.Fix != "" {
				fmt.Fprintf(w, "\t\tfix: %s\n", cell(r.Fix, 0))
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(o.app.streams.Err, "%s, %s, %d ok\n", count(counts["error"], "error"), count(counts["warning"], "warning"),
		counts["ok"]+counts["fixed"])
	fixable := slices.ContainsFunc(reports, func(r doctor.Report) bool { return r.Step != "" })
	if fixable && !o.fix {
		fmt.Fprintln(o.app.streams.Err, "insightscli doctor --fix applies the safe remedies")
	}
	return nil
}

// wordOf is what a report is called: its severity where it is a problem.
func wordOf(r doctor.Report) string {
	if r.State == doctor.Problem {
		return string(r.Severity)
	}
	return string(r.State)
}
