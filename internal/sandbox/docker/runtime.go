package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/system"

	"github.com/Insights/insightscli/internal/errs"
)

// ociRuntime is one of an engine's runtimes.
type ociRuntime struct {
	path string
	args []string
}

func (f *facts) readRuntimes(info system.Info) {
	f.id, f.version, f.defaultRuntime = info.ID, info.ServerVersion, info.DefaultRuntime
	f.runtimes = map[string]ociRuntime{}
	for name, r := range info.Runtimes {
		f.runtimes[name] = ociRuntime{path: r.Path, args: r.Args}
	}
}

// checkRuntime refuses a runtime that the engine does not have; "" is its own choice.
func (f facts) checkRuntime(ep endpoint, name string) error {
	if _, ok := f.runtimes[name]; ok || name == "" {
		return nil
	}
	has := strings.Join(slices.Sorted(maps.Keys(f.runtimes)), ", ")
	return errs.New("docker.Create", errs.Config, "use one of these, or have the engine know it (runtimes in its daemon.json)",
		"docker at %s has no runtime %q; it has %s", ep, name, has)
}

// chosen is the runtime that a container gets.
func (f facts) chosen(name string) string {
	if name == "" {
		return f.defaultRuntime
	}
	return name
}

// shares reports whether containers of a runtime run on the engine's own kernel, with
// its sockets and its nf_tables. Of one that is not known it is not taken for granted.
func (f facts) shares(name string) bool {
	name = f.chosen(name)
	program := path.Base(f.runtimes[name].path)
	if program == "." { // the engine does not tell where it is
		program = name
	}
	switch program {
	case "", "runc", "crun", "youki", "nvidia-container-runtime", "io.containerd.runtime.v1.linux":
		return true
	}
	return strings.HasPrefix(program, "io.containerd.runc.")
}

// Runtime describes what containers are run by.
type Runtime struct {
	Name string
	// Foreign: it brings a kernel of its own, so that what works with others has to be
	// tried with it.
	Foreign bool
	// Key is the same as long as engine, runtime and their versions are.
	Key string
}

// Runtime returns the runtime of that name, "" for the engine's own choice. The error
// names those that there are.
func (p *Provider) Runtime(ctx context.Context, name string) (Runtime, error) {
	f, err := p.engine.facts(ctx)
	if err != nil {
		return Runtime{}, err
	}
	if err := f.checkRuntime(p.engine.ep, name); err != nil {
		return Runtime{}, err
	}
	r := Runtime{Name: f.chosen(name), Foreign: !f.shares(name)}
	known := f.runtimes[r.Name]
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q %q", f.id, f.version, r.Name, known.path, known.args)
	if f.local {
		// The engine does not tell the version; the file changes with it.
		if info, err := os.Stat(known.path); err == nil {
			fmt.Fprintf(h, " %d %d", info.Size(), info.ModTime().UnixNano())
		}
	}
	r.Key = hex.EncodeToString(h.Sum(nil)[:16])
	return r, nil
}
