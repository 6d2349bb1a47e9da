package agentserver

import (
	"bytes"
	"sync"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/secret"
)

// newMask returns the masks of everything that PID 1 shows to others than its host,
// who has its own: the values of the variables that Boot.Secrets names, and whatever
// looks like a token. They are made when they are first needed, which in most runs is
// never: it would be on the way to the agent's first output.
func newMask(boot wire.Boot) func() *secret.Masker {
	return sync.OnceValue(func() *secret.Masker {
		values := make([]string, 0, len(boot.Secrets))
		for _, name := range boot.Secrets {
			values = append(values, boot.Env[name])
		}
		return secret.NewMasker(values...)
	})
}

// outputMask masks the output of one follower of the journal. It is shown every frame
// that is still there, also those that are not told, so that a secret that lies in
// several is known by its beginning.
type outputMask struct {
	mask    *secret.Masker
	streams map[wire.FrameType]*secret.Stream
	cut     map[wire.FrameType]bool // the beginning of the stream is gone
}

// newOutputMask returns the mask for a journal whose oldest frame has number first.
func newOutputMask(m *secret.Masker, first uint64) *outputMask {
	gone := first > 1
	return &outputMask{
		mask:    m,
		streams: map[wire.FrameType]*secret.Stream{wire.FrameStdout: m.Stream(), wire.FrameStderr: m.Stream()},
		cut:     map[wire.FrameType]bool{wire.FrameStdout: gone, wire.FrameStderr: gone},
	}
}

// output returns what can be told of f after everything before. The rest of a line
// whose beginning is gone may be the rest of a secret, and is left out.
func (o *outputMask) output(f *wire.Frame) []byte {
	data := f.Data
	if o.cut[f.Type] {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			return nil
		}
		data, o.cut[f.Type] = data[end+1:], false
	}
	return o.streams[f.Type].Write(data)
}

// rest returns what was held back of a stream that has ended.
func (o *outputMask) rest(t wire.FrameType) []byte { return o.streams[t].Flush() }

// holds reports whether something is held back, so that a line is not over.
func (o *outputMask) holds(t wire.FrameType) bool { return o.streams[t].Held() > 0 }
