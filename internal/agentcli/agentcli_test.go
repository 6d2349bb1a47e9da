//go:build unix

package agentcli

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
)

// program is the smallest ELF file that has a machine and, unless empty, a loader.
func program(t *testing.T, machine elf.Machine, loader string) string {
	t.Helper()
	header := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Shentsize: 64,
	}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS], header.Ident[elf.EI_DATA], header.Ident[elf.EI_VERSION] = 2, 1, 1
	segment := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: 120, Filesz: uint64(len(loader))}
	if loader != "" {
		header.Phnum = 1
	}
	var b bytes.Buffer
	for _, part := range []any{header, segment, []byte(loader)} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

const (
	glibc = "/lib64/ld-linux-x86-64.so.2\x00"
	musl  = "/lib/ld-musl-x86_64.so.1\x00"
)

// tree makes files below a new directory: contents by path; "-> x" is a symbolic link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if target, link := strings.CutPrefix(content, "-> "); link && err == nil {
			err = os.Symlink(target, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(content), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	script       = "#!/usr/bin/env node\nimport './x.js'\n"
	claudeMain   = `{"name":"@anthropic-ai/claude-code","version":"2.1.332"}`
	claudeNative = `{"name":"@anthropic-ai/claude-code-linux-x64","version":"2.1.332"}`
	codexMain    = `{"name":"@openai/codex","version":"0.171.0"}`
	codexNative  = `{"name":"@openai/codex","version":"0.171.0-linux-x64"}`
	triple       = "x86_64-unknown-linux-musl"
)

type findCase struct {
	files  map[string]string
	agent  string
	path   string // PATH, directories of the tree with ":" between
	musl   bool
	source string // below the root
	want   string // version
}

func findCases(t *testing.T) map[string]findCase {
	t.Helper()
	amd64, muslAMD64, static := program(t, elf.EM_X86_64, glibc), program(t, elf.EM_X86_64, musl), program(t, elf.EM_X86_64, "")
	return map[string]findCase{
		"a native program in the PATH": {
			files: map[string]string{"bin/claude": amd64}, agent: Claude, path: "no:bin", source: "bin/claude",
		},
		"the vendor's own installer": {
			files: map[string]string{"share/versions/2.1.332": amd64, "bin/claude": "-> ../share/versions/2.1.332"},
			agent: Claude, path: "bin", source: "share/versions/2.1.332", want: "2.1.332",
		},
		"npm, platform package beside": {
			files: map[string]string{
				"bin/claude": "-> ../lib/node_modules/@anthropic-ai/claude-code/cli.js",
				"lib/node_modules/@anthropic-ai/claude-code/cli.js":                 script,
				"lib/node_modules/@anthropic-ai/claude-code/package.json":           claudeMain,
				"lib/node_modules/@anthropic-ai/claude-code-linux-x64/claude":       amd64,
				"lib/node_modules/@anthropic-ai/claude-code-linux-x64/package.json": claudeNative,
			}, agent: Claude, path: "bin",
			source: "lib/node_modules/@anthropic-ai/claude-code-linux-x64/claude", want: "2.1.332",
		},
		"npm, the program in the package itself": {
			files: map[string]string{
				"bin/claude": "-> ../lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe",
				"lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe": amd64,
				"lib/node_modules/@anthropic-ai/claude-code/package.json":   claudeMain,
			}, agent: Claude, path: "bin", source: "lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe", want: "2.1.332",
		},
		"npm, musl": {
			files: map[string]string{
				"bin/claude": "-> ../lib/node_modules/@anthropic-ai/claude-code/cli.js",
				"lib/node_modules/@anthropic-ai/claude-code/cli.js":                script,
				"lib/node_modules/@anthropic-ai/claude-code/package.json":          claudeMain,
				"lib/node_modules/@anthropic-ai/claude-code-linux-x64/claude":      amd64,
				"lib/node_modules/@anthropic-ai/claude-code-linux-x64-musl/claude": muslAMD64,
			}, agent: Claude, path: "bin", musl: true,
			source: "lib/node_modules/@anthropic-ai/claude-code-linux-x64-musl/claude",
		},
		"npm, platform package alone": {
			files: map[string]string{"lib/node_modules/@anthropic-ai/claude-code-linux-x64/claude": amd64},
			agent: Claude, path: "bin", source: "lib/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
		},
		"a script of somebody else, then the program": {
			files: map[string]string{"a/claude": "#!/bin/sh\nexec ssh far claude\n", "b/claude": static},
			agent: Claude, path: "a:b", source: "b/claude",
		},
		"codex, nested package": {
			files: map[string]string{
				"bin/codex": "-> ../lib/node_modules/@openai/codex/bin/codex.js",
				"lib/node_modules/@openai/codex/bin/codex.js":                                                             script,
				"lib/node_modules/@openai/codex/package.json":                                                             codexMain,
				"lib/node_modules/@openai/codex/node_modules/@openai/codex-linux-x64/package.json":                        codexNative,
				"lib/node_modules/@openai/codex/node_modules/@openai/codex-linux-x64/vendor/" + triple + "/bin/codex":     static,
				"lib/node_modules/@openai/codex/node_modules/@openai/codex-linux-x64/vendor/" + triple + "/codex-path/rg": static,
			}, agent: Codex, path: "bin", want: "0.171.0",
			source: "lib/node_modules/@openai/codex/node_modules/@openai/codex-linux-x64/vendor/" + triple,
		},
		"codex, pnpm's shell script": {
			files: map[string]string{
				"home/codex":                             "#!/bin/sh\nbasedir=$(dirname \"$0\")\nexec node \"$basedir/global/node_modules/@openai/codex/bin/codex.js\" \"$@\"\n",
				"home/global/node_modules/@openai/codex": "-> ../../.pnpm/codex/node_modules/@openai/codex",
				"home/global/.pnpm/codex/node_modules/@openai/codex/bin/codex.js":                                      script,
				"home/global/.pnpm/codex/node_modules/@openai/codex-linux-x64/vendor/" + triple + "/bin/codex":         static,
				"home/global/.pnpm/codex/node_modules/@openai/codex-linux-x64/vendor/" + triple + "/codex-resources/x": "",
			}, agent: Codex, path: "home",
			source: "home/global/.pnpm/codex/node_modules/@openai/codex-linux-x64/vendor/" + triple,
		},
		"codex alone, which is a file": { // what lies around it is not codex's
			files: map[string]string{"usr/bin/codex": static}, agent: Codex, path: "usr/bin", source: "usr/bin/codex",
		},
	}
}

func paths(root, list string) string {
	var dirs []string
	for dir := range strings.SplitSeq(list, ":") {
		dirs = append(dirs, filepath.Join(root, dir))
	}
	return strings.Join(dirs, ":")
}

func TestFind(t *testing.T) {
	for name, c := range findCases(t) {
		t.Run(name, func(t *testing.T) {
			root := tree(t, c.files)
			got, err := Find(c.agent, Options{Path: paths(root, c.path), Platform: "linux/amd64", Musl: c.musl})
			want := Program{Name: c.agent, Source: filepath.Join(root, c.source), Version: c.want}
			if err != nil || got != want {
				t.Errorf("%+v, %v\nwant %+v", got, err, want)
			}
		})
	}
}

// What cannot be mounted is an error that says why, and what to install.
func TestNotFound(t *testing.T) {
	amd64 := program(t, elf.EM_X86_64, glibc)
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"nothing at all":      {nil, "this machine has no program of agent claude for a sandbox of linux/amd64"},
		"another machine":     {map[string]string{"bin/claude": program(t, elf.EM_AARCH64, "")}, "for another machine"},
		"another C library":   {map[string]string{"bin/claude": program(t, elf.EM_X86_64, musl)}, "another C library"},
		"a program of macOS":  {map[string]string{"bin/claude": "\xcf\xfa\xed\xfe rest"}, "is a program for macOS"},
		"a broken program":    {map[string]string{"bin/claude": amd64[:40]}, "no valid ELF header"},
		"an empty file":       {map[string]string{"bin/claude": ""}, "does not belong to the npm package"},
		"somebody's script":   {map[string]string{"bin/claude": "#!/bin/sh\n"}, "does not belong to the npm package"},
		"a dangling link":     {map[string]string{"bin/claude": "-> nowhere"}, "this machine has no program"},
		"a launcher alone":    {map[string]string{"bin/claude": script, "bin/package.json": claudeMain}, "native program for linux-x64 is not installed"},
		"a directory of that": {map[string]string{"bin/claude/x": ""}, "this machine has no program"},
	} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, c.files)
			_, err := Find(Claude, Options{Path: paths(root, "bin") + "::relative", Platform: "linux/amd64"})
			if err == nil || !strings.Contains(err.Error(), c.says) || errs.KindOf(err) != errs.Config {
				t.Fatalf("it says %v", err)
			}
			if hint := errs.HintOf(err); !strings.HasPrefix(hint, "npm install -g ") || !strings.Contains(hint, "@anthropic-ai/claude-code") {
				t.Errorf("hint %q", hint)
			}
		})
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	root := tree(t, map[string]string{"bin/claude": program(t, elf.EM_X86_64, "")})
	for mode, says := range map[os.FileMode]string{0o644: "is not executable", 0o111: "cannot be read: permission denied"} {
		if err := os.Chmod(filepath.Join(root, "bin/claude"), mode); err != nil {
			t.Fatal(err)
		}
		if mode == 0o111 && os.Getuid() == 0 {
			continue // root reads everything
		}
		_, err := Find(Claude, Options{Path: filepath.Join(root, "bin"), Platform: "linux/amd64"})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
}

// A program that was named is the one that is taken, and nothing else instead of it.
func TestExplicit(t *testing.T) {
	static := program(t, elf.EM_X86_64, "")
	root := tree(t, map[string]string{
		"bin/codex": static, "mine/bin/codex": static, "mine/codex-package.json": "{}", "bad/codex": "#!/bin/sh\n",
	})
	o := Options{Path: filepath.Join(root, "bin"), Platform: "linux/amd64"}
	for explicit, want := range map[string]string{"mine/bin/codex": "mine", "mine": "mine", "bin/codex": "bin/codex"} {
		o.Explicit = filepath.Join(root, explicit)
		if got, err := Find(Codex, o); err != nil || got.Source != filepath.Join(root, want) {
			t.Errorf("%s: %+v, %v", explicit, got, err)
		}
	}
	for _, explicit := range []string{"bad/codex", "none"} {
		o.Explicit = filepath.Join(root, explicit)
		if _, err := Find(Codex, o); err == nil || !strings.HasPrefix(err.Error(), "CODEX_PATH: ") {
			t.Errorf("%s: %v", explicit, err)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	for _, c := range []struct {
		agent, version string
		ok             bool
	}{
		{Claude, "2.1.0", true},
		{Claude, "2.1.332", true},
		{Claude, "10.0.0", true},
		{Claude, "2.0.99", false},
		{Claude, "1.0.128", false},
		{Codex, "0.100.0", true},
		{Codex, "0.99.9-alpha.1", false},
		{Codex, "1.0.0+x", true},
		{Claude, "", true},
		{Claude, "2.1", true},
		{Claude, "x.y.z", true},
		{"other", "0.0.1", true},
	} {
		err := CheckVersion(c.agent, c.version)
		if (err == nil) != c.ok {
			t.Errorf("%s %s: %v", c.agent, c.version, err)
		}
	}
	err := CheckVersion(Claude, "2.0.99")
	if want := "agent claude has version 2.0.99, and 2.1.0 is the oldest that works"; err == nil || err.Error() != want {
		t.Errorf("it says %v", err)
	}
}

func TestAnOldProgramIsRefused(t *testing.T) {
	root := tree(t, map[string]string{
		"p/claude": program(t, elf.EM_X86_64, ""), "p/package.json": strings.ReplaceAll(claudeNative, "2.1.332", "2.0.9"),
	})
	if p, err := Find(Claude, Options{Path: filepath.Join(root, "p"), Platform: "linux/amd64"}); errs.KindOf(err) != errs.Config {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestUnknownAgentAndPlatform(t *testing.T) {
	for agent, platform := range map[string]string{"gemini": "linux/amd64", Claude: "linux/riscv64"} {
		if _, err := Find(agent, Options{Platform: platform}); errs.KindOf(err) != errs.Config {
			t.Errorf("%s on %s: %v", agent, platform, err)
		}
	}
}

// On a machine of another kind npm leaves the native program out unless it is told.
func TestHintForAnotherPlatform(t *testing.T) {
	other, flags := "linux/amd64", "--os=linux --cpu=x64 "
	if runtime.GOARCH == "amd64" {
		other, flags = "linux/arm64", "--os=linux --cpu=arm64 "
	}
	_, err := Find(Codex, Options{Platform: other})
	if hint := errs.HintOf(err); !strings.HasPrefix(hint, "npm install -g "+flags+"@openai/codex@latest") {
		t.Errorf("hint %q", hint)
	}
}
