package serverctl

import (
	"context"
	"io"

	"github.com/Insights/insightscli/internal/link"
	"github.com/Insights/insightscli/internal/link/wire"
)

// bridgeBuffer is what one read takes: the frames of a busy link are large.
const bridgeBuffer = 256 << 10

// bridge carries standard input and output to and from PID 1's socket: the transport
// where the socket's directory cannot be shared with the host. It proves nothing to
// anybody; the handshake is between the two ends.
func bridge(ctx context.Context, p Process, _ []string) int {
	if err := seclude(); err != nil {
		say(p.Stderr, "link: %v", err)
		return 1
	}
	return bridgeTo(ctx, p, wire.LinkDir)
}

func bridgeTo(ctx context.Context, p Process, dir string) int {
	wait, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	conn, err := link.AwaitUnix(wait, dir, wire.SocketName, nil)
	if err != nil {
		say(p.Stderr, "link: %v", err)
		return 1
	}
	// Either end ends the bridge. The other copy may be blocked in a read of standard
	// input, which nothing interrupts; it ends with the process.
	ended := make(chan error, 2)
	go func() { ended <- carry(conn, p.Stdin) }()
	go func() { ended <- carry(p.Stdout, conn) }()
	<-ended
	_ = conn.Close()
	return 0
}

// carry copies without the fast paths of the files, which would wait for more than
// what is there.
func carry(to io.Writer, from io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, bridgeBuffer))
	return err
}
