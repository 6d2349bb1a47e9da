package sandboxtest

import (
	"strings"

	"github.com/Insights/insightscli/internal/agent"
	"github.com/Insights/insightscli/internal/link/wire"
)

// names: those that the policy allows have an address, all others do not exist, and both are
// said at once. The host learns which were asked for in vain.
func names(l *lab) {
	if !l.captured() {
		return
	}
	h := &host{refuse: everything, serve: greet}
	c := l.restricted(h, "a.example.com", "*.wild.example")
	l.python(c, say+`
def look(name, family=0):
    began = time.time()
    try:
        found = sorted({a[4][0] for a in socket.getaddrinfo(name, 22, family, socket.SOCK_STREAM)})
    except socket.gaierror as e:
        found = [{socket.EAI_NONAME: "none", getattr(socket, "EAI_NODATA", -5): "none"}.get(e.errno, str(e))]
    return " ".join(found) if time.time() - began < 5 else "late"
first = look("a.example.com")
print(first.startswith("198.18."), look("A.EXAMPLE.com.") == first, look("a.example.com", socket.AF_INET) == first)
print(look("a.example.com", socket.AF_INET6), look("wild.example").startswith("198.18."), look("x.y.wild.example").startswith("198.18."))
print(look("other.example"), look("example.com"), look("xa.example.com"), look("a.example.com.evil.test"), look("secret-data.evil.test"))
print(look("localhost"), look("1.2.3.4"), look(socket.gethostname()).startswith("127."))
print(socket.gethostbyaddr(first)[0])
`, "True True True\nnone True True\nnone none none none none\n127.0.0.1 ::1 1.2.3.4 True\na.example.com")
	l.want(c, "getent ahostsv4 a.example.com | head -n 1 | cut -d ' ' -f 1 | cut -c -7", "198.18.")
	l.want(c, "getent hosts gone.test; echo $?", "2")
	// Programs that ask for what the machine can reach (AI_ADDRCONFIG) find them, too.
	l.python(c, say+`print(socket.getaddrinfo("a.example.com", 22, 0, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)[0][4][0][:7])`, "198.18.")
	l.until("the names that were asked for in vain are told", func() bool {
		return h.saw(wire.Egress{Name: "secret-data.evil.test", Lookup: true}) && h.saw(wire.Egress{Name: "gone.test", Lookup: true})
	})
	for _, e := range h.all() {
		if e.Lookup && (e.Name == "a.example.com" || strings.HasSuffix(e.Name, ".arpa")) {
			l.Errorf("the host was told of %s", e.Name)
		}
	}
	l.want(c, "cat /etc/resolv.conf | head -n 1; grep -c '^hosts: files dns$' /etc/nsswitch.conf", "nameserver 127.0.0.1\n1")
}

// questions: over UDP and TCP, to whichever server, of whatever type; what is no question is
// no harm.
func questions(l *lab) {
	if !l.captured() {
		return
	}
	h := &host{refuse: everything, serve: greet}
	c := l.restricted(h, "a.example.com")
	l.python(c, say+`
def query(name, kind, more=b"", counts=(1, 0, 0, 0)):
    labels = b"".join(bytes([len(p)]) + p.encode() for p in name.split("."))
    return struct.pack(">HHHHHH", 7, 0x100, *counts) + labels + b"\0" + struct.pack(">HH", kind, 1) + more
def verdict(b):
    id, flags, _, answers, _, more = struct.unpack(">HHHHHH", b[:12])
    return "%d/%d/%d" % (flags & 15, answers, more) if id == 7 and flags & 0x8000 and not flags & 0x200 else "bad"
def udp(message, server="127.0.0.1"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
    s.connect((server, 53)); s.send(message)
    return verdict(s.recv(4096))
def tcp(*messages):
    s = socket.create_connection(("127.0.0.1", 53)); s.settimeout(30)
    s.sendall(b"".join(struct.pack(">H", len(m)) + m for m in messages))
    f = s.makefile("rb")
    return " ".join(verdict(f.read(struct.unpack(">H", f.read(2))[0])) for _ in messages)
opt = b"\0" + struct.pack(">HHIH", 41, 4096, 0, 0)
name = "a.example.com"
print(udp(query(name, 1)), udp(query(name, 1), "8.8.8.8"), udp(query(name, 1, opt, (1, 0, 0, 1))))
print(*[udp(query(name, kind)) for kind in (28, 65, 64, 16, 15, 255, 65535)])
print(*[udp(query("evil.test", kind)) for kind in (1, 28, 65, 16)], udp(query("evil.test", 1), "9.9.9.9"))
print(tcp(query(name, 1), query("evil.test", 1), query(name, 28, opt, (1, 0, 0, 1))))
print(udp(query(name, 1, b"", (2, 0, 0, 0))), udp(query(name, 1, b"", (0, 0, 0, 0))), udp(query(name, 1, b"", (1, 65535, 65535, 65535))))
for junk in b"", b"\0", b"\xff" * 512, query(name, 1)[:20], query(name, 1)[:2] + b"\x80\0" + query(name, 1)[4:], b"\0\7\1\0\0\1\0\0\0\0\0\0\xc0\x0c\0\1\0\1":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(("127.0.0.1", 53)); s.send(junk)
print(udp(query(name, 1)))
`, "0/1/0 0/1/0 0/1/1\n0/0/0 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0 0/0/0\n3/0/0 3/0/0 3/0/0 3/0/0 3/0/0\n0/1/0 3/0/0 0/0/1\n1/0/0 1/0/0 0/1/0\n0/1/0")
}

// programs that people use find the host by the name that they were given, as a proxy where
// they heed the variables, and as themselves where not.
func programs(l *lab) {
	if !l.captured() {
		return
	}
	h := &host{refuse: everything, serve: greet}
	c := l.restricted(h, "a.example.com")
	l.want(c, "curl -sS http://a.example.com/x", "host a.example.com by proxy")
	l.want(c, "curl -sS --noproxy '*' http://a.example.com/x", "host a.example.com by name")
	l.python(c, `import urllib.request; print(urllib.request.urlopen("http://a.example.com/").read().decode())`, "host a.example.com by proxy")
	l.python(c, `import http.client
c = http.client.HTTPConnection("a.example.com"); c.request("GET", "/"); print(c.getresponse().read().decode())`, "host a.example.com by name")
	l.want(c, "node -e 'fetch(\"http://a.example.com/\").then(r => r.text()).then(t => process.stdout.write(t))'", "host a.example.com by name")
	l.want(c, "node -e 'require(\"dns\").resolve6(\"a.example.com\", e => console.log(e.code))'", "ENODATA")
	l.want(c, "node -e 'require(\"dns\").lookup(\"other.test\", e => console.log(e.code))'", "ENOTFOUND")
	l.otherPrograms(c)
	// What the program makes of the answer does not matter here.
	_, _ = l.shell(c, "env -u http_proxy -u HTTP_PROXY git ls-remote http://a.example.com/r.git")
	_, _ = l.shell(c, "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o ConnectTimeout=30 git@a.example.com true")
	ports := map[string]bool{}
	for _, e := range h.all() {
		if e.Name == "a.example.com" {
			ports[e.Addr[strings.LastIndex(e.Addr, ":")+1:]] = true
		}
	}
	if !ports["22"] || !ports["80"] {
		l.Errorf("the host has not heard of ssh and git: %+v", h.all())
	}
	// Neither the user's own servers nor the host's services are asked for by the proxy.
	l.want(c, "(python3 -m http.server 8000 >/dev/null 2>&1 & echo $! >/tmp/server); "+
		"curl -s --retry 50 --retry-connrefused --retry-delay 1 -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/ && "+
		"curl -sS -o /dev/null -w '%{http_code}' http://localhost:8000/; kill $(cat /tmp/server)", "200200")
}

// otherPrograms are those that not every image has.
func (l *lab) otherPrograms(c *agent.Client) {
	l.Helper()
	const browse = "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=/tmp/chromium "
	for _, p := range []struct{ program, script, want string }{
		{"wget", "wget -q --no-proxy -O- http://a.example.com/", "host a.example.com by name"},
		{"wget", "wget -q -O- http://a.example.com/", "host a.example.com by proxy"},
		{"perl", `perl -MIO::Socket::INET -e 'print IO::Socket::INET->new("a.example.com:25")->getline'`, "host a.example.com 25"},
		{"java", "printf '%s' '" + java + "' >/tmp/T.java && java /tmp/T.java", "a.example.com/198.18 unknown host a.example.com by name"},
		{"chromium", browse + "--no-proxy-server --dump-dom http://a.example.com/ 2>/dev/null | grep -o 'host.*'", "host a.example.com by name"},
	} {
		if _, code := l.shell(c, "command -v "+p.program); code == 0 {
			l.want(c, p.script, p.want)
		}
	}
}

const java = `import java.net.*; import java.net.http.*;
public class T { public static void main(String[] a) throws Exception {
	System.out.print(InetAddress.getByName("a.example.com").toString().substring(0, 20) + " ");
	try { InetAddress.getByName("nope.test"); } catch (UnknownHostException e) { System.out.print("unknown "); }
	HttpRequest r = HttpRequest.newBuilder(URI.create("http://a.example.com/")).build();
	System.out.print(HttpClient.newHttpClient().send(r, HttpResponse.BodyHandlers.ofString()).body());
} }`
