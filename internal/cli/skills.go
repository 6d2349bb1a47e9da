package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/skills"
)

type skillsOptions struct {
	app  *app
	json bool
}

func newSkillsCmd(a *app) *cobra.Command {
	return newGroup("skills", "Build and list what agents are taught", newSkillsBuildCmd(a, nil), newSkillsListCmd(a, nil))
}

func newSkillsBuildCmd(a *app, runF func(context.Context, *skillsOptions) error) *cobra.Command {
	o := &skillsOptions{app: a}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Bundle the configured skills",
		Long: `Checks the skills of INSIGHTSCLI_SKILLS and SANDBOX_LOCAL_SKILLS_HOST_PATH and
bundles them. A skill is a folder with a SKILL.md that begins with its name and
description. Every agent of later runs finds the bundle where it looks for
skills. Runs do this by themselves; this command shows what is wrong when they
cannot.` + exits("0", "1", "2", "3", "5"),
		Example: `  insightscli skills build
  INSIGHTSCLI_SKILLS='products/*/skills' insightscli skills build`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runSkillsBuild(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

func newSkillsListCmd(a *app, runF func(context.Context, *skillsOptions) error) *cobra.Command {
	o := &skillsOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the skills of the current bundle",
		Long: `Lists the skills of the bundle that was built last, with the folder that each was
made of.` + exits("0", "1", "2", "5"),
		Example:           `  insightscli skills list`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runSkillsList(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

func runSkillsBuild(ctx context.Context, o *skillsOptions) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	a := s.config.Agents
	if len(a.Skills) == 0 && a.SkillsOverlay == "" {
		return errs.New("cli.skills", errs.Config, "set INSIGHTSCLI_SKILLS to folders of skills, such as products/*/skills",
			"no skills are configured")
	}
	options, err := s.skillOptions(ctx)
	if err != nil {
		return err
	}
	b, err := skills.Build(ctx, options)
	if err != nil {
		return err
	}
	for _, w := range b.Warnings {
		fmt.Fprintf(o.app.streams.Err, "note: %s\n", w)
	}
	return o.print(b)
}

func runSkillsList(ctx context.Context, o *skillsOptions) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	b, err := skills.Current(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return errs.New("cli.skills", errs.NotFound, "insightscli skills build", "no skills were built yet")
	}
	if err != nil {
		return err
	}
	return o.print(b)
}

func (o *skillsOptions) print(b skills.Bundle) error {
	if o.json {
		return writeJSON(o.app.streams.Out, struct {
			Hash   string         `json:"hash"`
			Dir    string         `json:"dir"`
			Skills []skills.Skill `json:"skills"`
		}{b.Hash, b.Dir, b.Skills})
	}
	w := tabwriter.NewWriter(o.app.streams.Out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "NAME\tDESCRIPTION\tSOURCE\n")
	for _, s := range b.Skills {
		fmt.Fprintf(w, "%s\t%s\t%s\n", cell(s.Name, 40), cell(s.Description, 60), cell(s.Source, 0))
	}
	return w.Flush()
}
