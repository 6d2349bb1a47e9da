package setup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/setup/dotenv"
)

// MCPNames are the variables without which the MCP server of the project does not
// work.
func MCPNames() []string {
	return []string{"INSIGHTS_API_BASE_URL", "INSIGHTS_UI_APPS_TOKEN", "INSIGHTS_ANALYTICS_API_KEY"}
}

// MCPEnv is the step that gives the project's MCP server its .env, from the example
// beside it. A file that is there gets only what it lacks.
type MCPEnv struct {
	Project string // the directory that holds services/
}

// Name implements [Step].
func (MCPEnv) Name() string { return "mcp-env" }

func (s MCPEnv) path() string { return filepath.Join(s.Project, "services", "mcp", ".env") }

// Check implements [Step].
func (s MCPEnv) Check(context.Context) (Finding, error) {
	path, example := s.path(), s.path()+".example"
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return Finding{State: Needless, Text: "there is no services/mcp here"}, nil
	}
	exists := true
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		exists = false
	}
	if _, err := os.Stat(example); err != nil && !exists {
		return Finding{State: Manual, Text: "there is neither " + path + " nor " + example, Hint: "write " + path}, nil
	}
	if !exists {
		return Finding{State: Missing, Text: path + " is to be copied from its example"}, nil
	}
	f, err := readMCP(path)
	if err != nil {
		return Finding{}, err
	}
	added, err := s.add(f)
	if err != nil || len(added) == 0 {
		return Finding{State: Ready, Text: path}, err
	}
	if err := dotenv.MayEdit(path); err != nil {
		return Finding{}, mcpError(path, err)
	}
	return Finding{State: Missing, Text: path + " lacks " + strings.Join(added, ", "), Diff: f.Diff(path, nil)}, nil
}

// add sets what the file lacks and the example has.
func (s MCPEnv) add(f *dotenv.File) ([]string, error) {
	example, err := readMCP(s.path() + ".example")
	if err != nil {
		return nil, err
	}
	var added []string
	for _, key := range MCPNames() {
		_, there := f.Get(key)
		text, known := example.Get(key)
		if there || !known {
			continue
		}
		if err := f.Set(key, text); err != nil {
			return nil, err
		}
		added = append(added, key)
	}
	return added, nil
}

// readMCP reads a file whose place the project decides: no flag names another.
func readMCP(path string) (*dotenv.File, error) {
	f, err := dotenv.Read(path)
	if err != nil {
		return nil, mcpError(path, err)
	}
	return f, nil
}

func mcpError(path string, err error) error {
	return errs.New("setup.MCPEnv", errs.KindOf(err), "make "+path+" a text file of your own, or remove it", "%w", err)
}

// Apply implements [Step].
func (s MCPEnv) Apply(ctx context.Context) (string, error) {
	path := s.path()
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return "copied " + path + " from its example", copyNew(path+".example", path)
	}
	var added []string
	_, err := dotenv.Edit(ctx, path, func(f *dotenv.File) (err error) {
		added, err = s.add(f)
		return err
	})
	return "wrote " + strings.Join(added, ", ") + " to " + path, err
}

// copyNew copies a file for its owner alone, whole or not at all; what is there already
// stays.
func copyNew(from, to string) error {
	const op = "setup.MCPEnv"
	hint := "make " + filepath.Dir(to) + " a folder that you can write to"
	example, err := readMCP(from) // not what is no text, or has no end
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(to), ".env.tmp-*") // 0600
	if err != nil {
		return errs.New(op, errs.Config, hint, "write %s: %w", to, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone once it has its name
	_, err = f.Write(example.Bytes())
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errs.New(op, errs.Config, "free space on the disk", "write %s: %w", to, err)
	}
	// A link does not replace what somebody else made meanwhile.
	if err := os.Link(f.Name(), to); err != nil && !errors.Is(err, fs.ErrExist) {
		if err := os.Rename(f.Name(), to); err != nil { // a file system without links
			return errs.New(op, errs.Config, hint, "write %s: %w", to, err)
		}
	}
	return nil
}
