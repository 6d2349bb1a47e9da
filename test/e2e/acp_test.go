//go:build linux

package e2e

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/Insights/insightscli/internal/testenv"
)

// acpAgent makes an agent of the Agent Client Protocol the one of this world. We bring
// no such program into a sandbox: a local one sees the directories of PATH, and for
// Docker it is in the image.
func (w *world) acpAgent(program string) {
	w.t.Helper()
	const provider = "model_providers.gw."
	command := []string{filepath.Base(program)}
	for _, c := range []string{
		"model=gpt-5.5", "model_provider=gw", provider + "name=gw", provider + "wire_api=responses",
		provider + "base_url=http://127.0.0.1:47822/openai/v1", provider + "env_key=OPENAI_API_KEY",
	} {
		command = append(command, "-c", c)
	}
	w.flags[1] = "acp:" + strings.Join(command, " ")
	if w.provider == "local" {
		tools := filepath.Join(w.home, ".local", "bin")
		w.put(program, filepath.Join(tools, filepath.Base(program)))
		w.env[0] = "PATH=" + tools + string(os.PathListSeparator) + os.Getenv("PATH")
		return
	}
	image, err := acpImage(program)
	testenv.Need(w.t, "an image with "+program+": "+image, err == nil)
	w.flags = append(w.flags, "--image", image)
}

// put makes the program another name, or a copy of it on another file system.
func (w *world) put(program, path string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if os.Link(program, path) == nil {
		return
	}
	in, err := os.Open(program)
	if err != nil {
		w.t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		w.t.Fatal(err)
	}
}

// acpImage builds an image of the base and the program, once for all tests. The engine
// has it from its own cache the next time.
var acpImage = func() func(string) (string, error) {
	var once sync.Once
	var image string
	var err error
	return func(program string) (string, error) {
		once.Do(func() {
			const tag = "insightscli-e2e-acp"
			cmd := exec.Command("docker", "build", "-q", "-t", tag, "-f", "-", filepath.Dir(program))
			cmd.Stdin = strings.NewReader("FROM insights-sandbox-base\nCOPY " + filepath.Base(program) + " /usr/local/bin/\n")
			var out []byte
			if out, err = cmd.CombinedOutput(); err != nil {
				image = string(out)
				return
			}
			image = tag
		})
		return image, err
	}
}()
