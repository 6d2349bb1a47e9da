package egress_test

import (
	"io"
	"net"
	"strings"
	"testing"
)

const plain = "GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"

// Requests that are for the name are carried as they are, any number of them; those of the
// second column are the same to the server.
func TestHTTPForTheNameIsCarried(t *testing.T) {
	for name, text := range map[string]string{
		"one":               plain,
		"kept alive":        plain + plain + plain,
		"1.0":               "GET / HTTP/1.0\r\nHost: good.test\r\n\r\n",
		"capitals":          "GET / HTTP/1.1\r\nHOST: Good.Test\r\n\r\n",
		"with its port":     "GET / HTTP/1.1\r\nHost: good.test:80\r\n\r\n",
		"absolute":          "GET http://good.test/x HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"a body":            "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 5\r\n\r\nhello" + plain,
		"chunks":            "POST / HTTP/1.1\r\nHost: good.test\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n" + plain,
		"a body of a host":  "POST / HTTP/1.1\r\nHost: good.test\r\nContent-Length: 39\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n....",
		"options":           "OPTIONS * HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"a long target":     "GET /" + strings.Repeat("x", 30000) + " HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"octets in a value": "GET /\xc3\xa4 HTTP/1.1\r\nHost: good.test\r\nX: \xff\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, port := range []string{"80", "8080"} {
				w := newWorld(t, []string{"good.test", "good.test:8080"})
				w.name("good.test", "93.184.216.1")
				s := w.serve(t, "93.184.216.1:"+port, respond)
				conn, v := w.named(t, "good.test", atoi(port))
				if !v.OK {
					t.Fatal(v.Reason)
				}
				send := strings.ReplaceAll(text, "good.test:80", "good.test:"+port)
				answer := say(t, conn, send)
				if !strings.HasPrefix(answer, "HTTP/1.1 200") || w.ended(t, s) != send {
					t.Errorf("port %s: the answer %q; the server got %q", port, answer, s.log())
				}
			}
		})
	}
}

func atoi(s string) (n int) {
	for _, c := range s {
		n = n*10 + int(c-'0')
	}
	return n
}

// What comes before the fault is carried; of the request that has it, nothing is.
func TestHTTPThatIsNotForTheNameArrivesNowhere(t *testing.T) {
	post := "POST / HTTP/1.1\r\nHost: good.test\r\n"
	chunked := post + "Transfer-Encoding: chunked\r\n\r\n"
	for name, text := range map[string]string{
		"another host":           "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"a suffix":               "GET / HTTP/1.1\r\nHost: xgood.test\r\n\r\n",
		"a prefix":               "GET / HTTP/1.1\r\nHost: good.test.evil.test\r\n\r\n",
		"a dot at its end":       "GET / HTTP/1.1\r\nHost: good.test.\r\n\r\n",
		"a user before":          "GET / HTTP/1.1\r\nHost: good.test@evil.test\r\n\r\n",
		"another port":           "GET / HTTP/1.1\r\nHost: good.test:81\r\n\r\n",
		"an address":             "GET / HTTP/1.1\r\nHost: 93.184.216.1\r\n\r\n",
		"no host":                "GET / HTTP/1.1\r\n\r\n",
		"no host, 1.0":           "GET / HTTP/1.0\r\n\r\n",
		"an empty host":          "GET / HTTP/1.1\r\nHost: \r\n\r\n",
		"two hosts":              "GET / HTTP/1.1\r\nHost: good.test\r\nHost: evil.test\r\n\r\n",
		"the same host twice":    "GET / HTTP/1.1\r\nHost: good.test\r\nHost: good.test\r\n\r\n",
		"two in one":             "GET / HTTP/1.1\r\nHost: good.test, evil.test\r\n\r\n",
		"absolute, evil":         "GET http://evil.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"absolute, evil host":    "GET http://good.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"absolute, a user":       "GET http://good.test@evil.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"absolute, https":        "GET https://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"authority only":         "GET evil.test:80 HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"connect":                "CONNECT evil.test:443 HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"http/2":                 "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a fold":                 "GET / HTTP/1.1\r\nX: y\r\n Host: evil.test\r\nHost: good.test\r\n\r\n",
		"a space in a name":      "GET / HTTP/1.1\r\nHost : evil.test\r\nHost: good.test\r\n\r\n",
		"a bare line feed":       "GET / HTTP/1.1\nHost: good.test\n\n",
		"one bare line feed":     "GET / HTTP/1.1\r\nX: y\nHost: evil.test\r\nHost: good.test\r\n\r\n",
		"a bare return":          "GET / HTTP/1.1\r\nX: y\rHost: evil.test\r\nHost: good.test\r\n\r\n",
		"a zero":                 "GET / HTTP/1.1\r\nHost: good.test\x00.evil.test\r\n\r\n",
		"a zero in a field":      "GET / HTTP/1.1\r\nX: \x00\r\nHost: good.test\r\n\r\n",
		"a tab for a space":      "GET\t/ HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"two spaces":             "GET  / HTTP/1.1\r\nHost: good.test\r\n\r\n",
		"1.2":                    "GET / HTTP/1.2\r\nHost: good.test\r\n\r\n",
		"small letters":          "get / http/1.1\r\nHost: evil.test\r\n\r\n",
		"a line before it":       "\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"no colon":               "GET / HTTP/1.1\r\nHost: good.test\r\nX\r\n\r\n",
		"length and chunks":      post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":            post + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
		"lengths in one":         post + "Content-Length: 4, 5\r\n\r\nabcde",
		"a signed length":        post + "Content-Length: +4\r\n\r\nabcd",
		"a negative length":      post + "Content-Length: -4\r\n\r\nabcd",
		"a huge length":          post + "Content-Length: 99999999999999999999\r\n\r\nabcd",
		"another coding":         post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"identity":               post + "Transfer-Encoding: identity\r\n\r\n",
		"an odd coding":          post + "Transfer-Encoding: xchunked\r\n\r\n",
		"two codings":            post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		"chunks, 1.0":            "POST / HTTP/1.0\r\nHost: good.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"too long a head":        "GET / HTTP/1.1\r\nHost: good.test\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n",
		"too many fields":        "GET / HTTP/1.1\r\nHost: good.test\r\n" + strings.Repeat("X: y\r\n", 300) + "\r\n",
		"cut off":                "GET / HTTP/1.1\r\nHost: good.test\r\n",
		"not HTTP":               "\x00\x01\x02\x03",
		"a second host":          plain + "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"a host behind a body":   post + "Content-Length: 2\r\n\r\nabGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"a host behind chunks":   chunked + "0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"a length that is wrong": chunked + "2\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"a chunk of line feeds":  chunked + "2\nab\n0\n\nGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"a chunk of 0x":          chunked + "0x2\r\nabGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"a trailing host":        chunked + "0\r\nHost: evil.test\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, []string{"good.test"})
			w.name("good.test", "93.184.216.1")
			s := w.serve(t, "93.184.216.1:80", respond)
			conn, v := w.named(t, "good.test", 80)
			if !v.OK {
				t.Fatal(v.Reason)
			}
			answer := say(t, conn, text)
			got := w.ended(t, s)
			if strings.Contains(got, "evil") || strings.Contains(got, "X") || !strings.HasPrefix(text, got) || got == text {
				t.Errorf("the server got %q", got)
			}
			if denied, _ := w.told(); len(denied) != 1 || denied[0].Host != "good.test" || denied[0].Reason == "" {
				t.Errorf("told: %+v", denied)
			}
			if got == "" && strings.Contains(text, "HTTP/1") && !strings.Contains(answer, "Do not retry it by other routes") {
				t.Errorf("the client got %q", answer)
			}
		})
	}
}

// An offer of HTTP/2 is left out: what follows it would not be looked into.
func TestOfferOfHTTP2IsNotPassedOn(t *testing.T) {
	w := newWorld(t, []string{"good.test"})
	w.name("good.test", "93.184.216.1")
	s := w.serve(t, "93.184.216.1:80", respond)
	conn, _ := w.named(t, "good.test", 80)
	say(t, conn, "GET / HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
	if got := w.ended(t, s); !strings.Contains(got, "good.test") || strings.Contains(got, "h2c") || strings.Contains(got, "AAMAAABk") {
		t.Errorf("the server got %q", got)
	}
}

const upgrade = "GET /chat HTTP/1.1\r\nHost: good.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

// answerWith reads one head and answers it, and then keeps what comes.
func answerWith(response string) func(io.Reader, *net.TCPConn) {
	return func(r io.Reader, conn *net.TCPConn) {
		var got []byte
		for b := make([]byte, 1); !strings.HasSuffix(string(got), "\r\n\r\n"); {
			if _, err := io.ReadFull(r, b); err != nil {
				return
			}
			got = append(got, b[0])
		}
		_, _ = io.WriteString(conn, response)
		_, _ = io.Copy(io.Discard, r)
	}
}

func TestWebSocketPassesOnceTheServerAgrees(t *testing.T) {
	for name, c := range map[string]struct {
		response string
		passes   bool
	}{
		"it agrees":                 {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", true},
		"after an interim response": {"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 101 Switching Protocols\r\n\r\n", true},
		"it does not":               {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false},
		"it says nothing of sense":  {"HTTP/1.1 1010\r\n\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, []string{"good.test"})
			w.name("good.test", "93.184.216.1")
			s := w.serve(t, "93.184.216.1:80", answerWith(c.response))
			conn, _ := w.named(t, "good.test", 80)
			_, _ = io.WriteString(conn, upgrade)
			b := make([]byte, len(c.response))
			if _, err := io.ReadFull(conn, b); err != nil || string(b) != c.response {
				t.Fatalf("%q, %v", b, err)
			}
			frame := "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
			say(t, conn, frame)
			if got := strings.HasSuffix(w.ended(t, s), frame); got != c.passes {
				t.Errorf("the server got %q", s.log())
			}
		})
	}
}

// A rule of requests lets these through and no other, on a connection that is kept too.
func TestRulesOfRequests(t *testing.T) {
	for text, passes := range map[string]bool{
		"GET /pub/a HTTP/1.1\r\nHost: good.test\r\n\r\n":                       true,
		"GET /pub/a?x=/../ HTTP/1.1\r\nHost: good.test\r\n\r\n":                true,
		"GET http://good.test/pub/a HTTP/1.1\r\nHost: good.test\r\n\r\n":       true,
		"POST /pub/a HTTP/1.1\r\nHost: good.test\r\nContent-Length: 0\r\n\r\n": false,
		"GET /private HTTP/1.1\r\nHost: good.test\r\n\r\n":                     false,
		"GET /pub/../private HTTP/1.1\r\nHost: good.test\r\n\r\n":              false,
		"GET /pub/%2e%2e/private HTTP/1.1\r\nHost: good.test\r\n\r\n":          false,
		"GET /pub/..%2fprivate HTTP/1.1\r\nHost: good.test\r\n\r\n":            false,
		"GET /pub/..\\private HTTP/1.1\r\nHost: good.test\r\n\r\n":             false,
		"GET //pub/a HTTP/1.1\r\nHost: good.test\r\n\r\n":                      false,
		"\x16\x03\x01\x00\x05hello":                                            false,
	} {
		w := newWorld(t, []string{"GET http://good.test/pub/*"})
		w.name("good.test", "93.184.216.1")
		s := w.serve(t, "93.184.216.1:80", respond)
		conn, v := w.named(t, "good.test", 80)
		if !v.OK {
			t.Fatal(v.Reason)
		}
		say(t, conn, text)
		if got := w.ended(t, s) == text; got != passes {
			t.Errorf("%q: the server got %q", text, s.log())
		}
	}
}
