package docker

import (
	"testing"

	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/sandboxtest"
)

// The contract of every provider, over each transport.
func TestConformance(t *testing.T) {
	eachTransport(t, func(t *testing.T, p *Provider) {
		ref := baseImage(t, p)
		server, err := buildServer()
		if err != nil {
			t.Fatal(err)
		}
		sandboxtest.Run(t, func(t *testing.T, _ string) sandboxtest.Fixture {
			return sandboxtest.Fixture{
				Provider: realEngine(t, p.engine.opts.Transport),
				Reopen: func(t *testing.T) sandbox.Provider {
					return realEngine(t, p.engine.opts.Transport)
				},
				AgentServer: server, Image: ref, UID: agentID(), GID: agentID(), Isolated: true,
				SocketShared: p.engine.opts.Transport == TransportSocket,
			}
		})
	})
}
