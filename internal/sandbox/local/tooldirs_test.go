package local

import (
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
)

func machine() fstest.MapFS {
	file := &fstest.MapFile{Mode: 0o755}
	link := func(to string) *fstest.MapFile {
		return &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(to)}
	}
	return fstest.MapFS{
		"usr/bin/git":                                                         file,
		"usr/local/bin/node":                                                  link("/home/ann/.nvm/versions/node/v20/bin/node"),
		"home/ann/.ssh/id_rsa":                                                file,
		"home/ann/.npmrc":                                                     file,
		"home/ann/.nvm/versions/node/v22/bin/node":                            file,
		"home/ann/.nvm/versions/node/v22/bin/npm":                             link("../lib/node_modules/npm/bin/npm-cli.js"),
		"home/ann/.nvm/versions/node/v22/lib/node_modules/npm/x":              file,
		"home/ann/.nvm/versions/node/v20/bin/node":                            file,
		"home/ann/.nvm/versions/node/v20/lib/x":                               file,
		"home/ann/.nvm/versions/node/v22/lib/node_modules/npm/bin/npm-cli.js": file,
		"home/ann/.pyenv/shims/python":                                        file,
		"home/ann/.pyenv/versions/3.12/bin/python":                            file,
		"home/ann/.cargo/bin/rustup":                                          file,
		"home/ann/.cargo/credentials.toml":                                    file,
		"home/ann/.rustup/toolchains/stable/bin/cargo":                        file,
		"home/ann/go/bin/gopls":                                               file,
		"home/ann/.local/bin/claude":                                          link("/home/ann/.local/share/claude/versions/2"),
		"home/ann/.local/bin/loop":                                            link("loop"),
		"home/ann/.local/bin/gone":                                            link("/home/ann/nowhere/x"),
		"home/ann/.local/bin/key":                                             link("../../.ssh/id_rsa"),
		"home/ann/.local/share/claude/versions/2":                             file,
		"home/ann/.config/tool/bin/x":                                         file,
		"home/ann/bin/mine":                                                   file,
		"home/ann/tools/bin/x":                                                file,
		"home/ann/tools/v1/bin/x":                                             file,
		"home/ann/tools/v1/.env":                                              file,
		"home/ann/tools/v1/lib/x":                                             file,
		"home/ann/src/rails/bin/rake":                                         file,
		"home/ann/src/rails/lib/x":                                            file,
		"home/ann/src/rails/.git/config":                                      file,
		"home/ann/src/rails/node_modules/.bin/leak":                           link("/home/ann/papers/read.sh"),
		"home/ann/src/rails/node_modules/.bin/uv":                             link("/home/ann/.local/share/uv/3.12/bin/python"),
		"home/ann/src/rails/planted":                                          link("/home/ann/.ssh"),
		"home/ann/src/rails/config":                                           link("../../../../etc"),
		"home/ann/src/rails/home":                                             link("/home/ann"),
		"home/ann/src/notes/bin/x":                                            file,
		"home/ann/src/notes/text":                                             file,
		"home/ann/papers/read.sh":                                             file,
		"home/ann/.local/share/uv/3.12/bin/python":                            file,
		"home/ann/.local/share/uv/3.12/lib/x":                                 file,
		"home/ann/keys/bin/server.key":                                        file,
		"home/ann/keys/sbin/id_ecdsa":                                         file,
		"home/ann/keys/xbin/.env.local":                                       file,
		"etc/passwd":                                                          file,
		"home/ann/dirty/credentials":                                          file,
		"home/linuxbrew/.linuxbrew/bin/jq":                                    link("../Cellar/jq/bin/jq"),
		"home/linuxbrew/.linuxbrew/Cellar/jq/bin/jq":                          file,
	}
}

func TestToolDirs(t *testing.T) {
	const home = "/home/ann"
	for name, tt := range map[string]struct {
		path string
		want []string
	}{
		"visible already":         {"/usr/bin:/bin", nil},
		"nothing":                 {"", nil},
		"working directory":       {".::bin", nil},
		"the home itself":         {home + ":" + home + "/:/home", nil},
		"nvm, the whole version":  {home + "/.nvm/versions/node/v22/bin", []string{home + "/.nvm/versions/node/v22"}},
		"pyenv, all of it":        {home + "/.pyenv/shims:" + home + "/.pyenv/bin", []string{home + "/.pyenv"}},
		"cargo without its login": {home + "/.cargo/bin", []string{home + "/.cargo/bin", home + "/.rustup/toolchains"}},
		"go":                      {home + "/go/bin", []string{home + "/go/bin"}},
		"links, never into .ssh":  {home + "/.local/bin", []string{home + "/.local/bin", home + "/.local/share/claude/versions"}},
		"a link from /usr/local":  {"/usr/local/bin", []string{home + "/.nvm/versions/node/v20"}},
		"inside .config":          {home + "/.config/tool/bin", nil},
		"own bin":                 {home + "/bin", []string{home + "/bin"}},
		"not what lies beside":    {home + "/tools/bin", []string{home + "/tools/bin"}},
		"prefix with a secret":    {home + "/tools/v1/bin", []string{home + "/tools/v1/bin"}},
		"directory with a secret": {home + "/dirty", nil},
		"linuxbrew":               {"/home/linuxbrew/.linuxbrew/bin", []string{linuxbrew}},
		"a project, its bin only": {home + "/src/rails/bin:" + home + "/src/notes/bin", []string{home + "/src/notes/bin", home + "/src/rails/bin"}},
		"links of a checkout":     {home + "/src/rails/node_modules/.bin", []string{home + "/.local/share/uv/3.12", home + "/src/rails/node_modules/.bin"}},
		"a link to .ssh":          {home + "/src/rails/planted", nil},
		"a link to /etc":          {home + "/src/rails/config", nil},
		"a link to the home":      {home + "/src/rails/home", nil},
		"keys among programs":     {home + "/keys/bin:" + home + "/keys/sbin:" + home + "/keys/xbin", nil},
		"missing":                 {home + "/nowhere", nil},
		"dots":                    {home + "/x/../../ann/go/bin/", []string{home + "/go/bin"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := toolDirs(machine(), tt.path, home); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestToolDirsNeedsAHome(t *testing.T) {
	for _, home := range []string{"", "/", "relative"} {
		if got := toolDirs(machine(), "/home/ann/go/bin", home); got != nil {
			t.Errorf("home %q: %q", home, got)
		}
	}
}
