//go:build unix

package memory_test

import (
	"os"
	"testing"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/execdriver"
	"github.com/Insights/insightscli/internal/sandbox/memory"
	"github.com/Insights/insightscli/internal/sandbox/sandboxtest"
)

func TestConformance(t *testing.T) {
	sandboxtest.Run(t, func(*testing.T, string) sandboxtest.Fixture {
		return sandboxtest.Fixture{
			Provider: memory.New(map[string]agentserver.NewDriver{execdriver.Name: execdriver.New}),
			UID:      os.Getuid(), GID: os.Getgid(),
		}
	})
}
