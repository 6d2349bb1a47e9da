package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/task"
)

type envOptions struct {
	app *app

	name string
	json bool
}

func newEnvCmd(a *app) *cobra.Command {
	return newGroup("env", "Manage sandbox environments: what a run may reach, and what its agent gets",
		newEnvCreateCmd(a, nil), newEnvListCmd(a, nil), newEnvShowCmd(a, nil), newEnvEditCmd(a, nil), newEnvDeleteCmd(a, nil),
		newEnvCheckCmd(a, nil), newEnvDeniedCmd(a, nil))
}

func newEnvListCmd(a *app, runF func(context.Context, *envOptions) error) *cobra.Command {
	o := &envOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sandbox environments",
		Long: `Lists your sandbox environments, and those that the settings bring (the key
environments of insights.yaml). Where both have a name, yours is taken.` + exits("0", "1", "2"),
		Example:           `  insightscli env list`,
		Args:              takes(0, 0, ""),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runEnvList(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON array")
	return cmd
}

func newEnvShowCmd(a *app, runF func(context.Context, *envOptions) error) *cobra.Command {
	o := &envOptions{app: a}
	cmd := &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a sandbox environment",
		Long:              "Shows what an environment allows and gives. The values of secrets are not shown." + exits("0", "1", "2", "5"),
		Example:           `  insightscli env show ci`,
		Args:              takes(1, 1, "a NAME"),
		ValidArgsFunction: a.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runEnvShow(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return cmd
}

func newEnvDeleteCmd(a *app, runF func(context.Context, *envOptions) error) *cobra.Command {
	o := &envOptions{app: a}
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a sandbox environment",
		Long: `Deletes an environment and its secrets. Runs that have begun keep what they have
taken of it.` + exits("0", "1", "2", "5"),
		Example:           `  insightscli env delete ci`,
		Args:              takes(1, 1, "a NAME"),
		ValidArgsFunction: a.completeEnvironments,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runEnvDelete(cmd.Context(), o)
		},
	}
}

// environmentObject is an environment as --json prints it.
type environmentObject struct {
	Name           string            `json:"name"`
	Network        task.Network      `json:"network"`
	Allow          []string          `json:"allow"`
	IncludeDefault bool              `json:"include_default_domains"`
	Image          string            `json:"image,omitempty"`
	Repos          []string          `json:"repos,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	Secrets        []string          `json:"secrets,omitempty"` // names
	Private        bool              `json:"private"`
	From           string            `json:"from,omitempty"` // a file; empty: it is the user's own
}

func environmentOf(e platform.Environment, from string, secrets []string) environmentObject {
	allow := e.Domains
	if allow == nil {
		allow = []string{}
	}
	return environmentObject{
		Name: e.Name, Network: e.Network, Allow: allow, IncludeDefault: e.IncludeDefault, Image: e.Image, Repos: e.Repos,
		Env: e.Env, Secrets: secrets, Private: e.Private, From: from,
	}
}

// environments are all environments that there are, by name.
func (a *app) environments(ctx context.Context) ([]environmentObject, error) {
	s, err := a.openStateAndAdopt(ctx)
	if err != nil {
		return nil, err
	}
	own, err := platform.NewEnvironments(s.db.DB).List(ctx, seedTeam, seedUser)
	if err != nil {
		return nil, err
	}
	all := []environmentObject{}
	for _, e := range own {
		all = append(all, environmentOf(e, "", slices.Sorted(maps.Keys(e.Sealed))))
	}
	from := "the settings"
	if v, ok := s.config.ByProject("INSIGHTSCLI_ENVIRONMENTS"); ok {
		from = v.Source
	}
	for name, e := range s.config.Run.Environments {
		if slices.ContainsFunc(all, func(o environmentObject) bool { return o.Name == name }) {
			continue
		}
		all = append(all, environmentOf(platform.Environment{
			Name: name, Network: task.Network(e.Network), Domains: e.Allow, IncludeDefault: e.IncludeDefault,
			Image: e.Image, Repos: lowered(e.Repos), Env: e.Env,
		}, from, e.Secrets))
	}
	slices.SortFunc(all, func(x, y environmentObject) int { return strings.Compare(x.Name, y.Name) })
	return all, nil
}

func runEnvList(ctx context.Context, o *envOptions) error {
	all, err := o.app.environments(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return writeJSON(o.app.streams.Out, all)
	}
	if len(all) == 0 {
		fmt.Fprintln(o.app.streams.Err, "there are none; make one with: insightscli env create NAME --level trusted")
		return nil
	}
	w := tabwriter.NewWriter(o.app.streams.Out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "NAME\tNETWORK\tALLOWED\tGIVES\tFROM\n")
	for _, e := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cell(e.Name, 64), e.Network, cell(e.allowed(), 50), cell(e.gives(), 50), cell(e.from(), 0))
	}
	return w.Flush()
}

func (e environmentObject) from() string {
	switch {
	case e.From != "":
		return e.From
	case e.Private:
		return "yours, private"
	}
	return "yours"
}

// allowed says what an environment lets through.
func (e environmentObject) allowed() string {
	switch e.Network {
	case task.NetworkFull:
		return "every public address"
	case task.NetworkTrusted:
		return "the trusted list"
	}
	all := slices.Clone(e.Allow)
	if e.IncludeDefault {
		all = append(all, "the trusted list")
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(all, ", ")
}

// gives says what an agent gets of it.
func (e environmentObject) gives() string {
	all := slices.Concat(slices.Sorted(maps.Keys(e.Env)), e.Secrets)
	if e.Image != "" {
		all = append(all, "image "+e.Image)
	}
	return strings.Join(all, ", ")
}

func runEnvShow(ctx context.Context, o *envOptions) error {
	e, err := o.find(ctx)
	if err != nil {
		return err
	}
	if o.json {
		return writeJSON(o.app.streams.Out, e)
	}
	w := tabwriter.NewWriter(o.app.streams.Out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, cell(value, 0))
		}
	}
	line("name", e.Name)
	line("from", e.from())
	line("network", string(e.Network))
	line("allowed", e.allowed())
	line("image", e.Image)
	line("repos", strings.Join(e.Repos, ", "))
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		line("variable", name+"="+e.Env[name])
	}
	for _, name := range e.Secrets {
		line("secret", name)
	}
	return w.Flush()
}

// find returns the environment that is named.
func (o *envOptions) find(ctx context.Context) (environmentObject, error) {
	all, err := o.app.environments(ctx)
	if err != nil {
		return environmentObject{}, err
	}
	i := slices.IndexFunc(all, func(e environmentObject) bool { return e.Name == o.name })
	if i < 0 {
		return environmentObject{}, noEnvironment(o.name)
	}
	return all[i], nil
}

func runEnvDelete(ctx context.Context, o *envOptions) error {
	s, err := o.app.openStateAndAdopt(ctx)
	if err != nil {
		return err
	}
	if err := s.ownEnvironment(ctx, o.name); err != nil {
		return err
	}
	if err := platform.NewEnvironments(s.db.DB).Delete(ctx, seedTeam, seedUser, o.name); err != nil {
		return err
	}
	fmt.Fprintf(o.app.streams.Out, "deleted %s\n", o.name)
	return nil
}

// completeEnvironments proposes the names of environments.
func (a *app) completeEnvironments(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := a.environments(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeEnvironmentFlag proposes them for --env, whatever the arguments are.
func (a *app) completeEnvironmentFlag(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	return a.completeEnvironments(cmd, nil, begun)
}

// completeLevel has the shell propose the network levels of environments.
func completeLevel(cmd *cobra.Command) {
	// It fails only for a flag that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("level", cobra.FixedCompletions(
		[]string{string(task.NetworkFull), string(task.NetworkTrusted), string(task.NetworkCustom)}, cobra.ShellCompDirectiveNoFileComp))
}
