package image

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/Insights/insightscli/internal/errs"
)

// release is the Debian release of baseRef.
const release = "bookworm"

var (
	errNoTool     = errors.New("no bootstrap tool")
	errImportOver = errors.New("the import has ended")
)

// Bootstrapper writes the root file system of a Debian with the given packages to
// root, as a tar stream, and says on progress what it does.
type Bootstrapper func(ctx context.Context, packages []string, root io.Writer, progress func(string)) error

// bootstrapRef names the bootstrapped base of t. It holds the package list, so a
// changed list makes another base and an unchanged one is used again.
func bootstrapRef(t Template) string {
	sum := sha256.Sum256([]byte(strings.Join(packages(t.Dockerfile()), " ")))
	return "insights-sandbox-bootstrap:" + release + "-" + hex.EncodeToString(sum[:6])
}

func (b *Builder) bootstrap(ctx context.Context, t Template, ref string, progress func(string)) error {
	boot := b.Bootstrap
	if boot == nil {
		boot = SystemBootstrap
	}
	platform, err := b.Engine.Platform(ctx)
	if err != nil {
		return err
	}
	if here := "linux/" + runtime.GOARCH; platform != here {
		return errs.New("image.Build", errs.Unavailable, "give the engine access to its registry",
			"the engine runs %s, and only %s can be bootstrapped on this machine", platform, here)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	made := make(chan error, 1)
	go func() {
		err := boot(ctx, packages(t.Dockerfile()), w, progress)
		w.CloseWithError(err) // nil is the end of the stream
		made <- err
	}()
	// The engine may stop at the end of the archive, before that of the stream: what
	// follows is read here, so that the tool does not fail on a closed pipe.
	importErr := b.Engine.Import(ctx, ref, struct{ io.Reader }{r})
	if importErr != nil {
		cancel()
		r.CloseWithError(errImportOver)
	} else {
		_, _ = io.Copy(io.Discard, r)
	}
	// A bootstrap that failed is why the import did, unless the import stopped it.
	err = <-made
	if importErr != nil && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, errImportOver)) {
		return fmt.Errorf("import %s: %w", ref, importErr)
	}
	return err
}

// SystemBootstrap is the [Bootstrapper] that runs mmdebstrap or debootstrap,
// whichever is on PATH. debootstrap needs root.
func SystemBootstrap(ctx context.Context, packages []string, root io.Writer, progress func(string)) error {
	if tool, err := exec.LookPath("mmdebstrap"); err == nil {
		progress("bootstrapping Debian " + release + " with mmdebstrap; this takes a minute or two")
		return mmdebstrap(ctx, tool, packages, root, progress)
	}
	tool, err := exec.LookPath("debootstrap")
	if err != nil {
		return errNoTool
	}
	if os.Geteuid() != 0 {
		return errs.New("image.Build", errs.Unavailable, "install mmdebstrap, which works for every user",
			"debootstrap works for root only")
	}
	progress("bootstrapping Debian " + release + " with debootstrap; this takes a few minutes")
	return debootstrap(ctx, tool, packages, root, progress)
}

func mmdebstrap(ctx context.Context, tool string, packages []string, root io.Writer, progress func(string)) error {
	return run(ctx, root, progress, tool,
		"--variant=minbase", "--format=tar", "--include="+strings.Join(packages, ","),
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
		`--aptopt=Acquire::Languages "none"`,
		release, "-")
}

func debootstrap(ctx context.Context, tool string, packages []string, root io.Writer, progress func(string)) (err error) {
	dir, err := os.MkdirTemp("", "insights-bootstrap-*")
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	defer func() {
		if rmErr := os.RemoveAll(dir); err == nil && rmErr != nil {
			err = fmt.Errorf("bootstrap: %w", rmErr)
		}
	}()
	err = run(ctx, lineWriter(progress), progress, tool,
		"--variant=minbase", "--include="+strings.Join(packages, ","), release, dir)
	if err != nil {
		return err
	}
	return run(ctx, root, progress, "tar", "--numeric-owner", "--one-file-system", "-C", dir, "-c", ".")
}

// run runs a tool, reports its standard error line by line and ends its error with
// the last line, which says most.
func run(ctx context.Context, out io.Writer, progress func(string), tool string, args ...string) error {
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Stdout = out
	cmd.WaitDelay = 10 * time.Second
	// mmdebstrap takes its chroot apart on SIGINT and leaves it behind on SIGKILL.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	last := ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			last = line
			progress(line)
		}
	}
	_, _ = io.Copy(io.Discard, stderr) // what follows a line too long to scan
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return errs.New("image.Build", errs.Unavailable, "check that Debian's mirrors can be reached",
			"bootstrap: %s: %w: %s", tool, err, last)
	}
	return nil
}

// lineWriter makes a writer of a progress function.
type lineWriter func(string)

// Write implements io.Writer for output that comes in whole lines.
func (f lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		f(strings.TrimSpace(line))
	}
	return len(p), nil
}
