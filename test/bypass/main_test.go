//go:build linux

package bypass

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/sandbox/docker"
	"github.com/Insights/insightscli/internal/testenv"
)

// stageEnv holds a stage for the process that the tests run in.
const stageEnv = "INSIGHTSCLI_TEST_BYPASS"

// stage is what was prepared in the namespace that the tests were started in.
type stage struct {
	Dir    string   // of the programs
	Image  string   // of sandboxes of Docker; empty without an engine
	Why    string   // there is none
	Addrs  []string // of the machine
	Port   int      // of the servers there, which are inherited as descriptors
	Name   string   // of the abstract socket
	Parent int      // process in that namespace
	User   bool     // runs as an ordinary user, and has not got the servers
}

// Descriptors of the servers outside.
const (
	fdTCP = 3 + iota
	fdUDP
	fdUnix
)

func (s stage) server() string  { return filepath.Join(s.Dir, "insights-agent-server") }
func (s stage) tools() string   { return filepath.Join(s.Dir, "tools") }
func (s stage) attempt() string { return filepath.Join(s.tools(), "attempt") }

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	switch {
	case os.Getenv(stageEnv) != "":
		if os.Geteuid() == 0 {
			if err := makeWorld(); err != nil {
				fmt.Fprintln(os.Stderr, "the namespace of the tests:", err)
				return 1
			}
		}
		return m.Run()
	case os.Geteuid() != 0:
		return m.Run() // each test says what it needs
	}
	code, err := inWorld()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// needWorld returns what the tests run with.
func needWorld(t testing.TB) stage {
	t.Helper()
	text := os.Getenv(stageEnv)
	testenv.Need(t, "root, for a network namespace that is all the internet", text != "")
	var s stage
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// inWorld runs this program again in a new network namespace.
func inWorld() (int, error) {
	dir, err := os.MkdirTemp("", "bypass-*")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := stage{Dir: dir, Parent: os.Getpid(), Name: fmt.Sprintf("@insights-bypass-%d", os.Getpid())}
	if err := s.build(); err != nil {
		return 1, err
	}
	s.Image, err = baseImage()
	if err != nil {
		s.Why = err.Error()
	}
	files, err := s.servers()
	if err != nil {
		return 1, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return 1, err
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stageEnv+"="+string(text))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}

// build makes the programs, which every uid may run.
func (s stage) build() error {
	if err := errors.Join(os.Chmod(s.Dir, 0o755), os.Mkdir(s.tools(), 0o755)); err != nil {
		return err
	}
	for binary, source := range map[string]string{
		s.server(): "../../cmd/insights-agent-server", s.attempt(): "./testdata/attempt",
	} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, source)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", source, err, out)
		}
	}
	return nil
}

// baseImage builds the default image if need be: there is no internet later.
func baseImage() (string, error) {
	p := docker.New(docker.Options{Host: os.Getenv("DOCKER_HOST")})
	defer func() { _ = p.Close() }()
	ctx := background()
	if err := p.Ping(ctx); err != nil {
		return "", err
	}
	b := image.Builder{Engine: p.Images(), Lock: filepath.Join(os.TempDir(), "insightscli-test-image.lock")}
	if _, err := b.Ensure(ctx, image.DefaultBase, func(string) {}); err != nil {
		return "", err
	}
	return image.DefaultBase.Tag(), nil
}

// servers starts those outside, which only a sandbox with a network reaches.
func (s *stage) servers() ([]*os.File, error) {
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{})
	if err != nil {
		return nil, err
	}
	s.Port = tcp.Addr().(*net.TCPAddr).Port
	udp, err := net.ListenUDP("udp", &net.UDPAddr{Port: s.Port})
	if err != nil {
		return nil, err
	}
	abstract, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLinkLocalUnicast() {
			s.Addrs = append(s.Addrs, p.Addr().String())
		}
	}
	a, err1 := tcp.File()
	b, err2 := udp.File()
	c, err3 := abstract.File()
	return []*os.File{a, b, c}, errors.Join(err1, err2, err3)
}

// asUser runs the tests that match pattern again as an ordinary user with a home of its own.
func asUser(t *testing.T, s stage, pattern string) {
	const uid = 1001
	dir, err := os.MkdirTemp("", "bypass-user-*") //nolint:usetesting // the other user must reach it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary, home := filepath.Join(dir, "bypass.test"), filepath.Join(dir, "home")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(binary, self, 0o755), os.Mkdir(home, 0o700), os.Chown(home, uid, uid)); err != nil {
		t.Fatal(err)
	}
	s.User = true
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run="+pattern, "-test.v")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home, stageEnv+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	t.Logf("as uid %d:\n%s", uid, strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte("--- PASS")) {
		t.Fatal("nothing ran")
	}
}
