package agentserver

import (
	"io"
	"os"
	"path/filepath"

	"github.com/Insights/insightscli/internal/link/wire"
)

// maxMounts bounds the list of mounts.
const maxMounts = 1 << 20

// inspect tells what this process sees of the sandbox that it is PID 1 of.
func inspect(proc string) (wire.Inspection, error) {
	all, err := threads(proc)
	if err != nil {
		return wire.Inspection{}, err
	}
	f, err := os.Open(filepath.Join(proc, "self", "mountinfo"))
	if err != nil {
		return wire.Inspection{}, err
	}
	defer func() { _ = f.Close() }()
	mounts, err := io.ReadAll(io.LimitReader(f, maxMounts))
	return wire.Inspection{Threads: all, Mounts: string(mounts), Dumpable: dumpable()}, err
}
