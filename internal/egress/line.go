package egress

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// lineTime bounds how long the first line may take.
const lineTime = 10 * time.Second

// readEgress reads the first line of a stream, byte by byte: what follows belongs to the
// connection.
func readEgress(conn net.Conn) (wire.Egress, error) {
	var e wire.Egress
	_ = conn.SetReadDeadline(time.Now().Add(lineTime))
	line := make([]byte, 0, 128)
	var b [1]byte
	for {
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			return e, err
		}
		if b[0] == '\n' {
			break
		}
		if line = append(line, b[0]); len(line) >= wire.MaxEgressLine {
			return e, errors.New("the first line is too long")
		}
	}
	_ = conn.SetReadDeadline(time.Time{})
	if json.Unmarshal(line, &e) != nil {
		return e, errors.New("the first line is malformed")
	}
	return e, nil
}

// answer writes the verdict: err is why not, nil lets the connection through.
func answer(conn net.Conn, err error) error {
	v := wire.EgressVerdict{OK: err == nil}
	if err != nil {
		v.Reason = err.Error()
	}
	line, _ := json.Marshal(v) // a bool and a string always marshal
	if len(line) >= wire.MaxEgressLine {
		v.Reason = v.Reason[:min(len(v.Reason), 150)] // each octet may need six
		line, _ = json.Marshal(v)
	}
	_, werr := conn.Write(append(line, '\n'))
	return werr
}
