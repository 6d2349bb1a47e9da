package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/render"
)

type configOptions struct {
	app *app

	json bool
}

func newConfigCmd(a *app) *cobra.Command {
	o := &configOptions{app: a}
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting, its value and where the value comes from",
		Long: `Shows every setting with the value in force and its source: a flag, the
environment, a line of .env.local, .env, insights.yaml or config.yaml, or the
default. Secrets are shown as [hidden]. Changes nothing.` + exits("0", "2"),
		Example: `  insightscli config
  insightscli config --json | jq -r '.[] | select(.source != "default") | .name'`,
		Args: takes(0, 0, ""),
		RunE: func(*cobra.Command, []string) error { return runConfig(o) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON array")
	return cmd
}

// settingObject is one setting in the output of --json.
type settingObject struct {
	Name   string      `json:"name"`
	Key    string      `json:"key,omitempty"`
	Flag   string      `json:"flag,omitempty"`
	Type   config.Type `json:"type"`
	Secret bool        `json:"secret,omitempty"`
	Value  string      `json:"value"`
	Source string      `json:"source"`
}

func runConfig(o *configOptions) error {
	c, err := o.app.config(nil)
	if err != nil {
		return err
	}
	if o.json {
		return writeSettingsJSON(o, c.Values())
	}
	w := tabwriter.NewWriter(o.app.streams.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSOURCE\tVALUE")
	for _, v := range c.Values() {
		text := render.Clean(v.Text)
		if text == "" {
			text = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, v.Source, text)
	}
	return w.Flush()
}

func writeSettingsJSON(o *configOptions, values []config.Value) error {
	list := make([]settingObject, 0, len(values))
	for _, v := range values {
		list = append(list, settingObject{v.Name, v.Key, v.Flag, v.Type, v.Secret, v.Text, v.Source})
	}
	enc := json.NewEncoder(o.app.streams.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(list)
}
