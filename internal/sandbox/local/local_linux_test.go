package local

import (
	"os"
	"testing"

	"github.com/Insights/insightscli/internal/sandbox"
	"github.com/Insights/insightscli/internal/sandbox/sandboxtest"
)

func TestConformance(t *testing.T) {
	needNamespaces(t)
	sandboxtest.Run(t, func(_ *testing.T, root string) sandboxtest.Fixture {
		return sandboxtest.Fixture{
			Provider:    New(Options{Root: root}),
			Reopen:      func(*testing.T) sandbox.Provider { return New(Options{Root: root}) },
			AgentServer: os.Getenv(serverEnv),
			UID:         agentID(), GID: agentID(), Isolated: true, SocketShared: true,
		}
	})
}

func TestUnprivileged(t *testing.T) { asUser(t, "^TestSandbox|^TestRecord|^TestConformance") }
