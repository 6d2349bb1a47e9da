//go:build unix

package dotenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/testenv"
)

// role tells the test binary to be another process: its words are the role and its
// arguments.
const role = "INSIGHTSCLI_TEST_DOTENV"

func TestMain(m *testing.M) {
	words := strings.Fields(os.Getenv(role))
	if len(words) == 0 {
		os.Exit(m.Run())
	}
	if err := play(context.Background(), words[0], words[1:]); err != nil {
		fmt.Println(errs.KindOf(err), err)
		os.Exit(1)
	}
}

func play(ctx context.Context, what string, args []string) error {
	path := args[0]
	switch what {
	case "edit":
		_, err := Edit(ctx, path, setting("NEW", "1"))
		return err
	case "die": // at a stage
		_, err := editor{at: func(stage string) {
			if strings.ReplaceAll(stage, " ", "-") == args[1] {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}}.edit(ctx, path, count)
		return err
	case "count": // for ever
		for {
			if _, err := Edit(ctx, path, count); err != nil {
				return err
			}
			fmt.Println("counted")
		}
	case "keys":
		for i := range 10 {
			if _, err := Edit(ctx, path, setting(args[1]+strconv.Itoa(i), "x")); err != nil {
				return err
			}
		}
		return nil
	}
	return playFull(ctx, what, path)
}

// count changes the first and the last line of a long file.
func count(f *File) error {
	first, _ := f.Get("FIRST")
	n, err := strconv.Atoi(first)
	if err != nil {
		return err
	}
	return errors.Join(f.Set("FIRST", strconv.Itoa(n+1)), f.Set("LAST", strconv.Itoa(n+1)))
}

func countFile(t *testing.T) string {
	t.Helper()
	return file(t, "FIRST=0\n"+strings.Repeat("# a long comment\n", 3_000)+"LAST=0\n")
}

// whole fails unless both ends of the file are of one edit; it returns which.
func whole(t *testing.T, path string) int {
	t.Helper()
	f, err := Read(path)
	must(t, err)
	first, _ := f.Get("FIRST")
	last, _ := f.Get("LAST")
	n, err := strconv.Atoi(first)
	if err != nil || first != last || len(f.lines) != 3_002 {
		t.Fatalf("a mix of %q and %q, %d lines", first, last, len(f.lines))
	}
	return n
}

// process is the test binary in a role.
func process(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), role+"="+strings.Join(words, " "))
	return cmd
}

func TestKilledAtEveryStage(t *testing.T) {
	for stage, want := range map[string]int{"lock": 0, "read": 0, "create": 0, "write": 0, "write-more": 0, "flush": 0, "compare": 0, "rename": 0, "sync": 1} {
		path := countFile(t)
		if err := process(t, "die", path, stage).Run(); err == nil {
			t.Fatalf("%s: it lived", stage)
		}
		if got := whole(t, path); got != want {
			t.Errorf("killed at %s: edit %d", stage, got)
		}
		if _, err := Edit(t.Context(), path, count); err != nil || whole(t, path) != want+1 {
			t.Errorf("after a kill at %s: %v", stage, err)
		}
		alone(t, filepath.Dir(path), ".env")
	}
}

func TestKilledAtAnyTime(t *testing.T) {
	path := countFile(t)
	for i := range 12 {
		cmd := process(t, "count", path)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		for lines := bufio.NewScanner(out); i%4 > 0 && lines.Scan(); i-- {
		}
		must(t, cmd.Process.Kill())
		_, _ = io.Copy(io.Discard, out) // until it is gone
		_ = cmd.Wait()                  // killed
		whole(t, path)
	}
	if _, err := Edit(t.Context(), path, count); err != nil {
		t.Error(err)
	}
	alone(t, filepath.Dir(path), ".env")
}

func TestProcessesAtOnceLoseNoKey(t *testing.T) {
	path := file(t, "A=1")
	var all []*exec.Cmd
	for i := range 4 {
		cmd := process(t, "keys", path, fmt.Sprintf("P%d_", i))
		must(t, cmd.Start())
		all = append(all, cmd)
	}
	for _, cmd := range all {
		must(t, cmd.Wait())
	}
	if f, err := Read(path); err != nil || len(f.Keys()) != 41 {
		t.Errorf("%v: %q", err, text(t, path))
	}
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Mode()
}

func TestOnlyTheOwnerCanRead(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o777} {
		path := filepath.Join(t.TempDir(), ".env")
		old := syscall.Umask(umask)
		t.Cleanup(func() { syscall.Umask(old) })
		e := editor{at: func(stage string) {
			if stage == "flush" {
				if names, err := filepath.Glob(path + ".tmp-*"); err != nil || len(names) != 1 || mode(t, names[0]) != 0o600 {
					t.Errorf("%q, %v", names, err)
				}
			}
		}}
		for _, value := range []string{"1", "2", "2"} {
			if _, err := e.edit(t.Context(), path, setting("A", value)); err != nil || mode(t, path) != 0o600 {
				t.Errorf("umask %o: %v, mode %v", umask, err, mode(t, path))
			}
			must(t, os.Chmod(path, 0o664))
		}
		syscall.Umask(old)
	}
}

func TestPipesAndDevicesAreNoFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".env")
	must(t, syscall.Mkfifo(path, 0o600))
	_, err := Edit(t.Context(), path, setting("A", "1"))
	refused(t, err, " is no regular file")
	_, err = Edit(t.Context(), "/dev/null", setting("A", "1"))
	refused(t, err, " is no regular file")
}

const nobody = 65534

// asNobody edits path as a user who is not root and returns what it says.
func asNobody(t *testing.T, path string) string {
	t.Helper()
	cmd := process(t, "edit", path)
	if os.Geteuid() == 0 {
		cmd.Path = reachable(t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, _ := cmd.CombinedOutput() // says what is wrong
	return string(out)
}

// reachable is a copy of the test binary that everybody can run.
func reachable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	b, err := os.ReadFile(self)
	must(t, err)
	path := filepath.Join(open(t), "test")
	must(t, os.WriteFile(path, b, 0o755))
	return path
}

// open is a directory that everybody can reach.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	must(t, os.Chmod(dir, 0o755))
	return dir
}

func TestWithoutTheRight(t *testing.T) {
	dir := open(t)
	path := filepath.Join(dir, ".env")
	put(t, path, "A=1\n")
	user := nobody
	if os.Geteuid() != 0 {
		user = os.Geteuid()
	}
	must(t, os.Chown(path, user, -1))
	must(t, os.Chmod(dir, 0o555))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	if got := asNobody(t, path); !strings.Contains(got, string(errs.Config)+" write "+path+": permission denied") {
		t.Errorf("in a read-only directory: %q", got)
	}
	must(t, os.Chmod(path, 0))
	if got := asNobody(t, path); !strings.Contains(got, string(errs.Config)+" read "+path+": permission denied") {
		t.Errorf("unreadable: %q", got)
	}
	if os.Geteuid() == 0 && text(t, path) != "A=1\n" {
		t.Error("it was written")
	}
}

func TestOwnerIsKept(t *testing.T) {
	testenv.Need(t, "root", os.Geteuid() == 0)
	dir := open(t)
	path := filepath.Join(dir, ".env")
	must(t, os.Chown(dir, 1234, 2345))
	owner := func(uid, gid int) {
		t.Helper()
		info, err := os.Stat(path)
		must(t, err)
		if u, g, _ := ownerOf(info); u != uid || g != gid || info.Mode() != 0o600 {
			t.Errorf("owner %d:%d, mode %v", u, g, info.Mode())
		}
	}
	for _, value := range []string{"new", "other"} { // of a file that root makes, too
		_, err := Edit(t.Context(), path, setting("A", value))
		must(t, err)
		owner(1234, 2345)
	}
	must(t, os.Chown(path, 4321, 5432))
	_, err := Edit(t.Context(), path, setting("A", "1"))
	must(t, err)
	owner(4321, 5432)
}

func TestFilesOfOthersAreRefused(t *testing.T) {
	testenv.Need(t, "root", os.Geteuid() == 0)
	dir := open(t)
	must(t, os.Chmod(dir, 0o777))
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, ".env")
	put(t, path, "A=1\n")
	must(t, os.Chmod(path, 0o666))
	if got := asNobody(t, path); !strings.HasPrefix(got, "auth "+path+" belongs to another user") {
		t.Errorf("%q", got)
	}
	must(t, os.Symlink("file", link))
	if got := asNobody(t, link); !strings.HasPrefix(got, "auth ") {
		t.Errorf("%q", got)
	}
	must(t, os.Lchown(link, 1234, 1234)) // a user's link to a file of root's
	_, err := Edit(t.Context(), link, setting("A", "2"))
	refused(t, err, " is a symbolic link to a file of another user")
	if _, err := Read(link); errs.KindOf(err) != errs.Auth {
		t.Error(err)
	}
	if text(t, path) != "A=1\n" || mode(t, path) != 0o666 {
		t.Error("it was touched")
	}
	for _, owner := range []int{1234, 0} { // a user's own link, and one that root made
		must(t, os.Chown(path, 1234, 1234))
		must(t, os.Lchown(link, owner, owner))
		_, err := Edit(t.Context(), link, setting("A", strconv.Itoa(owner)))
		must(t, err)
	}
}
