package cli

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/agentserver/archive"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/journal"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/task"
)

type cpOptions struct {
	app *app

	src, dst string
}

func newCpCmd(a *app, runF func(context.Context, *cpOptions) error) *cobra.Command {
	o := &cpOptions{app: a}
	cmd := &cobra.Command{
		Use:   "cp RUN:PATH DEST | cp SRC RUN:PATH",
		Short: "Copy files out of or into the sandbox of a live run",
		Long: `Copies a file or a directory with all that is in it. A destination that is a
directory gets the copy inside it; otherwise the copy gets the destination's
name. A source that ends in /. stands for what is in the directory. PATH is in
the sandbox; a relative one begins where the agent works.

What comes out of a sandbox cannot leave the destination: links that point out
of it and devices are refused. Modes are kept, owners are not.` + exits("0", "1", "2", "5", "130", "143"),
		Example: `  insightscli cp latest:build/report.html .
  insightscli cp fixtures/ 3f9a:/tmp/fixtures`,
		Args: takes(2, 2, "a source and a destination"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.src, o.dst = args[0], args[1]
			if err := o.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), o)
			}
			return runCp(cmd.Context(), o)
		},
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if strings.Contains(word, "/") || strings.Contains(word, ":") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var list []cobra.Completion
		for _, c := range a.runCompletions(cmd.Context(), journal.Filter{Live: true}) {
			id, about, _ := strings.Cut(c, "\t")
			list = append(list, cobra.CompletionWithDesc(id+":", about))
		}
		return list, cobra.ShellCompDirectiveNoSpace
	}
	return cmd
}

func (o *cpOptions) validate() error {
	_, _, from := inSandbox(o.src)
	_, _, to := inSandbox(o.dst)
	switch {
	case from && to:
		return usageError("cp copies between a sandbox and this machine, not between two sandboxes")
	case !from && !to:
		return usageError("one of the two must be in a sandbox: RUN:PATH")
	case o.src == "-" || o.dst == "-":
		return errs.New("cli.cp", errs.Usage, "insightscli exec RUN -- cat FILE", "cp does not stream; - is no file")
	}
	return nil
}

// inSandbox splits RUN:PATH. As with scp, a colon behind a slash is part of a name
// on this machine.
func inSandbox(arg string) (run, name string, ok bool) {
	run, name, ok = strings.Cut(arg, ":")
	if !ok || run == "" || strings.ContainsAny(run, `/\.`) || len(run) == 1 && filepath.VolumeName(arg) != "" {
		return "", arg, false
	}
	return run, name, true
}

func runCp(ctx context.Context, o *cpOptions) error {
	name, _, out := inSandbox(o.src)
	if !out {
		name, _, _ = inSandbox(o.dst)
	}
	s, rec, err := o.app.openRun(ctx, name)
	if err != nil {
		return err
	}
	box, leave, err := s.enter(ctx, rec)
	if err != nil {
		return err
	}
	defer leave()
	if out {
		_, from, _ := inSandbox(o.src)
		return copyOut(ctx, box, pathInSandbox(rec.Spec, from), o.app.local(o.dst))
	}
	_, to, _ := inSandbox(o.dst)
	return copyIn(ctx, box, o.app.local(o.src), pathInSandbox(rec.Spec, to))
}

// local makes a path absolute without losing what its end means.
func (a *app) local(name string) string {
	if filepath.IsAbs(name) || a.process.Dir == "" {
		return name
	}
	return a.process.Dir + string(filepath.Separator) + name
}

// pathInSandbox makes a path of the sandbox absolute without losing what its end
// means.
func pathInSandbox(spec task.Spec, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return spec.WorkDir() + "/" + name
}

// contentsOnly reports whether a name stands for what is in a directory.
func contentsOnly(name string) bool {
	return strings.HasSuffix(filepath.ToSlash(name), "/.")
}

// copyOut brings from, in the sandbox, to a place on this machine. What is not there
// yet is made under another name first: what is refused or broken off leaves nothing.
func copyOut(ctx context.Context, box agent.Remote, from, to string) error {
	info, err := os.Stat(to)
	switch {
	case err == nil && info.IsDir():
		return receive(ctx, box, from, to)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(filepath.Clean(to))
	if _, err := os.Stat(parent); err != nil {
		return errs.New("cli.cp", errs.NotFound, "", "the directory of the destination: %w", err)
	}
	tmp, err := os.MkdirTemp(parent, ".insightscli-cp-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // ours, and gone or empty if all went well
	if err := receive(ctx, box, from, tmp); err != nil {
		return err
	}
	if !contentsOnly(from) && !os.IsPathSeparator(to[len(to)-1]) {
		return os.Rename(filepath.Join(tmp, path.Base(path.Clean(from))), filepath.Clean(to))
	}
	if err := os.Chmod(tmp, 0o755); err != nil { // a directory like any other
		return err
	}
	return os.Rename(tmp, filepath.Clean(to))
}

// receive extracts what the sandbox sends into a directory, which it cannot leave.
func receive(ctx context.Context, box agent.Remote, from, dir string) error {
	r, w := io.Pipe()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sent := make(chan error, 1)
	go func() {
		err := box.ArchiveOut(ctx, from, w)
		_ = w.CloseWithError(err) // never fails; nil is the end
		sent <- err
	}()
	err := archive.Extract(ctx, r, dir, archive.DefaultLimits())
	if err != nil {
		cancel(err)
		_ = r.CloseWithError(err) // never fails
	}
	if other := <-sent; other != nil && !errors.Is(other, err) {
		return other // why the stream broke off
	}
	if errors.Is(err, archive.ErrRefused) {
		return errs.New("cli.cp", errs.Conflict, "copy the files one by one, or use: insightscli exec RUN -- tar c PATH", "%w", err)
	}
	return err
}

// copyIn brings from, on this machine, to a place in the sandbox.
func copyIn(ctx context.Context, box agent.Remote, from, to string) error {
	info, err := os.Lstat(filepath.Clean(from))
	if err != nil {
		return errs.New("cli.cp", errs.NotFound, "", "%w", err)
	}
	isDir, err := dirInSandbox(ctx, box, to)
	if err != nil {
		return err
	}
	switch {
	case isDir || strings.HasSuffix(to, "/"):
		return send(ctx, box, path.Clean(to), func(w io.Writer) error { return archive.Write(ctx, w, from) })
	case info.IsDir():
		if contentsOnly(from) {
			return send(ctx, box, path.Clean(to), func(w io.Writer) error { return archive.Write(ctx, w, from) })
		}
		return send(ctx, box, path.Dir(path.Clean(to)), func(w io.Writer) error {
			return writeTreeAs(ctx, w, from, path.Base(path.Clean(to)))
		})
	case !info.Mode().IsRegular():
		return errs.New("cli.cp", errs.Conflict, "give a directory as the destination", "%q is not a file or directory", from)
	}
	return send(ctx, box, path.Dir(path.Clean(to)), func(w io.Writer) error { return writeAs(w, from, path.Base(to)) })
}

// dirInSandbox asks whether a path of the sandbox is a directory.
func dirInSandbox(ctx context.Context, box agent.Remote, name string) (bool, error) {
	code, err := box.Exec(ctx, wire.Command{Argv: []string{"test", "-d", name}, Dir: "/"}, agent.Stdio{})
	if err != nil && code <= 0 {
		return false, err
	}
	return code == 0, nil
}

// send has the sandbox extract what write writes.
func send(ctx context.Context, box agent.Remote, dir string, write func(io.Writer) error) error {
	r, w := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := write(w)
		_ = w.CloseWithError(err) // never fails; nil is the end
		written <- err
	}()
	err := box.ArchiveIn(ctx, dir, r)
	_ = r.CloseWithError(io.ErrClosedPipe) // never fails
	if own := <-written; own != nil && !errors.Is(own, io.ErrClosedPipe) {
		return own // why the stream broke off
	}
	return err
}

// writeTreeAs writes a directory as a tar stream, under another name.
func writeTreeAs(ctx context.Context, w io.Writer, dir, name string) error {
	r, plain := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := archive.Write(ctx, plain, dir)
		_ = plain.CloseWithError(err) // never fails; nil is the end
		written <- err
	}()
	err := renameEntries(w, r, name)
	_ = r.CloseWithError(io.ErrClosedPipe) // never fails
	if own := <-written; own != nil && !errors.Is(own, io.ErrClosedPipe) {
		return own
	}
	return err
}

// renameEntries copies a tar stream with another first element in all its names.
func renameEntries(w io.Writer, r io.Reader, name string) error {
	in, out := tar.NewReader(r), tar.NewWriter(w)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return errors.Join(out.Close(), drain(r))
		}
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(h.Name, "/")
		h.Name = name + "/" + rest
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}

// drain reads to the end, so that a writer does not see a broken pipe.
func drain(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// writeAs writes one file as a tar stream, under another name.
func writeAs(w io.Writer, file, name string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	tw := tar.NewWriter(w)
	h := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: int64(info.Mode().Perm()),
		ModTime: info.ModTime(), Format: tar.FormatPAX,
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.CopyN(tw, f, info.Size()); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return tw.Close()
}
