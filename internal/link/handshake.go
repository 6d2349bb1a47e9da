package link

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

const (
	nonceSize  = 32
	secretSize = 32
	// handshakeTime bounds the handshake on both sides: a peer that is silent for
	// so long is not ours.
	handshakeTime = 10 * time.Second
)

// Sentinels of the handshake.
var (
	// ErrHandshake is wrapped when the peer is not who it must be, or says
	// something malformed, or nothing.
	ErrHandshake = errors.New("link handshake")
	// ErrVersion is wrapped, beside ErrHandshake, when the peer speaks another
	// version.
	ErrVersion = errors.New("the other side speaks another version")
)

// Each message is four bytes of length, big endian, and that much JSON.
type (
	// serverHello is the first message, of PID 1.
	serverHello struct {
		V     int    `json:"v"`
		Nonce []byte `json:"nonce"`
	}
	// hostHello answers it: Sig is over everything that both sides said.
	hostHello struct {
		V     int    `json:"v"`
		Run   string `json:"run"`
		Nonce []byte `json:"nonce"`
		Sig   []byte `json:"sig"`
	}
	// serverProof is the last message, of PID 1.
	serverProof struct {
		MAC []byte `json:"mac"`
	}
)

// HostHandshake proves to PID 1 that this is the host of the run, and makes PID 1
// prove that it is PID 1. After an error the connection is of no use; closing it
// is the caller's.
func HostHandshake(ctx context.Context, conn net.Conn, key HostKey) error {
	if !key.valid() {
		return fmt.Errorf("%w: the run's key is damaged", ErrHandshake)
	}
	return timed(ctx, conn, func() error { return hostHandshake(conn, key) })
}

func hostHandshake(conn net.Conn, key HostKey) error {
	var hello serverHello
	if err := readMessage(conn, &hello); err != nil {
		return err
	}
	if err := checkPeer(hello.V, hello.Nonce); err != nil {
		return err
	}
	nonce := newNonce()
	said := transcript(key.Run, hello.Nonce, nonce)
	sig, err := key.sign(said)
	if err != nil {
		return err
	}
	if err := writeMessage(conn, hostHello{V: wire.Version, Run: key.Run, Nonce: nonce, Sig: sig}); err != nil {
		return err
	}
	var proof serverProof
	if err := readMessage(conn, &proof); err != nil {
		return err
	}
	if !hmac.Equal(proof.MAC, mac(key.Secret, said)) {
		return fmt.Errorf("%w: the peer does not know the run's secret", ErrHandshake)
	}
	return nil
}

// ServerHandshake is PID 1's side.
func ServerHandshake(ctx context.Context, conn net.Conn, boot wire.Boot) error {
	if len(boot.HostKey) != publicSize || len(boot.Secret) != secretSize || boot.Run == "" {
		return fmt.Errorf("%w: boot without the run's keys", ErrHandshake)
	}
	return timed(ctx, conn, func() error { return serverHandshake(conn, boot) })
}

func serverHandshake(conn net.Conn, boot wire.Boot) error {
	nonce := newNonce()
	if err := writeMessage(conn, serverHello{V: wire.Version, Nonce: nonce}); err != nil {
		return err
	}
	var hello hostHello
	if err := readMessage(conn, &hello); err != nil {
		return err
	}
	if err := checkPeer(hello.V, hello.Nonce); err != nil {
		return err
	}
	if hello.Run != boot.Run {
		return fmt.Errorf("%w: a host of another run", ErrHandshake)
	}
	said := transcript(boot.Run, nonce, hello.Nonce)
	if !signed(boot.HostKey, said, hello.Sig) {
		return fmt.Errorf("%w: the signature is not the host's", ErrHandshake)
	}
	return writeMessage(conn, serverProof{MAC: mac(boot.Secret, said)})
}

// The labels keep a proof of one side from being used as one of the other.
const (
	hostLabel   = "insightscli link, host\x00"
	serverLabel = "insightscli link, server\x00"
)

// transcript is what both proofs are over. Every part has a fixed size but the
// run, which is last.
func transcript(run string, serverNonce, hostNonce []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, wire.Version)
	b = append(b, serverNonce...)
	b = append(b, hostNonce...)
	return append(b, run...)
}

func mac(secret, said []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(serverLabel))
	h.Write(said)
	return h.Sum(nil)
}

func newNonce() []byte {
	b := make([]byte, nonceSize)
	_, _ = rand.Read(b) // never fails: crypto/rand aborts the program instead
	return b
}

func checkPeer(version int, nonce []byte) error {
	if version != wire.Version {
		return fmt.Errorf("%w: %w: %d, here %d", ErrHandshake, ErrVersion, version, wire.Version)
	}
	if len(nonce) != nonceSize {
		return fmt.Errorf("%w: nonce of %d bytes", ErrHandshake, len(nonce))
	}
	return nil
}

// timed runs the handshake with a deadline that ctx may shorten, and takes the
// deadline off again.
func timed(ctx context.Context, conn net.Conn, shake func() error) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	release := interruptible(ctx, conn)
	err := shake()
	release()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrHandshake, context.Cause(ctx))
	case err == nil:
		return nil
	case errors.Is(err, ErrHandshake):
		return err
	}
	return fmt.Errorf("%w: %w", ErrHandshake, err)
}

// interruptible makes the end of ctx end what waits on conn, until release is
// called; release reports whether it came to that.
func interruptible(ctx context.Context, conn net.Conn) (release func() bool) {
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(fired)
		if conn.SetDeadline(time.Unix(1, 0)) != nil { // a transport without deadlines
			_ = conn.Close()
		}
	})
	return func() bool {
		if stop() {
			return false
		}
		<-fired
		return true
	}
}

func writeMessage(w io.Writer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	_, err = w.Write(append(b, body...))
	return err
}

// readMessage reads exactly one message and no byte more: the multiplexer's begin
// right after it.
func readMessage(r io.Reader, v any) error {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > wire.MaxHello {
		return fmt.Errorf("%w: message of %d bytes", ErrHandshake, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%w: malformed message", ErrHandshake)
	}
	return nil
}
