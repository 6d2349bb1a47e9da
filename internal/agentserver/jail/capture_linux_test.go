package jail

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/testenv"
)

// inNamespace runs the test that calls it again, in a network namespace of its own with
// loopback up, and reports true there.
func inNamespace(t *testing.T) bool {
	t.Helper()
	const env = "INSIGHTSCLI_TEST_NETNS"
	if os.Getenv(env) == t.Name() {
		if err := network("/proc/sys"); err != nil {
			t.Fatal(err)
		}
		return true
	}
	testenv.Need(t, "root", os.Geteuid() == 0)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), env+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	t.Logf("inside:\n%s", out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Fatal(err)
	}
	return false
}

func capture(t *testing.T, allow []string, install func() error) *Capture {
	t.Helper()
	c, err := openCapture(allow, install)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// dialled connects to addr and returns the connection that ln accepts.
func dialled(t *testing.T, ln *net.TCPListener, addr string) *net.TCPConn {
	t.Helper()
	out, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	_ = ln.SetDeadline(time.Now().Add(10 * time.Second))
	in, err := ln.AcceptTCP()
	if err != nil {
		t.Fatalf("%s: %v", addr, err)
	}
	t.Cleanup(func() { _ = in.Close() })
	return in
}

func TestRulesCaptureEveryConnection(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	c := capture(t, nil, captureRules)
	if c.Local || c.Cost != "" || len(c.TCP) != 1 {
		t.Fatalf("%+v", c)
	}
	for _, addr := range []string{"1.2.3.4:80", "198.18.0.1:22", "169.254.169.254:80", "10.0.0.1:15001", "255.0.0.1:1", "[::ffff:1.2.3.4]:443", "8.8.8.8:53"} {
		if got := dialled(t, c.TCP[0], addr).LocalAddr().String(); got != "127.0.0.1:15001" {
			t.Errorf("%s: %s", addr, got)
		}
	}
	// The sandbox's own servers are its own.
	own, err := net.Listen("tcp4", "0.0.0.0:80")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	for _, addr := range []string{"127.0.0.1:80", "127.9.9.9:80", "0.0.0.0:80"} {
		_ = dialled(t, own.(*net.TCPListener), addr)
	}
	_ = dialled(t, c.TCP[0], "1.2.3.4:80")
	namesAreAsked(t, c)
	nothingElse(t)
	for _, addr := range []string{"127.0.0.1:15001", "127.0.0.1:53", "0.0.0.0:15001"} {
		if ln, err := net.Listen("tcp4", addr); err == nil {
			_ = ln.Close()
			t.Errorf("%s could be taken", addr)
		}
	}
}

func namesAreAsked(t *testing.T, c *Capture) {
	t.Helper()
	go func() {
		b := make([]byte, 64)
		for {
			n, from, err := c.UDP.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			_, _ = c.UDP.WriteToUDPAddrPort(b[:n], from)
		}
	}()
	for _, addr := range []string{"127.0.0.1:53", "8.8.8.8:53"} {
		conn, err := net.Dial("udp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = io.WriteString(conn, "name")
		b := make([]byte, 64)
		if n, err := conn.Read(b); err != nil || string(b[:n]) != "name" {
			t.Errorf("%s: %q, %v", addr, b[:n], err)
		}
		_ = conn.Close()
	}
}

// nothingElse: whoever sends something else is told at once.
func nothingElse(t *testing.T) {
	t.Helper()
	for network, addr := range map[string]string{"udp4": "8.8.8.8:443", "ip4:icmp": "8.8.8.8", "ip4:132": "1.2.3.4"} {
		conn, err := net.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(make([]byte, 64)); !errors.Is(err, unix.EPERM) {
			t.Errorf("%s %s: %v", network, addr, err)
		}
		_ = conn.Close()
	}
	for _, addr := range []string{"[2001:db8::1]:443", "[fe80::1%lo]:443"} {
		if conn, err := net.DialTimeout("tcp", addr, 10*time.Second); err == nil {
			_ = conn.Close()
			t.Errorf("%s: connected", addr)
		}
	}
	conn, err := net.Dial("udp6", "[2001:db8::1]:53")
	if err == nil {
		_, err = conn.Write([]byte("x"))
		_ = conn.Close()
	}
	if !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("IPv6: %v", err)
	}
}

// Where the kernel has no nf_tables the ports of the policy are listened at on every
// address, and the run can say what that costs.
func TestFallback(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	c := capture(t, []string{"example.com:8443", "*"}, func() error { return unix.EPROTONOSUPPORT })
	if !c.Local || len(c.TCP) != 5 || !strings.Contains(c.Cost, "22, 80, 443, 8443") {
		t.Fatalf("%+v", c)
	}
	for i, addr := range []string{"1.2.3.4:22", "9.9.9.9:80", "198.18.0.1:443", "198.18.0.1:8443"} {
		in := dialled(t, c.TCP[i+1], addr)
		if got := in.LocalAddr().String(); got != addr {
			t.Errorf("%s: %s", addr, got)
		}
	}
	if _, err := net.DialTimeout("tcp", "1.2.3.4:81", 10*time.Second); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("another port: %v", err)
	}
}

// A kernel that has the rules and refuses them is no kernel without them.
func TestRefusedRulesAreAnError(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	if c, err := openCapture(nil, func() error { return unix.EPERM }); !errors.Is(err, unix.EPERM) || c != nil {
		t.Fatalf("%v", err)
	}
	// Nothing is left open.
	_ = capture(t, nil, captureRules)
	if _, err := openCapture(nil, captureRules); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("a second one: %v", err)
	}
}

func TestAllowedPorts(t *testing.T) {
	got := allowedPorts([]string{"*", "a.example", "b.example:8443", "*.c.example:22", "GET http://d.example:8080/x:1/*", "http://e.example/y:2", "x:0", "x:99999", "x:15001"})
	if want := []uint16{22, 80, 443, 8080, 8443}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// What an image says about how names are looked up does not count, whatever is in the way.
func TestOwnResolver(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(dir, "elsewhere")
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "resolv.conf"), []byte("nameserver 8.8.8.8\n"+strings.Repeat("# long\n", 100)), 0o644),
		os.WriteFile(elsewhere, []byte("hosts: mdns\n"), 0o644),
		os.Symlink(elsewhere, filepath.Join(dir, "nsswitch.conf")))
	if err == nil {
		err = ownResolver(dir, wire.Boot{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"resolv.conf": "nameserver 127.0.0.1\n", "nsswitch.conf": "hosts: files dns\n", "hosts": "::1\tlocalhost", "elsewhere": "hosts: mdns\n"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(b), want) || strings.Contains(string(b), "# long") {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
