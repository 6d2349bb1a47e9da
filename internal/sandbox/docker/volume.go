package docker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/sandbox"
)

// overlayName names the volume of a run's mount number n.
func overlayName(run string, n int) string { return fmt.Sprintf("%s%d", overlayPrefix(run), n) }

func overlayPrefix(run string) string { return containerName(run) + "-overlay-" }

func isOverlay(run, volume string) bool { return strings.HasPrefix(volume, overlayPrefix(run)) }

// CanOverlay implements [sandbox.Overlayer]. It knows rather than tries: the engine
// must share this file system and be root of this machine (a rootless one is
// refused redirect_dir), and dir must be on a file system that can hold an upper
// directory and have a name that mount options can carry.
func (p *Provider) CanOverlay(ctx context.Context, dir string) bool {
	f, err := p.engine.facts(ctx)
	return err == nil && f.local && !f.rootless && !f.remapped && !f.podman &&
		!strings.ContainsAny(dir, `,:\"`) && holdsUpper(dir)
}

// createOverlay makes the volume of an overlay mount; the engine mounts it when the
// container starts.
func (e *engine) createOverlay(ctx context.Context, name string, m sandbox.Mount, labels map[string]string) error {
	api, err := e.connect(ctx)
	if err != nil {
		return err
	}
	_, err = api.VolumeCreate(ctx, volume.CreateOptions{
		Name: name, Driver: "local", Labels: labels,
		DriverOpts: map[string]string{
			"type": "overlay", "device": "overlay",
			"o": "lowerdir=" + m.Source + ",upperdir=" + m.Upper + ",workdir=" + m.Work + ",redirect_dir=on",
		},
	})
	if err != nil {
		return fmt.Errorf("create overlay volume: %w", err)
	}
	return nil
}

// overlays lists the names of the volumes with the given labels, and a run.
func (e *engine) overlays(ctx context.Context, labels map[string]string) ([]string, error) {
	api, err := e.connect(ctx)
	if err != nil {
		return nil, err
	}
	found, err := api.VolumeList(ctx, volume.ListOptions{Filters: labelFilter(labels)})
	if err != nil {
		return nil, fmt.Errorf("list overlay volumes: %w", err)
	}
	names := make([]string, 0, len(found.Volumes))
	for _, v := range found.Volumes {
		names = append(names, v.Name)
	}
	return names, nil
}

// removeVolume removes an overlay volume that no container uses any more, and
// empties its upper and work directories.
func (e *engine) removeVolume(ctx context.Context, name string) error {
	api, err := e.connect(ctx)
	if err != nil {
		return err
	}
	v, err := api.VolumeInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = api.VolumeRemove(ctx, name, true)
	}
	if err != nil && !cerrdefs.IsNotFound(err) {
		return errs.New("docker.Destroy", errs.Incomplete, "run `insightscli prune` later",
			"remove volume %s: %w", name, err)
	}
	return e.emptyUpper(ctx, v.Options["o"], v.Labels[labelImage])
}

// emptyUpper empties the upper and work directories of overlay mount options. The
// kernel's own directory below work belongs to root; where this process may not
// remove it a helper container, which may, does.
func (e *engine) emptyUpper(ctx context.Context, options, image string) error {
	dirs := upperDirs(options)
	err := emptyDirs(dirs)
	if err == nil || image == "" {
		return err
	}
	if helpErr := e.emptyByContainer(ctx, dirs, image); helpErr != nil {
		return errs.New("docker.Destroy", errs.Incomplete, "remove "+strings.Join(dirs, " and ")+" as root",
			"empty overlay directories: %w", helpErr)
	}
	return nil
}

// upperDirs takes the directories that are ours out of overlay mount options.
func upperDirs(options string) []string {
	var dirs []string
	for option := range strings.SplitSeq(options, ",") {
		key, path, _ := strings.Cut(option, "=")
		if (key == "upperdir" || key == "workdir") && filepath.IsAbs(path) {
			dirs = append(dirs, path)
		}
	}
	return dirs
}

// emptyDirs removes what lies in the directories. os.Root keeps to them, whatever
// symbolic links the sandbox left there.
func emptyDirs(dirs []string) error {
	for _, dir := range dirs {
		root, err := os.OpenRoot(dir)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return err
		}
		err = emptyRoot(root)
		if closeErr := root.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func emptyRoot(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if closeErr := dir.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	return nil
}

// emptyByContainer empties the directories as root of the engine, without network
// and with the run's image, whose shell and find it uses.
func (e *engine) emptyByContainer(ctx context.Context, dirs []string, image string) error {
	api, err := e.connect(ctx)
	if err != nil {
		return err
	}
	mounts := make([]mount.Mount, len(dirs))
	args := []string{"find"}
	for i, dir := range dirs {
		mounts[i] = mount.Mount{Type: mount.TypeBind, Source: dir, Target: fmt.Sprintf("/empty/%d", i)}
		args = append(args, mounts[i].Target)
	}
	made, err := api.ContainerCreate(ctx, &container.Config{
		Image: image, User: "0:0", NetworkDisabled: true, WorkingDir: "/",
		Entrypoint:  append(args, "-mindepth", "1", "-delete"),
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
	}, &container.HostConfig{
		NetworkMode: "none", Mounts: mounts,
		CapDrop: []string{"ALL"}, CapAdd: []string{"DAC_OVERRIDE", "FOWNER"},
		SecurityOpt: []string{"no-new-privileges"},
	}, nil, nil, "")
	if err != nil {
		return err
	}
	id := sandbox.ID(made.ID)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		_ = e.removeContainer(ctx, id)
	}()
	done, failed := api.ContainerWait(ctx, made.ID, container.WaitConditionNextExit)
	if err := api.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return err
	}
	select {
	case end := <-done:
		if end.StatusCode != 0 {
			return fmt.Errorf("find ended with %d: %s", end.StatusCode, e.lastOutput(ctx, id))
		}
		return nil
	case err := <-failed:
		return err
	}
}
