package local

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/testenv"
)

const refusalEnv = "INSIGHTSCLI_TEST_REFUSAL"

// TestHelperProbe is no test: where sandboxes are impossible it prints the refusal.
func TestHelperProbe(t *testing.T) {
	if os.Getenv(refusalEnv) == "" {
		t.Skip("is the other process of TestSandboxRefusals")
	}
	err := New(Options{}).Probe(t.Context(), os.Getenv(serverEnv))
	if err == nil {
		t.Fatal("a sandbox can be made")
	}
	t.Logf("kind=%s text=%v hint=%s", errs.KindOf(err), err, errs.HintOf(err))
}

// TestSandboxRefusals makes, in namespaces of its own, machines that cannot have a
// sandbox.
func TestSandboxRefusals(t *testing.T) {
	needNamespaces(t)
	_, err := exec.LookPath("unshare")
	testenv.Need(t, "unshare(1)", err == nil)
	for name, tt := range map[string]struct{ prepare, want string }{
		"no namespaces left": {"echo 1 >/proc/sys/user/max_user_namespaces", "no further user namespace may be made"},
		"masked proc":        {"mount -t tmpfs none /proc/fs", "parts of /proc, and the kernel then refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			// The second namespace gives the probe an ordinary uid.
			script := tt.prepare + ` && exec unshare -U --map-user=1001 --map-group=1001 "$0" -test.run='^TestHelperProbe$' -test.v`
			cmd := exec.CommandContext(t.Context(), "unshare", "-Urm", "sh", "-c", script, must(os.Executable()))
			cmd.Env = append(os.Environ(), refusalEnv+"=1")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if text := string(out); !strings.Contains(text, "kind=unavailable") || !strings.Contains(text, tt.want) || !strings.Contains(text, "hint=") {
				t.Errorf("refusal: %s", text)
			}
		})
	}
}

// A server that cannot be executed is no refusal of the kernel's.
func TestProbeWithoutServer(t *testing.T) {
	for _, server := range []string{"/nonexistent", "/etc/passwd"} {
		err := New(Options{}).Probe(t.Context(), server)
		if err == nil || errs.KindOf(err) != errs.Internal || !strings.Contains(err.Error(), server) {
			t.Errorf("%s: %v", server, err)
		}
	}
}
