//go:build !windows

package cli

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/Insights/insightscli/internal/testenv"
)

// TestKeepDescriptors: what a shell has left open for this process does not go on into
// a background runner.
func TestKeepDescriptors(t *testing.T) {
	fd, err := syscall.Open("/", syscall.O_RDONLY, 0) // not close-on-exec, as a shell leaves it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(fd) }()
	look := func() bool {
		out, err := exec.CommandContext(t.Context(), "ls", "-l", "/dev/fd/").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Contains(string(out), "-> /\n")
	}
	testenv.Need(t, "a system that passes descriptors on", look())
	keepDescriptors()
	if look() {
		t.Error("a descriptor is passed on")
	}
}
