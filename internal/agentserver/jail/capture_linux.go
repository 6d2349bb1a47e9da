package jail

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/Insights/insightscli/internal/agentserver/jail/plan"
	"github.com/Insights/insightscli/internal/link/wire"
)

// backlog is how many connections may wait to be accepted.
const backlog = 4096

// openCapture turns every way out of the sandbox into its own listeners. install is
// captureRules. The listeners come first: from the first rule on there is somebody.
func openCapture(allow []string, install func() error) (*Capture, error) {
	c := &Capture{}
	err := c.listen()
	if err == nil {
		err = step(plan.StepNetwork, c.route(allow, install))
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close closes the listeners.
func (c *Capture) Close() error {
	var err error
	for _, ln := range c.TCP {
		err = errors.Join(err, ln.Close())
	}
	if c.DNS != nil {
		err = errors.Join(err, c.DNS.Close())
	}
	if c.UDP != nil {
		err = errors.Join(err, c.UDP.Close())
	}
	return err
}

func (c *Capture) listen() error {
	home := [4]byte{127, 0, 0, 1}
	egress, err := listenTCP(home, wire.PortEgress)
	if err != nil {
		return step(plan.StepNetwork, err)
	}
	c.TCP = append(c.TCP, egress)
	if c.DNS, err = listenTCP(home, wire.PortDNS); err != nil {
		return step(plan.StepNetwork, err)
	}
	c.UDP, err = net.ListenUDP("udp4", &net.UDPAddr{IP: home[:], Port: wire.PortDNS})
	return step(plan.StepNetwork, err)
}

// route leads every address here: by nat rules, or, where the kernel has none, by making
// all addresses the sandbox's own and listening at the ports of the policy.
func (c *Capture) route(allow []string, install func() error) error {
	if err := ignoreExists(addOwnAddress()); err != nil {
		return pathError("address", "lo", err)
	}
	err := install()
	switch {
	case err == nil:
		return pathError("route", "default", ignoreExists(addRoute(throughLoopback())))
	case !lacking(err):
		return fmt.Errorf("nf_tables: %w", err)
	}
	c.Local = true
	ports := allowedPorts(allow)
	for _, port := range ports {
		ln, err := listenTCP([4]byte{}, port)
		if err != nil {
			return err
		}
		c.TCP = append(c.TCP, ln)
	}
	c.Cost = cost(ports)
	err = ignoreExists(addRoute(anyAddress()))
	if err != nil { // gVisor has no such routes, but takes all of a network of lo for its own
		err = errors.Join(ignoreExists(addAddress([4]byte{127, 0, 1, 2}, 1)), ignoreExists(addAddress([4]byte{240, 0, 0, 1}, 1)))
	}
	return pathError("route", "local", err)
}

// lacking reports that the kernel has not got what the rules need, as opposed to having
// refused them.
func lacking(err error) bool {
	for _, e := range []unix.Errno{unix.EPROTONOSUPPORT, unix.EAFNOSUPPORT, unix.EOPNOTSUPP, unix.ENOENT, unix.ENOSYS, unix.EINVAL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func ignoreExists(err error) error {
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
}

// allowedPorts are the ports that a policy speaks of: those of every rule, and those that
// some name.
func allowedPorts(allow []string) []uint16 {
	ports := []uint16{22, 80, 443}
	for _, r := range allow {
		if _, rest, isRequest := strings.Cut(r, "://"); isRequest {
			r, _, _ = strings.Cut(rest, "/")
		}
		_, text, _ := strings.Cut(r, ":")
		if n, err := strconv.ParseUint(text, 10, 16); err == nil && n > 0 && n != wire.PortEgress && n != wire.PortDNS {
			ports = append(ports, uint16(n))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

func cost(ports []uint16) string {
	list := make([]string, 0, len(ports))
	for _, p := range ports {
		list = append(list, strconv.Itoa(int(p)))
	}
	return "this kernel has no nf_tables: servers inside cannot listen on the ports " + strings.Join(list, ", ") +
		", and a connection to any other port, of whatever address, reaches the sandbox itself"
}

// listenTCP is net.Listen with a backlog of our own: the library reads how long it may be
// in /proc, which is being replaced meanwhile.
func listenTCP(addr [4]byte, port uint16) (*net.TCPListener, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "tcp")
	defer func() { _ = f.Close() }()
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(port), Addr: addr})
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on port %d: %w", port, err)
	}
	ln, err := net.FileListener(f)
	if err != nil {
		return nil, err
	}
	return ln.(*net.TCPListener), nil
}
