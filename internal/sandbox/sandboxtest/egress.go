package sandboxtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// reset: what the host refuses is reset at once, before or after it has looked at what the
// client says.
func reset(l *lab) {
	if !l.captured() {
		return
	}
	h := &host{
		refuse: func(e wire.Egress) string {
			if strings.HasSuffix(e.Addr, ":80") {
				return "no rule"
			}
			return ""
		},
		serve: func(_ wire.Egress, conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) }, // and no more
	}
	c := l.restricted(h, "a.example.com")
	l.python(c, say+`
def refused(port, words):
    began = time.time()
    try:
        s = socket.create_connection(("a.example.com", port)); s.settimeout(60)
        s.sendall(words)
        return "closed" if s.recv(1) == b"" else "answered"
    except OSError as e:
        return errno.errorcode[e.errno] if time.time() - began < 5 else "late"
print(refused(80, b"GET / HTTP/1.1\r\n\r\n"), refused(443, b"x"))
`, "ECONNRESET ECONNRESET")
}

// directions: many bytes arrive whole both ways, and each direction ends for itself.
func directions(l *lab) {
	if !l.captured() {
		return
	}
	const size = 64 << 20
	h := &host{refuse: everything, serve: func(_ wire.Egress, conn net.Conn) {
		sum := sha256.New()
		_, _ = io.Copy(sum, conn) // to the client's end
		_, _ = io.WriteString(conn, hex.EncodeToString(sum.Sum(nil))+"\n")
		_, _ = io.Copy(conn, io.LimitReader(zeros{}, size))
	}}
	c := l.restricted(h, "a.example.com")
	want := sha256.New()
	_, _ = io.Copy(want, io.LimitReader(zeros{}, size))
	l.python(c, say+`
s = socket.create_connection(("a.example.com", 443))
block = bytes(1 << 20)
for _ in range(64): s.sendall(block)
s.shutdown(socket.SHUT_WR)
f = s.makefile("rb")
print(f.readline().decode().strip())
print(sum(len(b) for b in iter(lambda: f.read(1 << 20), b"")))
`, hex.EncodeToString(want.Sum(nil))+"\n67108864")
}

// lostHost: without a host a connection is reset at once, and an open one is cut; when
// there is a host again, so is the network.
func lostHost(l *lab) {
	if !l.captured() {
		return
	}
	h := &host{refuse: everything, serve: func(req wire.Egress, conn net.Conn) {
		_, port, _ := net.SplitHostPort(req.Addr)
		_, _ = io.WriteString(conn, "host "+port+"\n")
		_, _ = io.Copy(io.Discard, conn) // stays
	}}
	r := l.newRun()
	shared := filepath.Join(l.root, "shared")
	if err := errors.Join(os.Mkdir(shared, 0o777), os.Chmod(shared, 0o777)); err != nil {
		l.Fatal(err)
	}
	r.spec.Mounts = []sandbox.Mount{{Kind: sandbox.MountBind, Source: shared, Target: task.WorkspaceDir + "/shared"}}
	box := l.create(r)
	first := l.connectAs(box, r, h)
	program := say + `
lines = socket.create_connection(("1.2.3.4", 443)).makefile("rb")
print(lines.readline().decode().strip(), flush=True)
open("/tmp/workspace/shared/open", "w")
try:
    print("open: ended" if lines.readline() == b"" else "open: goes on", flush=True)
except OSError as e:
    print("open:", errno.errorcode[e.errno], flush=True)
began = time.time()
print("new:", say("1.2.3.4", 444), say("5.6.7.8", 22))
print("at once" if time.time() - began < 5 else "late", flush=True)
open("/tmp/workspace/shared/told", "w")
while say("1.2.3.4", 445) != "host 445": time.sleep(0.05)
print("back", flush=True)
`
	if err := first.Start(l.context(), wire.Start{Agent: "exec", Command: []string{"python3", "-c", program}}); err != nil {
		l.Fatal(err)
	}
	there := func(name string) func() bool {
		return func() bool {
			_, err := os.Stat(filepath.Join(shared, name))
			return err == nil
		}
	}
	l.until("the program has a connection", there("open"))
	_ = first.Close()
	l.until("the program has met the loss", there("told"))
	f := &follower{}
	second := l.connectAs(box, r, h)
	if err := second.Follow(l.context(), 0, func(fr wire.Frame) error { f.take(fr); return nil }); err != nil {
		l.Fatal(err)
	}
	const want = "host 443\nopen: ECONNRESET\nnew: ECONNRESET ECONNRESET\nat once\nback\n"
	if got := f.stdout.String(); got != want {
		l.Errorf("printed\n%swant\n%s%s", got, want, f.stderr.String())
	}
}

// crowd opens many connections at once, and keeps them all while each is used.
const crowd = say + `
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000) if hard > 0 else 20000, hard))
addr = socket.gethostbyname("a.example.com")
conns = [socket.socket() for _ in range(1000)]
for s in conns: s.setblocking(False)
for s in conns: s.connect_ex((addr, 443))
for s in conns: s.setblocking(True); s.settimeout(100)
for i, s in enumerate(conns): s.sendall(b"%d\n" % i)
good = 0
for i, s in enumerate(conns):
    try: good += s.makefile("rb").readline() == b"%d\n" % i
    except OSError as e: print(i, e)
print(good)
`

func thousand(l *lab) {
	if !l.captured() {
		return
	}
	h := &host{refuse: everything, serve: echo}
	c := l.restricted(h, "a.example.com")
	l.python(c, crowd, "1000")
	l.want(c, "echo alive", "alive")
}

// withoutEnd: connections that are opened and left, as many as there may be and far more,
// cost PID 1 nothing that lasts, and keep neither the host nor the agent out.
func withoutEnd(l *lab) {
	if !l.captured() {
		return
	}
	h := &host{refuse: func(wire.Egress) string { return "no rule" }, serve: echo}
	c := l.restricted(h, "a.example.com")
	memory := func() uint64 { return l.memory(c) }
	before := memory()
	l.python(c, say+`
for i in range(20000):
    s = socket.socket(); s.setblocking(False)
    s.connect_ex(("1.2.%d.%d" % (i // 250, i % 250), 1 + i % 60000))
    if i % 2: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
for i in range(20000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    name = b"".join(bytes([len(p)]) + p for p in (b"n%d" % i, b"evil", b"test"))
    s.sendto(struct.pack(">HHHHHH", i % 65536, 0x100, 1, 0, 0, 0) + name + b"\0\0\1\0\1", ("127.0.0.1", 53))
    s.close()
print("done")
`, "done")
	l.want(c, "echo alive", "alive")
	l.python(c, say+`print(say("1.2.3.4", 80))`, "ECONNRESET")
	if after := memory(); after > before+256<<20 {
		l.Errorf("PID 1 had %d MiB and has %d", before>>20, after>>20)
	}
}

// memory is what PID 1 holds, as far as the agent is told.
func (l *lab) memory(c *agent.Client) uint64 {
	out, code := l.shell(c, "awk '/^VmRSS/ {printf \"%d\", $2}' /proc/1/status 2>/dev/null")
	if code != 0 {
		return 0 // hidden
	}
	var kib uint64
	for _, d := range strings.TrimSpace(out) {
		kib = kib*10 + uint64(d-'0')
	}
	return kib << 10
}
