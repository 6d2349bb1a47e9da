package llm

import (
	"net/url"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// CheckAnthropicKey refuses a key that ANTHROPIC_API_KEY cannot be. A key for another
// endpoint than Anthropic's own may look like anything that fits into a header.
func CheckAnthropicKey(u Upstream) error {
	key := u.Key.Reveal()
	if err := checkForm(anthropic.key(), key, "console.anthropic.com"); err != nil {
		return err
	}
	switch {
	case key == "" || !isOfficial(u.URL, anthropic):
		return nil
	case strings.HasPrefix(key, "sk-ant-oat"), strings.HasPrefix(key, "sk-ant-ort"), strings.HasPrefix(key, "sk-ant-sid"):
		return wrongKind(anthropic.key(), "holds a token of a Claude subscription",
			"set ANTHROPIC_API_KEY to an API key (sk-ant-api...) from console.anthropic.com")
	case strings.HasPrefix(key, "sk-ant-admin"):
		return wrongKind(anthropic.key(), "holds an admin key, which no model answers to",
			"set ANTHROPIC_API_KEY to an API key (sk-ant-api...) from console.anthropic.com")
	case strings.HasPrefix(key, "sk-") && !strings.HasPrefix(key, "sk-ant-"):
		return wrongKind(anthropic.key(), "holds a key of another provider",
			"set ANTHROPIC_API_KEY to a key that begins with sk-ant-, and this one as OPENAI_API_KEY if it is OpenAI's")
	}
	return nil
}

// CheckOpenAIKey refuses a key that OPENAI_API_KEY cannot be. A key for another endpoint
// than OpenAI's own may look like anything that fits into a header.
func CheckOpenAIKey(u Upstream) error {
	key := u.Key.Reveal()
	if err := checkForm(openai.key(), key, "platform.openai.com"); err != nil {
		return err
	}
	switch {
	case key == "" || !isOfficial(u.URL, openai):
		return nil
	case strings.HasPrefix(key, "sk-ant-"):
		return wrongKind(openai.key(), "holds a key of Anthropic's", "set it as ANTHROPIC_API_KEY")
	case strings.HasPrefix(key, "sk-admin-"):
		return wrongKind(openai.key(), "holds an admin key, which no model answers to",
			"set OPENAI_API_KEY to a project key (sk-proj-...) from platform.openai.com")
	case strings.HasPrefix(key, "eyJ"), strings.HasPrefix(key, "sess-"):
		return wrongKind(openai.key(), "holds a token of a ChatGPT login",
			"set OPENAI_API_KEY to a project key (sk-proj-...) from platform.openai.com")
	}
	return nil
}

// checkForm refuses what is no key of anybody's.
func checkForm(name, key, from string) error {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\'' || r == '`' }
	switch {
	case strings.HasPrefix(key, "insx_"):
		return wrongKind(name, "holds a token of insightscli's own", "set "+name+" to a key from "+from)
	case strings.IndexFunc(key, odd) >= 0:
		return wrongKind(name, "holds spaces, quotes or other characters that no key has",
			"set "+name+" to the key alone, without quotes or line ends")
	}
	return nil
}

func wrongKind(name, what, hint string) error {
	return errs.New("llm.CheckKey", errs.Config, hint, "%s %s", name, what)
}

func isOfficial(address string, d dialect) bool {
	if address == "" {
		return true
	}
	u, err := url.Parse(address)
	return err == nil && "https://"+u.Hostname() == d.official()
}
