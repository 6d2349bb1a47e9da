package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/render"
)

type imageOptions struct {
	app *app

	template image.Template
	noCache  bool
	json     bool
}

func newImageCmd(a *app, runF func(context.Context, *imageOptions) error) *cobra.Command {
	return newGroup("image", "Build and check the images that sandboxes start from",
		newImageBuildCmd(a, runF), newImageCheckCmd(a, runF), newImageLsCmd(a, runF))
}

func newImageBuildCmd(a *app, runF func(context.Context, *imageOptions) error) *cobra.Command {
	o := &imageOptions{app: a}
	cmd := &cobra.Command{
		Use:   "build TEMPLATE",
		Short: "Build the image of a template on the Docker engine",
		Long: `Builds the image and tags it insights-sandbox-base, from the Dockerfile that is
part of this program. Where the base image cannot be pulled it is bootstrapped
with mmdebstrap or debootstrap, if there is one. A run that needs the image and
finds none builds it, too.` + exits("0", "1", "2", "5", "130", "143"),
		Example: `  insightscli image build default_base
  insightscli image build default_base --no-cache`,
		Args:      takes(1, 1, "a TEMPLATE"),
		ValidArgs: buildableTemplates(),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.template, err = buildable(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runImageBuild(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.noCache, "no-cache", false, "use nothing of an earlier build")
	return cmd
}

func newImageCheckCmd(a *app, runF func(context.Context, *imageOptions) error) *cobra.Command {
	o := &imageOptions{app: a}
	cmd := &cobra.Command{
		Use:   "check TEMPLATE",
		Short: "Tell whether the image of a template is there and up to date",
		Long: `Ends with 0 if the Docker engine has the image and it was built from the
Dockerfile of this program, else with 1. Changes nothing.` + exits("0", "1", "2", "5"),
		Example: `  insightscli image check default_base
  insightscli image check default_base || insightscli image build default_base`,
		Args:      takes(1, 1, "a TEMPLATE"),
		ValidArgs: buildableTemplates(),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.template, err = buildable(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runImageCheck(cmd.Context(), o)
		},
	}
	return cmd
}

func newImageLsCmd(a *app, runF func(context.Context, *imageOptions) error) *cobra.Command {
	o := &imageOptions{app: a}
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the templates and what became of their images",
		Long: `Lists the templates of this program with the state of their images on the Docker
engine: fresh, stale (built from another Dockerfile), missing, or not in this
build.` + exits("0", "1", "2", "5"),
		Example: `  insightscli image ls
  insightscli image ls --json`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runImageLs(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON array")
	return cmd
}

// buildable finds a template whose image this build can make.
func buildable(name string) (image.Template, error) {
	if err := checkTemplate(name); err != nil {
		return "", err
	}
	return image.Parse(name)
}

func buildableTemplates() []string {
	var names []string
	for _, t := range image.Templates() {
		if t.Dockerfile() != "" {
			names = append(names, strings.ToLower(string(t)))
		}
	}
	return names
}

func runImageBuild(ctx context.Context, o *imageOptions) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	b := s.providers.builder(s.dir, chosenEngine(s.config.Machine))
	info, err := b.Build(ctx, o.template, o.noCache, func(line string) {
		fmt.Fprintln(o.app.streams.Err, render.Clean(line))
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(o.app.streams.Err, "built %s, %s\n", o.template.Tag(), info.Platform)
	return nil
}

// images asks the engine, without a state directory.
func (o *imageOptions) images(ctx context.Context, ask func(inspect inspectFunc) error) (err error) {
	c, err := o.app.config(nil)
	if err != nil {
		return err
	}
	p := newProviders(c, "")
	defer func() { err = errors.Join(err, p.close()) }()
	engine := p.engine()
	// An engine that does not answer is told as such, not as a missing image.
	if err := engine.Ping(ctx); err != nil {
		return err
	}
	return ask(engine.Images().Inspect)
}

type inspectFunc func(ctx context.Context, ref string) (image.Info, error)

// The states of a template's image.
const (
	imageFresh   = "fresh"
	imageStale   = "stale"
	imageMissing = "missing"
	imageNone    = "not in this build"
)

// imageState tells what became of a template's image.
func imageState(ctx context.Context, t image.Template, inspect inspectFunc) (string, image.Info, error) {
	if t.Dockerfile() == "" {
		return imageNone, image.Info{}, nil
	}
	info, err := inspect(ctx, t.Tag())
	switch {
	case errors.Is(err, image.ErrMissing):
		return imageMissing, info, nil
	case err != nil:
		return "", info, err
	case image.Stale(t.Tag(), info.Labels):
		return imageStale, info, nil
	}
	return imageFresh, info, nil
}

func runImageCheck(ctx context.Context, o *imageOptions) error {
	return o.images(ctx, func(inspect inspectFunc) error {
		state, info, err := imageState(ctx, o.template, inspect)
		switch {
		case err != nil:
			return err
		case state == imageMissing:
			return errs.New("cli.image", errs.NotFound, o.template.Command(), "the engine has no image %s", o.template.Tag())
		case state == imageStale:
			return errs.New("cli.image", errs.Conflict, o.template.Command(),
				"the image %s was built from another Dockerfile than this program has", o.template.Tag())
		}
		fmt.Fprintf(o.app.streams.Err, "%s is up to date, %s\n", o.template.Tag(), info.Platform)
		return nil
	})
}

// imageObject is a template in the output of --json.
type imageObject struct {
	Template string `json:"template"`
	Image    string `json:"image"`
	State    string `json:"state"`
	Platform string `json:"platform,omitempty"`
	ID       string `json:"id,omitempty"`
}

func runImageLs(ctx context.Context, o *imageOptions) error {
	return o.images(ctx, func(inspect inspectFunc) error {
		list := []imageObject{}
		for _, t := range image.Templates() {
			state, info, err := imageState(ctx, t, inspect)
			if err != nil {
				return err
			}
			list = append(list, imageObject{strings.ToLower(string(t)), t.Tag(), state, info.Platform, info.ID})
		}
		if o.json {
			return writeJSON(o.app.streams.Out, list)
		}
		w := tabwriter.NewWriter(o.app.streams.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "TEMPLATE\tIMAGE\tSTATE\tPLATFORM\tID")
		for _, i := range list {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", i.Template, i.Image, i.State, cell(i.Platform, 0), cell(i.ID, 20))
		}
		return w.Flush()
	})
}
