package sandboxtest

import (
	"net"
	"strings"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/task"
)

// networkTests are about sandboxes without a network: what is dialled inside arrives at the
// host, and nothing else leaves. The programs are those that the images have.
var networkTests = []test{
	{name: "connections are offered to the host", run: offered},
	{name: "own servers stay their own", run: ownServers},
	{name: "names", run: names},
	{name: "names are asked for in many ways", run: questions},
	{name: "programs", run: programs},
	{name: "nothing else leaves", run: nothingElse},
	{name: "refused connections are reset", run: reset},
	{name: "both directions", run: directions},
	{name: "connections without a host", run: lostHost},
	{name: "a thousand connections", run: thousand},
	{name: "connections without end", run: withoutEnd},
	{name: "no thread has a privilege", run: noThread},
}

// captured skips what only a capture gives.
func (l *lab) captured() bool {
	c, able := l.Provider.(sandbox.Capturer)
	return l.Isolated && able && c.Captures(sandbox.Network(task.NetworkCustom))
}

// say is a Python function that dials, and returns what it is told.
const say = `
import errno, os, socket, struct, sys, threading, time
def say(addr, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.settimeout(60)
    try:
        s.connect((addr, port))
        return s.makefile().readline().strip()
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
    finally:
        s.close()
`

// offered: whatever the address and the port, the host hears of it, and of the name that the
// address stands for.
func offered(l *lab) {
	if !l.captured() {
		return
	}
	h := &host{refuse: everything, serve: greet}
	c := l.restricted(h, "db.example.com:5432", "*.example.org")
	l.python(c, say+`
print(say("1.2.3.4", 8443))
print(say("169.254.169.254", 81))
print(say("10.0.0.1", 15001))
print(say("192.168.1.1", 53))
print(say("::ffff:9.9.9.9", 443, socket.AF_INET6))
print(say("db.example.com", 5432))
print(say("DB.Example.COM.", 22))
print(say("a.b.example.org", 22))
print(say("198.19.255.254", 22))
`, "host  8443\nhost  81\nhost  15001\nhost  53\nhost  443\nhost db.example.com 5432\nhost db.example.com 22\nhost a.b.example.org 22\nhost  22")
	for _, addr := range []string{"1.2.3.4:8443", "169.254.169.254:81", "10.0.0.1:15001", "9.9.9.9:443", "198.19.255.254:22"} {
		if !h.saw(wire.Egress{Addr: addr}) {
			l.Errorf("the host has not heard of %s: %+v", addr, h.all())
		}
	}
	l.want(c, "bash -c 'exec 3<>/dev/tcp/1.2.3.4/8080; cat <&3'", "host  8080")
}

// ownServers: a sandbox serves any port to itself, and connections elsewhere are not taken
// for that.
func ownServers(l *lab) {
	if !l.captured() {
		return
	}
	h := &host{refuse: everything, serve: func(req wire.Egress, conn net.Conn) {
		_, port, _ := net.SplitHostPort(req.Addr)
		_, _ = conn.Write([]byte("host " + req.Name + " " + port + "\n"))
	}}
	c := l.restricted(h, "a.example.com")
	l.python(c, say+`
def serve(family, addr, port):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind((addr, port)); s.listen(16)
    def run():
        while True:
            c, _ = s.accept()
            c.sendall(b"own\n"); c.close()
    threading.Thread(target=run, daemon=True).start()
serve(socket.AF_INET, "0.0.0.0", 80)
serve(socket.AF_INET, "127.0.0.1", 443)
serve(socket.AF_INET, "0.0.0.0", 8000)
serve(socket.AF_INET, "127.0.0.1", 5432)
serve(socket.AF_INET6, "::1", 3000)
print(say("127.0.0.1", 80), say("127.0.0.1", 443), say("localhost", 8000), say("127.0.0.1", 5432), say("127.8.8.8", 8000))
print(say("::1", 3000, socket.AF_INET6), say("localhost", 3000, socket.AF_INET6))
for port in 80, 443, 8000, 5432, 3000: print(say("a.example.com", port), say("1.2.3.4", port))
`, "own own own own own\nown own\n"+strings.Join([]string{
		"host a.example.com 80 host  80", "host a.example.com 443 host  443", "host a.example.com 8000 host  8000",
		"host a.example.com 5432 host  5432", "host a.example.com 3000 host  3000",
	}, "\n"))
}

// nothingElse: no packet has a way out, and who sends one is told at once.
func nothingElse(l *lab) {
	if !l.captured() {
		return
	}
	h := &host{refuse: everything, serve: greet}
	c := l.restricted(h, "a.example.com")
	l.python(c, say+`
def attempt(f):
    began = time.time()
    try:
        f()
        return "sent"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e)) if time.time() - began < 5 else "late"
def datagram(addr, family=socket.AF_INET):
    return lambda: socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", addr)
print(*[l.split(":")[0].strip() for l in open("/proc/net/dev").readlines()[2:] if not l.strip().startswith(("tunl", "gre", "erspan", "sit", "ip6", "ip_vti"))])
print(attempt(datagram(("8.8.8.8", 443))), attempt(datagram(("a.example.com", 443))), attempt(datagram(("255.255.255.255", 67))), attempt(datagram(("224.0.0.251", 5353))))
print(attempt(datagram(("2001:db8::1", 53), socket.AF_INET6)), say("2001:db8::1", 443, socket.AF_INET6), say("fd00:ec2::254", 80, socket.AF_INET6))
print(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)))
print(attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))
print(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP).sendto(b"\x08\0\0\0\0\0\0\0", ("8.8.8.8", 0))) in ("EACCES", "EPERM"))
print(attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 132).connect(("1.2.3.4", 5))) != "sent")
def routes():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.sendall(struct.pack("IHHIIBBBBBBBBI", 28, 24, 0x405, 1, 0, socket.AF_INET, 0, 0, 0, 254, 3, 0, 1, 0))
    code = struct.unpack("IHHIIi", s.recv(4096)[:20])[5]
    if code: raise OSError(-code, "")
print(attempt(routes))
`, "lo\nEPERM EPERM EACCES EPERM\nENETUNREACH ENETUNREACH ENETUNREACH\nEPERM\nEPERM\nTrue\nTrue\nEPERM")
	for _, path := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/conf/lo/route_localnet"} {
		if out, code := l.shell(c, "echo 1 > "+path); code == 0 {
			l.Errorf("%s was written: %s", path, out)
		}
	}
	for _, addr := range []string{"127.0.0.1:15001", "127.0.0.1:53"} {
		bind := say + "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n" +
			"try: s.bind(('" + strings.Replace(addr, ":", "', ", 1) + ")); s.listen(1); print('taken')\n" +
			"except OSError as e: print(errno.errorcode[e.errno])\n"
		l.python(c, bind, "EADDRINUSE")
	}
}

// noThread: no thread of any process may do more than the agent, whoever has started it.
func noThread(l *lab) {
	if !l.captured() {
		return
	}
	_, c, _ := l.start()
	started := newSignal("up")
	go func() {
		_, err := c.Exec(l.context(), sh("exec python3 -c '"+`
import subprocess, threading, time
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
subprocess.Popen(["sleep", "1000"])
print("up", flush=True)
time.sleep(1000)'`), agent.Stdio{Out: started})
		started.ended <- err
	}()
	started.wait(l)
	if err := c.Start(l.context(), wire.Start{Agent: "exec", Command: []string{"sleep", "1001"}}); err != nil {
		l.Fatal(err)
	}
	if err := c.Ready(l.context()); err != nil {
		l.Fatal(err)
	}
	seen := map[string]int{}
	// Between the fork and its program a process is not what it will be. It runs our own
	// code there, and is not there at the next look.
	before := map[[2]int]bool{}
	l.until("all that was started is there", func() bool {
		threads, err := c.Threads(l.context())
		if err != nil {
			l.Fatal(err)
		}
		clear(seen)
		wrong := map[[2]int]bool{}
		for _, t := range threads {
			seen[t.Name]++
			if t.PID == 1 {
				seen["1"]++
			}
			if why := t.Wrong(); why != "" {
				id := [2]int{t.PID, t.TID}
				if before[id] || t.PID == 1 {
					l.Fatal(why)
				}
				wrong[id] = true
			}
		}
		before = wrong
		return len(wrong) == 0 && seen["python3"]+seen["python3.11"] >= 2 && seen["sleep"] >= 2 && seen["1"] >= 2
	})
}
