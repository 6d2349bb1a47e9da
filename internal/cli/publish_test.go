package cli

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// The published surface answers everybody how it is, and tells what happened only to
// those who show a token of the run.
func TestPublishedAgentServer(t *testing.T) {
	bin := needSandbox(t)
	state := t.TempDir()
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), bin, args...)
		cmd.Env = append(os.Environ(), "INSIGHTSCLI_STATE_DIR="+state)
		return cmd
	}
	run := command("run", "--provider=local", "--publish-agent", "--", "sh", "-c", "echo said; sleep 300")
	out, err := run.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	url := publishedAt(t, bufio.NewReader(out))
	if status, body := get(t, url+"/health", ""); status != http.StatusOK || !strings.Contains(body, `"status":"ok"`) {
		t.Errorf("health: %d %s", status, body)
	}
	if status, body := get(t, url+"/events", ""); status != http.StatusUnauthorized {
		t.Errorf("events without a token: %d %s", status, body)
	}
	token, err := command("show", "latest", "--token").Output()
	if err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, url+"/events", strings.TrimSpace(string(token))); status != http.StatusOK || !strings.Contains(body, "said") {
		t.Errorf("events: %d %s", status, body)
	}
	if out, err := command("cancel", "latest").CombinedOutput(); err != nil {
		t.Errorf("cancel: %v: %s", err, out)
	}
	var exit *exec.ExitError
	if err := run.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("the run: %v", err)
	}
}

var published = regexp.MustCompile(`the agent server is at (http://127\.0\.0\.1:\d+);`)

func publishedAt(t *testing.T, lines *bufio.Reader) string {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if m := published.FindStringSubmatch(line); m != nil {
			return m[1]
		}
		if err != nil {
			t.Fatalf("%v before the address was told", err)
		}
	}
}

// get returns the beginning of an answer: /events has no end.
func get(t *testing.T, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	begin := make([]byte, 4096)
	n, err := io.ReadAtLeast(resp.Body, begin, 2)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return resp.StatusCode, string(begin[:n])
}
