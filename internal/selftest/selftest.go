// Package selftest makes real sandboxes and looks from inside whether their walls hold, and
// whether what people need still works there: the answer of `doctor --sandbox`.
//
// Two sandboxes are made, at the network level that allows nothing. One has tight limits and
// is where everything is tried; the other stands for the sandbox of somebody else, and is
// where tools are tried. What is tried is in package probe and runs as the agent; what PID 1
// says is asked of PID 1. Neither takes a program or a file of the image for an answer. Every
// judgement is made here.
package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/Insights/insightscli/internal/doctor"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
)

const (
	// bound is how long everything may take; with a healthy engine it is seconds.
	bound = 2 * time.Minute
	// cleanTime is how long the removal may take, also after an interrupt.
	cleanTime = 30 * time.Second
)

// Options say which sandboxes are tested.
type Options struct {
	Provider sandbox.Provider
	Name     string // of the provider
	Foreign  bool   // the runtime brings a kernel of its own
	Image    string
	Runtime  string

	AgentServer string
	UID, GID    int      // of the agent
	ToolDirs    []string // as a run has them
	Path        string   // the agent's PATH; empty: its own

	Dir   string // where directories of runs are made
	Owner string // value of sandbox.LabelOwner
	State string // value of sandbox.LabelState
}

// The limits of the sandbox in which they are tried.
const (
	limitPIDs   = 200
	limitMemory = 192 // MiB
	limitCPUs   = 0.5
)

// Run makes the sandboxes, tests them and removes them, also when ctx ends. The error is
// that of ctx: whatever else goes wrong is a report.
func Run(ctx context.Context, o Options) ([]doctor.Report, error) {
	work, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	t := &test{Options: o}
	began := time.Now()
	start, err := t.start(work)
	var reports []doctor.Report
	if err != nil {
		reports = append(reports, broken(start, err))
	} else {
		start.text = fmt.Sprintf("%s, two of them in %d ms", t.what(), time.Since(began).Milliseconds())
		reports = append(append(reports, start.report()), t.checks(work)...)
	}
	reports = append(reports, t.remove(ctx))
	if ctx.Err() != nil {
		return reports, context.Cause(ctx)
	}
	return reports, nil
}

// test is one self-test.
type test struct {
	Options
	tight, other *box
	lost         bool // tight has ended
}

func (t *test) what() string {
	text := "provider " + t.Name
	if t.Image != "" {
		text += ", image " + t.Image
	}
	if t.Runtime != "" {
		text += ", runtime " + t.Runtime
	}
	return text
}

// start makes the two sandboxes, at the same time.
func (t *test) start(ctx context.Context) (row, error) {
	r := row{code: "sandbox-start", title: "A sandbox starts", fix: "insightscli doctor"}
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return r, err
	}
	var err error
	if t.tight, err = newBox(t.Options, "tight"); err != nil {
		return r, err
	}
	if t.other, err = newBox(t.Options, "other"); err != nil {
		return r, err
	}
	t.tight.spec.PIDs, t.tight.spec.MemoryMiB, t.tight.spec.CPUs = limitPIDs, limitMemory, limitCPUs
	failed := make(chan error, 2)
	for _, b := range []*box{t.tight, t.other} {
		go func() { failed <- b.open(ctx, t.Provider) }()
	}
	return r, errors.Join(<-failed, <-failed)
}

// remove removes everything and sees whether it is gone.
func (t *test) remove(ctx context.Context) doctor.Report {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	r := row{code: "sandbox-removed", title: "Nothing is left behind", fix: "insightscli prune", text: "both sandboxes and their directories are gone"}
	var all []error
	for _, b := range []*box{t.tight, t.other} {
		if b == nil {
			continue
		}
		all = append(all, b.close(ctx))
		left, err := t.Provider.List(ctx, map[string]string{sandbox.LabelRun: string(b.run)})
		if len(left) > 0 {
			err = fmt.Errorf("the sandbox of run %s is still there", b.run.Short())
		}
		if errs.KindOf(err) == errs.Unavailable { // the engine that could make none
			err = nil
		}
		all = append(all, err)
	}
	if err := errors.Join(all...); err != nil {
		return broken(r, err)
	}
	return r.report()
}

// repoDir is where the mounted repository lies inside.
const repoDir = "/tmp/workspace/repos/selftest/repo"

// hostRepo is the same on the host.
func (b *box) hostRepo() string { return filepath.Join(b.spec.Dir, "work", "repo") }
