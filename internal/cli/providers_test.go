package cli

import (
	"maps"
	"testing"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// Whatever has an image built, the proxies of this machine are known to it.
func TestImagesAreBuiltThroughTheProxy(t *testing.T) {
	c := config.Config{}
	c.Machine.HTTPSProxy, c.Machine.NoProxy = secret.New("http://proxy.test:3128"), "10.0.0.0/8"
	got := newProviders(c, t.TempDir()).builder(t.TempDir(), task.Engine{}).Args
	want := map[string]string{
		"https_proxy": "http://proxy.test:3128", "HTTPS_PROXY": "http://proxy.test:3128",
		"no_proxy": "10.0.0.0/8", "NO_PROXY": "10.0.0.0/8",
	}
	if !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
