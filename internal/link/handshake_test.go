package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

func testKeys(t testing.TB) (HostKey, wire.Boot) {
	t.Helper()
	key, err := NewKeys("1b671a64-40d5-491e-99b0-da01ff1f3341")
	if err != nil {
		t.Fatal(err)
	}
	return key, wire.Boot{Run: key.Run, HostKey: key.Public(), Secret: key.Secret}
}

// shake runs a handshake over a pipe and returns what each side says of it. Each
// side closes its end when it is done, as the callers do.
func shake(t *testing.T, key HostKey, boot wire.Boot) (host, server error) {
	t.Helper()
	a, b := net.Pipe()
	result := make(chan error, 1)
	go func() {
		err := ServerHandshake(t.Context(), b, boot)
		_ = b.Close()
		result <- err
	}()
	host = HostHandshake(t.Context(), a, key)
	_ = a.Close()
	return host, <-result
}

func TestHandshakeLetsTheHostIn(t *testing.T) {
	key, boot := testKeys(t)
	if host, server := shake(t, key, boot); host != nil || server != nil {
		t.Fatalf("host: %v, server: %v", host, server)
	}
}

func TestHandshakeRefusesAnotherHost(t *testing.T) {
	_, boot := testKeys(t)
	other, _ := testKeys(t)
	other.Secret = boot.Secret
	host, server := shake(t, other, boot)
	if !errors.Is(server, ErrHandshake) || !errors.Is(host, ErrHandshake) {
		t.Fatalf("host: %v, server: %v", host, server)
	}
}

func TestHandshakeRefusesAnotherRun(t *testing.T) {
	key, boot := testKeys(t)
	key.Run = "00000000-40d5-491e-99b0-da01ff1f3341"
	if _, server := shake(t, key, boot); !errors.Is(server, ErrHandshake) {
		t.Fatalf("server: %v", server)
	}
}

func TestHandshakeRefusesAServerWithoutTheSecret(t *testing.T) {
	key, boot := testKeys(t)
	boot.Secret = make([]byte, secretSize)
	if host, _ := shake(t, key, boot); !errors.Is(host, ErrHandshake) {
		t.Fatalf("host: %v", host)
	}
}

func TestHandshakeRefusesDamagedKeys(t *testing.T) {
	key, boot := testKeys(t)
	a, _ := net.Pipe()
	if err := HostHandshake(t.Context(), a, HostKey{Run: key.Run}); !errors.Is(err, ErrHandshake) {
		t.Errorf("host: %v", err)
	}
	boot.HostKey = boot.HostKey[:5]
	if err := ServerHandshake(t.Context(), a, boot); !errors.Is(err, ErrHandshake) {
		t.Errorf("server: %v", err)
	}
}

// TestHandshakeNamesAnotherVersion: both sides say which versions met.
func TestHandshakeNamesAnotherVersion(t *testing.T) {
	key, boot := testKeys(t)
	a, b := net.Pipe()
	go func() { _ = writeMessage(b, serverHello{V: wire.Version + 1, Nonce: newNonce()}) }()
	if err := HostHandshake(t.Context(), a, key); !errors.Is(err, ErrVersion) {
		t.Errorf("host: %v", err)
	}
	server := func(conn net.Conn) {
		var hello serverHello
		_ = readMessage(conn, &hello)
		_ = writeMessage(conn, hostHello{V: wire.Version + 1, Run: key.Run, Nonce: newNonce()})
	}
	if err := againstServer(t, boot, server); !errors.Is(err, ErrVersion) {
		t.Errorf("server: %v", err)
	}
}

// againstServer plays peer against ServerHandshake.
func againstServer(t *testing.T, boot wire.Boot, peer func(net.Conn)) error {
	t.Helper()
	a, b := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		peer(a)
	}()
	err := ServerHandshake(t.Context(), b, boot)
	_ = b.Close()
	_ = a.Close()
	<-done
	return err
}

// recorder keeps what is written through it.
type recorder struct {
	net.Conn
	written bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) {
	r.written.Write(p)
	return r.Conn.Write(p)
}

// TestHandshakeRefusesAReplay: every byte that a real host sent once is sent again.
func TestHandshakeRefusesAReplay(t *testing.T) {
	key, boot := testKeys(t)
	a, b := net.Pipe()
	rec := &recorder{Conn: a}
	result := make(chan error, 1)
	go func() { result <- ServerHandshake(t.Context(), b, boot) }()
	if err := HostHandshake(t.Context(), rec, key); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	err := againstServer(t, boot, func(conn net.Conn) {
		var hello serverHello
		_ = readMessage(conn, &hello)
		_, _ = conn.Write(rec.written.Bytes())
		_, _ = io.Copy(io.Discard, conn)
	})
	if !errors.Is(err, ErrHandshake) {
		t.Fatalf("server: %v", err)
	}
}

// TestHandshakeRefusesAReflection: PID 1's own words are no proof of the host.
func TestHandshakeRefusesAReflection(t *testing.T) {
	_, boot := testKeys(t)
	err := againstServer(t, boot, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	if !errors.Is(err, ErrHandshake) {
		t.Fatalf("server: %v", err)
	}
}

func TestHandshakeRefusesMalformedHellos(t *testing.T) {
	key, boot := testKeys(t)
	big := binary.BigEndian.AppendUint32(nil, 1<<20)
	for name, bytes := range map[string][]byte{
		"empty":        {},
		"truncated":    {0, 0, 0, 40, '{'},
		"half length":  {0, 0},
		"not JSON":     []byte("\x00\x00\x00\x04oops"),
		"no nonce":     message(t, hostHello{V: wire.Version, Run: key.Run}),
		"long nonce":   message(t, hostHello{V: wire.Version, Run: key.Run, Nonce: make([]byte, 33)}),
		"no signature": message(t, hostHello{V: wire.Version, Run: key.Run, Nonce: newNonce()}),
		"HTTP":         []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"one MB":       append(big, make([]byte, 1<<20)...),
		"length of 4G": {0xff, 0xff, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			err := againstServer(t, boot, func(conn net.Conn) {
				var hello serverHello
				_ = readMessage(conn, &hello)
				_, _ = conn.Write(bytes)
				_ = conn.Close()
			})
			if !errors.Is(err, ErrHandshake) {
				t.Fatalf("server: %v", err)
			}
		})
	}
}

func message(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := writeMessage(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHandshakeEndsSilencePromptly(t *testing.T) {
	key, boot := testKeys(t)
	for name, shake := range map[string]func(context.Context, net.Conn) error{
		"host":   func(ctx context.Context, c net.Conn) error { return HostHandshake(ctx, c, key) },
		"server": func(ctx context.Context, c net.Conn) error { return ServerHandshake(ctx, c, boot) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				defer func() { _, _ = a.Close(), b.Close() }()
				began := time.Now()
				err := shake(t.Context(), a)
				if !errors.Is(err, ErrHandshake) || time.Since(began) != handshakeTime {
					t.Fatalf("%v after %v", err, time.Since(began))
				}
			})
		})
	}
}

func TestHandshakeEndsWithItsContext(t *testing.T) {
	key, _ := testKeys(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a, b := net.Pipe()
		defer func() { _, _ = a.Close(), b.Close() }()
		if err := HostHandshake(ctx, a, key); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	})
}

// TestHandshakeLeavesNoDeadline: the session that follows must not inherit it.
func TestHandshakeLeavesNoDeadline(t *testing.T) {
	key, boot := testKeys(t)
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		go func() { _ = ServerHandshake(t.Context(), b, boot) }()
		if err := HostHandshake(t.Context(), a, key); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour) // by the clock of the bubble
		go func() { _, _ = b.Write([]byte("x")) }()
		if _, err := a.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestHostKeyDoesNotPrint(t *testing.T) {
	key, _ := testKeys(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(verb, key); got != "[hidden]" {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	if b, err := json.Marshal(key); err != nil || string(b) != `"[hidden]"` {
		t.Errorf("JSON: %s, %v", b, err)
	}
}

// TestHostKeySurvivesStorage: a recovering runner reads it back.
func TestHostKeySurvivesStorage(t *testing.T) {
	key, boot := testKeys(t)
	private, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseKeys(key.Run, private, key.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if host, server := shake(t, again, boot); host != nil || server != nil {
		t.Fatalf("host: %v, server: %v", host, server)
	}
}

func TestDamagedKeysAreRefused(t *testing.T) {
	key, boot := testKeys(t)
	private, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range map[string]struct {
		run             string
		private, secret []byte
	}{
		"no private half":    {"r", nil, key.Secret},
		"a short one":        {"r", private[1:], key.Secret},
		"zero":               {"r", make([]byte, len(private)), key.Secret},
		"above the order":    {"r", bytes.Repeat([]byte{0xff}, len(private)), key.Secret},
		"no secret":          {"r", private, nil},
		"a key of nobody's":  {"", private, key.Secret},
		"a secret too short": {"r", private, key.Secret[1:]},
	} {
		if _, err := ParseKeys(k.run, k.private, k.secret); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	point := bytes.Repeat([]byte{4}, publicSize) // not on the curve
	boot.HostKey = point
	if host, server := shake(t, key, boot); host == nil || server == nil {
		t.Errorf("a public half that is none: host: %v, server: %v", host, server)
	}
}

// FuzzReadMessage: whatever a stranger says, it is refused or a message, and no
// byte after it is touched.
func FuzzReadMessage(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}rest"))
	f.Add([]byte{0, 0, 0x10, 1, '{'})
	f.Add([]byte("\x00\x00\x00\x1b{\"v\":1,\"nonce\":\"AAAA\",\"x\":1}"))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		var hello hostHello
		if err := readMessage(r, &hello); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint32(in))
		if n > wire.MaxHello || r.Len() != len(in)-4-n {
			t.Fatalf("message of %d bytes, %d of %d left", n, r.Len(), len(in))
		}
	})
}
