package config_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
)

// sample is a text of each type that is no default, and what it means.
func sample(s config.Setting, home string) (text string, want any) {
	if s.Secret {
		return "text", secret.New("text")
	}
	switch s.Type {
	case config.TypeBool:
		return map[string]string{"1": "off", "0": "on"}[s.Default], s.Default == "0"
	case config.TypeInt:
		return "1234", 1234
	case config.TypeFloat:
		return "1.5", 1.5
	case config.TypeSize:
		return "1.5g", int64(1536)
	case config.TypeDuration:
		return "90s", 90 * time.Second
	case config.TypeURL:
		return "https://h.example:1/p", "https://h.example:1/p"
	case config.TypeOrigin:
		return "https://h.example:1/", "https://h.example:1/"
	case config.TypePath:
		return "/x/../y", "/y"
	case config.TypeMounts:
		return "Org/Repo:~/x", []config.RepoMount{{Org: "org", Name: "repo", Path: filepath.Join(home, "x")}}
	}
	switch s.Type {
	case config.TypeAmount:
		return "1.5", 1.5
	case config.TypeList:
		return "a, b,c", []string{"a", "b", "c"}
	case config.TypeServers:
		return `{"s":{"command":"serve","args":["-x"],"env":{"K":"${V}"}}}`,
			map[string]config.MCPServer{"s": {Command: "serve", Args: []string{"-x"}, Env: map[string]string{"K": "${V}"}}}
	case config.TypeEnvironments:
		return `{"e":{"network":"custom","allow":["a.example"],"env":{"K":"v"},"secrets":["S"]}}`,
			map[string]config.Environment{"e": {Network: "custom", Allow: []string{"a.example"}, Env: map[string]string{"K": "v"}, Secrets: []string{"S"}}}
	}
	return "text", "text"
}

// field finds the field that a setting is decoded into.
func field(v reflect.Value, tag string) (reflect.Value, bool) {
	for i := range v.NumField() {
		switch got := v.Type().Field(i).Tag.Get("mapstructure"); {
		case got == tag:
			return v.Field(i), true
		case got == ",squash", v.Type().Field(i).Name == "Machine":
			if f, ok := field(v.Field(i), tag); ok {
				return f, true
			}
		}
	}
	return reflect.Value{}, false
}

// Every setting is read by its own parser into its own field, and no other moves: a
// copied tag would make one setting decide two things, and a wrong one none.
func TestEverySettingReachesItsField(t *testing.T) {
	for _, s := range config.Settings() {
		p := newPlace(t)
		text, want := sample(s, p.home)
		c, err := p.load(nil, s.Name+"="+text)
		if err != nil {
			t.Errorf("%s=%s: %v", s.Name, text, err)
			continue
		}
		plain, err := p.load(nil)
		if err != nil {
			t.Fatal(err)
		}
		f, ok := field(reflect.ValueOf(&c).Elem(), strings.ToLower(s.Name))
		if !ok || !reflect.DeepEqual(f.Interface(), want) {
			t.Errorf("%s=%s is not %v", s.Name, text, want)
			continue
		}
		before, _ := field(reflect.ValueOf(&plain).Elem(), strings.ToLower(s.Name))
		f.Set(before)
		if a, b := exported(c), exported(plain); !reflect.DeepEqual(a, b) {
			t.Errorf("%s changes another setting: %+v", s.Name, a)
		}
	}
}

// exported are the values of c without where they came from.
func exported(c config.Config) []any {
	return []any{
		c.Provider, c.Debug, c.Test, c.CloudDeployment, c.APIURL, c.LLMGatewayURL, c.MCPURL, c.RepoMounts,
		c.Run, c.Agents, c.Account, c.Machine,
	}
}

// wrong are texts that a type refuses.
func wrong(kind config.Type) []string {
	return map[config.Type][]string{
		config.TypeInt:      {"x", "-1", "1.5", "99999999999999999999"},
		config.TypeFloat:    {"two", "-0.5", "NaN", "Inf", "4097", "1,5"},
		config.TypeAmount:   {"two", "-0.5", "NaN", "Inf", "1,5"},
		config.TypeSize:     {"lots", "-1g", "5m", "1x", "m", "8 gb g"},
		config.TypeDuration: {"soon", "-1s", "30", "1d"},
		config.TypeURL:      {"localhost:8000", "ftp://h", "http://", "/p", "http://%zz"},
		config.TypeOrigin: {
			"h.example", "http://h.example", "ftp://h", "https://", "https://u:p@h.example", "https://h.example/p", "https://h.example?q", "https://h.example#f",
		},
		config.TypeMounts:  {"a", "a/b:rel", "a/b:/x,a/b:/y"},
		config.TypeServers: {"x", "[]", `{"a":{}}`, `{"a":{"url":"ftp://h"}}`, `{"a":{"url":"http://h","command":"c"}}`, `{"a":{"nope":1}}`, `{} {}`},

		config.TypeEnvironments: {"x", "[]", `{"a":{}}`, `{"a":{"network":"full","nope":1}}`, `{"a":{"network":"full","env":{"LD_PRELOAD":"x"}}}`, `{"a":{"network":"full","secrets":["GH_TOKEN"]}}`, `{"a b":{"network":"full"}}`, `{"\u001b[2J":{"network":"full"}}`, `{} {}`},
	}[kind]
}

// Each wrong text, in each source that a setting may stand in: one error that names the
// place down to its line. Without it a user would look for it in six files.
func TestWrongTextNamesItsSource(t *testing.T) {
	for _, s := range config.Settings() {
		for _, text := range wrong(s.Type) {
			wantPlace(t, s, "environment", s.Name+": ", errs.Config, func(p place) (config.Config, error) {
				return p.load(nil, s.Name+"="+text)
			})
			if s.Flag != "" {
				wantPlace(t, s, "flag", "--"+s.Flag+": ", errs.Usage, func(p place) (config.Config, error) {
					return p.load(map[string]string{s.Name: text})
				})
			}
			if !s.EnvOnly {
				wantPlace(t, s, ".env", ".env:2: "+s.Name+": ", errs.Config, func(p place) (config.Config, error) {
					p.write(filepath.Join(p.sub, ".env"), "OTHER=1\n"+s.Name+"='"+text+"'\n")
					return p.load(nil)
				})
			}
			if s.Key != "" && !s.UserFile && s.Type != config.TypeServers && s.Type != config.TypeEnvironments {
				wantPlace(t, s, "YAML", "insights.yaml:3: "+s.Name+": ", errs.Config, func(p place) (config.Config, error) {
					p.write(filepath.Join(p.sub, "insights.yaml"), "# mine\n\n"+s.Key+": '"+text+"'\n")
					return p.load(nil)
				})
			}
		}
	}
}

func wantPlace(t *testing.T, s config.Setting, where, prefix string, kind errs.Kind, load func(place) (config.Config, error)) {
	t.Helper()
	if _, err := load(newPlace(t)); err == nil || !strings.HasPrefix(err.Error(), prefix) || errs.KindOf(err) != kind {
		t.Errorf("%s, %s: %v (%s), want %q…", s.Name, where, err, errs.KindOf(err), prefix)
	}
}

// Godotenv reads KEY: VALUE too, and an export with any space: lines that it accepts must
// be found again, or `config` and the errors point nowhere.
func TestLinesOfEveryDotenvForm(t *testing.T) {
	for text, line := range map[string]int{
		"\nINSIGHTSCLI_AGENT=x\n":                         2,
		"A=1\nINSIGHTSCLI_AGENT: x\n":                     2,
		"export INSIGHTSCLI_AGENT = x":                    1,
		"export\tINSIGHTSCLI_AGENT=x":                     1,
		"  INSIGHTSCLI_AGENT=x\r\n":                       1,
		"INSIGHTSCLI_AGENT=y\nB=2\nINSIGHTSCLI_AGENT=x\n": 3,
		"URL=http://h/?INSIGHTSCLI_AGENT=1\nINSIGHTSCLI_AGENT=x\n#INSIGHTSCLI_AGENT=z\n": 2,
	} {
		p := newPlace(t)
		p.write(filepath.Join(p.sub, ".env"), text)
		c, err := p.load(nil)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if _, from := source(t, c, "INSIGHTSCLI_AGENT"); c.Run.Agent != "x" || from != fmt.Sprintf(".env:%d", line) {
			t.Errorf("%q: %q from %s, want line %d", text, c.Run.Agent, from, line)
		}
	}
}

// A misspelt variable of ours would silently be no setting at all.
func TestMisspeltVariableOfOurs(t *testing.T) {
	p := newPlace(t)
	p.write(filepath.Join(p.sub, ".env"), "NODE_ENV=x\nINSIGHTSCLI_TEST_X=1\nINSIGHTSCLI_TIMEUOT: 3h\n")
	_, err := p.load(nil)
	if err == nil || err.Error() != `.env:3: unknown variable "INSIGHTSCLI_TIMEUOT"` || errs.KindOf(err) != errs.Config ||
		errs.HintOf(err) != "see 'insightscli help environment'" {
		t.Errorf("%v; %s", err, errs.HintOf(err))
	}
}

// Files that cannot be read at all are not passed over: their settings would be gone.
func TestFilesThatCannotBeRead(t *testing.T) {
	for name, tt := range map[string]struct {
		make func(p place)
		want string
	}{
		"too large":            {func(p place) { p.write(p.sub+"/insights.yaml", strings.Repeat("#\n", 1<<19+1)) }, "larger than 1 MiB"},
		"config.yaml is a dir": {func(p place) { mkdir(p.t, p.home, ".config", "insightscli", "config.yaml") }, "is a directory"},
		"a link to itself":     {func(p place) { link(p.t, ".env", p.sub+"/.env") }, "too many levels"},
		"binary":               {func(p place) { p.write(p.sub+"/insights.yaml", "\x00\x01") }, "insights.yaml:1: "},
		"a second document":    {func(p place) { p.write(p.sub+"/insights.yaml", "cpus: 1\n---\ncpus: 2\n") }, "insights.yaml:2: "},
	} {
		p := newPlace(t)
		tt.make(p)
		if _, err := p.load(nil); err == nil || !strings.Contains(err.Error(), tt.want) || errs.KindOf(err) != errs.Config {
			t.Errorf("%s: %v (%s)", name, err, errs.KindOf(err))
		}
	}
}

// No form in which settings are shown, logged or complained about holds a secret, from
// whichever source it came.
func TestNoFormShowsASecret(t *testing.T) {
	const canary = "canary-7f3a"
	var lines []string
	for _, s := range config.Settings() {
		if s.Secret {
			lines = append(lines, s.Name+"="+canary)
		}
	}
	for _, from := range []string{".env", ".env.local", "environment"} {
		p := newPlace(t)
		environ := lines
		if from != "environment" {
			p.write(filepath.Join(p.sub, from), strings.Join(lines, "\n"))
			environ = nil
		}
		c, err := p.load(nil, environ...)
		if err != nil || c.Account.ModalTokenID.Reveal() != canary {
			t.Fatalf("%s: %v", from, err)
		}
		all := formsOf(t, c, c.Values())
		if strings.Contains(all, canary) || strings.Count(all, secret.Hidden) < len(lines) {
			t.Errorf("%s: %s", from, all)
		}
	}
}

func formsOf(t *testing.T, values ...any) string {
	t.Helper()
	var b strings.Builder
	for _, v := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			fmt.Fprintf(&b, verb+"\n", v)
		}
		if err := json.NewEncoder(&b).Encode(v); err != nil {
			t.Fatal(err)
		}
		slog.New(slog.NewTextHandler(&b, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&b, nil)).Info("m", "v", v)
	}
	return b.String()
}

// A URL may carry a password; `insightscli config` goes into bug reports.
func TestUserinfoOfAURLIsNotShown(t *testing.T) {
	for text, want := range map[string]string{
		"http://ann:pw@h.example:1/a?b=c": "http://[hidden]@h.example:1/a?b=c",
		"https://ghp_token@h.example":     "https://[hidden]@h.example",
		"http://h.example/a@b":            "http://h.example/a@b",
	} {
		c, err := newPlace(t).load(nil, "SANDBOX_MCP_URL="+text)
		if err != nil || c.MCPURL != text {
			t.Errorf("%q: %q, %v", text, c.MCPURL, err)
			continue
		}
		if shown, _ := source(t, c, "SANDBOX_MCP_URL"); shown != want {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
}

// A wrong secret-bearing line is complained about without its text.
func TestErrorsDoNotRepeatWhatMayBeSecret(t *testing.T) {
	for _, environ := range []string{"SANDBOX_API_URL=ftp://ann:canary@h", "SANDBOX_MCP_URL=http://canary@[::1"} {
		if _, err := newPlace(t).load(nil, environ); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", environ, err)
		}
	}
}

// DEBUG belongs to other programs too; only a clear no is one.
func TestWordsThatSayNo(t *testing.T) {
	for text, want := range map[string]bool{
		"0": false, "false": false, "FALSE": false, "f": false, "no": false, "N": false, "Off": false,
		"1": true, "true": true, "app:*": true, "00": true, "2": true, " ": true,
	} {
		c, err := newPlace(t).load(nil, "DEBUG="+text)
		if err != nil || c.Debug != want {
			t.Errorf("DEBUG=%q is %v, %v", text, c.Debug, err)
		}
	}
}

func mkdir(t *testing.T, path ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path...), 0o755); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// An empty file is no error, in any way in which one can be empty.
func TestEmptyFilesSayNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "# only\n", "---\n", "\ufeff", "{}"} {
		p := newPlace(t)
		p.write(p.sub+"/insights.yaml", text)
		p.write(p.sub+"/.env", strings.Trim(text, "-{}"))
		if c, err := p.load(nil); err != nil || c.Run.Timeout != 3*time.Hour {
			t.Errorf("%q: %v", text, err)
		}
	}
}
