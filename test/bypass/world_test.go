//go:build linux

package bypass

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/task"
)

// arrival is what a server of the world has got on one connection, or in one packet.
type arrival struct {
	how  string     // tcp, udp, dns, ip-NN, frame, unix; outside-tcp and so on
	to   netip.Addr // that was dialled, if the server can know
	port int
	got  bytes.Buffer
}

// world is the stand-in internet: servers at every address, and all that arrived.
type world struct {
	names *names

	mu       sync.Mutex // guards what follows
	arrivals []*arrival
	active   int // connections

	wg    sync.WaitGroup
	close []io.Closer
}

// tcpPorts are those at which the world answers.
func tcpPorts() []int {
	return []int{
		22, 25, 80, 443, 853, 1080, 2222, 2375, 3000, 3128, 5432, 8000, 8080, 8443, 9418, 15001, // 53: names
	}
}

func udpPorts() []int { return []int{67, 123, 443, 500, 4789, 5353, 8443, 51820} }

// newWorld starts the servers. They end with the test.
func newWorld(t testing.TB, s stage) *world {
	t.Helper()
	w := &world{}
	w.names = newNames(w)
	t.Cleanup(w.stop)
	for _, port := range tcpPorts() {
		for _, network := range []string{"tcp4", "tcp6"} {
			w.listen(t, network, port, w.talk)
		}
	}
	for _, network := range []string{"tcp4", "tcp6"} {
		w.listen(t, network, 53, func(c net.Conn, _ *arrival) { w.names.serveTCP(c) })
	}
	w.listenUDP(t, 53, func(b []byte, reply func([]byte)) { reply(w.names.answer(b)) })
	for _, port := range udpPorts() {
		w.listenUDP(t, port, func(_ []byte, reply func([]byte)) { reply([]byte("world")) })
	}
	if s.User {
		return w
	}
	for _, proto := range []int{unix.IPPROTO_ICMP, unix.IPPROTO_SCTP, 33, 136, 253} {
		w.listenRaw(t, unix.AF_INET, proto)
	}
	w.listenRaw(t, unix.AF_PACKET, 0xb588)
	w.outside(t)
	return w
}

func (w *world) stop() {
	for _, c := range w.close {
		_ = c.Close()
	}
	w.wg.Wait()
}

func (w *world) add(how string, to netip.Addr, port int) *arrival {
	a := &arrival{how: how, to: to.Unmap(), port: port}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrivals = append(w.arrivals, a)
	return a
}

func (w *world) busier(by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active += by
}

func (w *world) record(a *arrival, b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.got.Write(b)
}

// tee is a connection all of which is recorded.
type tee struct {
	net.Conn
	a *arrival
	w *world
}

// Read implements net.Conn.
func (t tee) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.w.record(t.a, b[:n])
	return n, err
}

func (w *world) listen(t testing.TB, network string, port int, serve func(net.Conn, *arrival)) {
	t.Helper()
	ln, err := net.Listen(network, fmt.Sprintf(":%d", port))
	if err != nil {
		t.Fatal(err)
	}
	w.accept(ln, "tcp", serve)
}

// accept serves a listener until the world stops.
func (w *world) accept(ln net.Listener, how string, serve func(net.Conn, *arrival)) {
	w.close = append(w.close, ln)
	w.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			var to netip.AddrPort
			if tcp, ok := c.LocalAddr().(*net.TCPAddr); ok {
				to = tcp.AddrPort()
			}
			a := w.add(how, to.Addr(), int(to.Port()))
			w.busier(1)
			w.wg.Go(func() {
				defer w.busier(-1)
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(time.Minute))
				serve(tee{c, a, w}, a)
			})
		}
	})
}

func (w *world) listenUDP(t testing.TB, port int, serve func([]byte, func([]byte))) {
	t.Helper()
	pc, err := net.ListenPacket("udp", fmt.Sprintf(":%d", port))
	if err != nil {
		t.Fatal(err)
	}
	w.datagrams(pc, "udp", port, serve)
}

func (w *world) datagrams(pc net.PacketConn, how string, port int, serve func([]byte, func([]byte))) {
	w.close = append(w.close, pc)
	w.wg.Go(func() {
		b := make([]byte, 64<<10)
		for {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			w.record(w.add(how, netip.Addr{}, port), b[:n])
			serve(b[:n], func(answer []byte) { _, _ = pc.WriteTo(answer, from) })
		}
	})
}

// listenRaw records packets of a protocol to any address.
func (w *world) listenRaw(t testing.TB, family, proto int) {
	t.Helper()
	kind := unix.SOCK_RAW
	if family == unix.AF_PACKET {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, proto)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "raw")
	w.close = append(w.close, f)
	w.wg.Go(func() {
		b := make([]byte, 64<<10)
		for {
			n, err := f.Read(b)
			if err != nil {
				return
			}
			var to netip.Addr
			if family == unix.AF_INET && n >= 20 {
				to = netip.AddrFrom4([4]byte(b[16:20]))
			}
			w.record(w.add(fmt.Sprintf("%d-%d", family, proto), to, 0), b[:n])
		}
	})
}

// outside serves what was opened in the namespace that the tests were started in.
func (w *world) outside(t testing.TB) {
	t.Helper()
	open := func(fd int) *os.File { return os.NewFile(uintptr(must(unix.Dup(fd))), "outside") }
	for fd, how := range map[int]string{fdTCP: "outside-tcp", fdUnix: "outside-unix"} {
		f := open(fd)
		ln, err := net.FileListener(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if u, ok := ln.(*net.UnixListener); ok {
			u.SetUnlinkOnClose(false)
		}
		w.accept(ln, how, w.talk)
	}
	f := open(fdUDP)
	pc, err := net.FilePacketConn(f)
	_ = f.Close()
	if err != nil {
		t.Fatal(err)
	}
	w.datagrams(pc, "outside-udp", 0, func(_ []byte, reply func([]byte)) { reply([]byte("outside")) })
}

const markPrefix = "mark-"

// settle returns when all that was sent before has been recorded: connections and packets
// are taken in turn, and behind a marker there is none of before. Who has sent must have
// ended.
func (w *world) settle(t testing.TB) {
	t.Helper()
	key := markPrefix + string(task.NewID())
	want := 0
	send := func(network, addr string, port int) {
		c, err := net.Dial(network, net.JoinHostPort(addr, strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, key)
		_ = c.Close()
		want++
	}
	for _, addr := range []string{"127.0.0.1", "::1"} {
		for _, port := range append(tcpPorts(), 53) {
			send("tcp", addr, port)
		}
	}
	for _, port := range append(udpPorts(), 53) {
		send("udp", "127.0.0.1", port)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for w.count(key) < want || w.busy() > 0 {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%d of %d markers have arrived, and %d connections are open", w.count(key), want, w.busy())
		}
	}
}

func (w *world) count(word string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.arrivals {
		if bytes.Contains(a.got.Bytes(), []byte(word)) {
			n++
		}
	}
	return n
}

func (w *world) busy() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active
}

// maxFound is how many arrivals of one attempt are told.
const maxFound = 4

// reached tells where the token of an attempt, or anything for its addresses, has arrived.
func (w *world) reached(n int, within netip.Prefix) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for _, a := range w.arrivals {
		dialled := a.to.IsValid() && slices.Contains(evilAddrs(n), a.to)
		told := bytes.Contains(a.got.Bytes(), []byte(token(n))) && (!within.IsValid() || within.Contains(a.to))
		if len(found) < maxFound && (dialled || told) {
			found = append(found, fmt.Sprintf("%s to %s:%d (%d bytes)", a.how, a.to, a.port, a.got.Len()))
		}
	}
	return found
}

// dialled returns every address of a connection that was accepted, beside the markers'.
func (w *world) dialled() map[netip.Addr]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[netip.Addr]int{}
	for _, a := range w.arrivals {
		if a.how == "tcp" && !bytes.HasPrefix(a.got.Bytes(), []byte(markPrefix)) {
			all[a.to]++
		}
	}
	return all
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(errors.Join(errors.New("impossible"), err))
	}
	return v
}
