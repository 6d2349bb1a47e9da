package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/transcript"
)

type exportOptions struct {
	app *app

	run    string
	format string
	file   string // empty or "-": standard output
	full   bool
}

// exportFormats are the formats of a transcript; the first is the usual one.
func exportFormats() []string { return []string{"md", "html", "jsonl", "cast"} }

func newLogsExportCmd(a *app, runF func(context.Context, *exportOptions) error) *cobra.Command {
	o := &exportOptions{app: a}
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "Write what happened in a run into a file to keep or to show",
		Long: `Writes a transcript of a run: its prompt, what the agent said and did, with the
arguments, results and changes of its tools folded, what was refused and published,
and how it ended.

  md     Markdown as GitHub shows it
  html   one page that needs nothing else: no network, no script
  jsonl  the stored lines, all of them
  cast   the output of the command as a recording for asciinema (version 2)

What comes from the sandbox can do nothing in a transcript: escape sequences are
taken out and HTML and Markdown are made harmless. Of a long output md and html keep
the beginning and the end; --full keeps all. Of a run that is going on it is what
happened so far. A file is replaced at once, when it is complete.` + exits("0", "1", "2", "3", "5", "130", "143"),
		Example: `  insightscli logs export latest > run.md
  insightscli logs export 3f9a -o run.html
  insightscli logs export 3f9a --format cast -o run.cast && asciinema play run.cast`,
		Args:              takes(1, 1, "a RUN"),
		ValidArgsFunction: a.completeRuns(journal.Filter{}, true),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.run = args[0]
			if err := o.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runLogsExport(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "", "the `FORMAT`: "+strings.Join(exportFormats(), ", ")+"; unset: what the name of the file ends with, else md")
	f.StringVarP(&o.file, "output", "o", "", "write into this `FILE` instead of the output")
	f.BoolVar(&o.full, "full", false, "leave nothing out of long outputs")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormats(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *exportOptions) validate() error {
	if o.format == "" {
		ending := strings.TrimPrefix(filepath.Ext(o.file), ".")
		o.format = cmp.Or(map[string]string{"htm": "html", "markdown": "md"}[ending], ending)
		if !slices.Contains(exportFormats(), o.format) {
			o.format = exportFormats()[0]
		}
	}
	if !slices.Contains(exportFormats(), o.format) {
		return usageError("unknown format %q; there are %s", o.format, strings.Join(exportFormats(), ", "))
	}
	return nil
}

func runLogsExport(ctx context.Context, o *exportOptions) error {
	s, rec, err := o.app.openRun(ctx, o.run)
	if err != nil {
		return err
	}
	if o.file == "" || o.file == "-" {
		w := bufio.NewWriterSize(o.app.streams.Out, 64<<10)
		err := o.export(ctx, s, rec, w)
		return errors.Join(err, w.Flush())
	}
	return replaceFile(o.file, func(w io.Writer) error { return o.export(ctx, s, rec, w) })
}

// export writes the transcript. Damaged lines of the log are left out and told.
func (o *exportOptions) export(ctx context.Context, s *state, rec journal.Record, w io.Writer) error {
	if o.format == "jsonl" {
		return damaged(s.store.CopyLog(ctx, rec, 0, w))
	}
	t, err := o.transcript(w, aboutRun(rec))
	if err != nil {
		return err
	}
	err = s.store.ReadLog(ctx, rec, 0, func(_ []byte, ev task.Event) error { return t.Event(ev) })
	if err != nil && errs.KindOf(err) != errs.Incomplete {
		return err
	}
	if end := t.Close(); errors.Is(end, transcript.ErrNoOutput) {
		return errs.New("cli.export", errs.NotFound, "insightscli logs export "+rec.Spec.Run.Short()+" --format html",
			"run %s has no output of a command, which is what a cast shows", rec.Spec.Run.Short())
	} else if end != nil {
		return end
	}
	return damaged(err)
}

func (o *exportOptions) transcript(w io.Writer, a transcript.About) (transcript.Writer, error) {
	switch o.format {
	case "html":
		return transcript.HTML(w, a, transcript.Options{Full: o.full})
	case "cast":
		return transcript.Cast(w, a), nil
	}
	return transcript.Markdown(w, a, transcript.Options{Full: o.full}), nil
}

func aboutRun(rec journal.Record) transcript.About {
	spec := shownSpec(rec.Spec)
	a := transcript.About{
		Run: spec.Run, State: rec.State, Title: spec.Title, Prompt: spec.Description, Command: spec.Agent.Command,
		Agent: spec.Agent.Name, Model: spec.Agent.Model, Provider: spec.Provider, Network: string(spec.Network),
		Repos: repoNames(spec), Created: rec.Created,
	}
	return a
}

// incomplete is an error after which what was written is worth keeping.
type incomplete struct{ error }

// Unwrap lets the kind of the error be found.
func (i incomplete) Unwrap() error { return i.error }

func damaged(err error) error {
	if errs.KindOf(err) == errs.Incomplete {
		return incomplete{err}
	}
	return err
}

// replaceFile writes a file that is there whole or not at all, for its owner alone.
func replaceFile(path string, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return usageError("%s is no file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".insightscli-*")
	if errors.Is(err, fs.ErrNotExist) {
		return usageError("no directory %s", filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	kept := false
	defer func() {
		if !kept {
			_ = os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriterSize(f, 256<<10)
	err = write(w)
	var partly incomplete
	if err != nil && !errors.As(err, &partly) {
		_ = f.Close() // it is removed
		return err
	}
	if broken := errors.Join(w.Flush(), f.Sync(), f.Close()); broken != nil {
		return broken
	}
	if broken := os.Rename(f.Name(), path); broken != nil {
		return broken
	}
	kept = true
	return err
}
