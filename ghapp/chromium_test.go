package ghapp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/testenv"
	"github.com/Insights/insightscli/test/fakegithub"
)

// A real browser obeys the page's policy, runs its script, and takes the form across
// origins, as the tests' own browser only claims to.
func TestARealBrowserCreatesTheApp(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("chromium")
	testenv.Need(t, "chromium", err == nil)
	gh := fakegithub.New(t, fakegithub.Options{})
	b := startBrowser(t, path)
	shown := make(chan string, 1)
	s, err := Start(t.Context(), Options{
		BaseURL: gh.URL, Timeout: 3 * time.Minute, Notify: func(err error) { t.Errorf("notice: %v", err) },
		Open: func(address string) error {
			title, err := b.createApp(address)
			shown <- title
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if title := <-shown; title != "The app was created" {
		t.Errorf("the tab ends on %q", title)
	}
	app := gh.Apps()[0]
	if r.ClientID != app.ClientID || r.ClientSecret.Reveal() != app.ClientSecret || r.Slug != app.Slug {
		t.Errorf("%+v", r)
	}
	if _, key, err := readKey(r.PrivateKey); err != nil || !key.Equal(app.Key) {
		t.Errorf("the key: %v", err)
	}
}

// chromium is a browser with one tab, driven over a pipe: messages in JSON that end
// in NUL.
type chromium struct {
	in      io.Writer
	out     *bufio.Reader
	session string // of the tab
	n       int
}

func startBrowser(t *testing.T, path string) *chromium {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-background-networking", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir="+profile(t))
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = theirIn.Close(), theirOut.Close()
	b := &chromium{in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = b.call("Browser.close", nil, nil)
		_ = in.Close()
		_, _ = io.Copy(io.Discard, b.out)
		_ = cmd.Wait()
	})
	var target struct{ TargetID string }
	var session struct{ SessionID string }
	if err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		t.Fatal(err)
	}
	if err := b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session); err != nil {
		t.Fatal(err)
	}
	b.session = session.SessionID
	return b
}

// profile is a folder for a browser, whose helpers may write to it for a moment after
// it has ended: t.TempDir would call that a failure.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ghapp-chromium-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := os.RemoveAll(dir)
		for end := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(end); err = os.RemoveAll(dir) {
			runtime.Gosched()
		}
		if err != nil {
			t.Error(err)
		}
	})
	return dir
}

// call sends one command and waits for its answer; events are skipped.
func (b *chromium) call(method string, params, result any) error {
	b.n++
	message := map[string]any{"id": b.n, "method": method, "params": params}
	if params == nil {
		delete(message, "params")
	}
	if b.session != "" && !strings.HasPrefix(method, "Browser.") {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return err
	}
	for {
		line, err := b.out.ReadBytes(0)
		if err != nil {
			return err
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(bytes.TrimSuffix(line, []byte{0}), &answer); err != nil {
			return err
		}
		switch {
		case answer.ID != b.n:
			continue
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(answer.Result, result)
	}
}

// createApp opens a page, waits for the button of GitHub's page, clicks it, and
// returns the title of the page on which that ends.
func (b *chromium) createApp(address string) (string, error) {
	if err := b.call("Page.navigate", map[string]any{"url": address}, nil); err != nil {
		return "", err
	}
	const button = `[...document.querySelectorAll("button")].find(b => b.textContent.startsWith("Create GitHub App"))`
	// An answer that the click overtook is asked for again, and finds the page after it.
	if _, err := b.until(`(() => { const b = ` + button + `; if (b) b.click(); return b || document.title == "The app was created" ? "clicked" : "" })()`); err != nil {
		return "", err
	}
	return b.until(`document.title == "Create GitHub App" || document.readyState != "complete" ? "" : document.title`)
}

// until asks the tab until it has something to say. A page that is just being left
// cannot answer.
func (b *chromium) until(expression string) (string, error) {
	for {
		var answer struct{ Result struct{ Value string } }
		err := b.call("Runtime.evaluate", map[string]any{"expression": expression}, &answer)
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
			return "", err
		}
		if err == nil && answer.Result.Value != "" {
			return answer.Result.Value, nil
		}
	}
}
