package docker

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/Insights/insightscli/internal/image"
	"github.com/Insights/insightscli/internal/testenv"
)

// realEngine returns a provider on this machine's engine.
func realEngine(t testing.TB, transport Transport) *Provider {
	t.Helper()
	p := New(Options{Host: os.Getenv("DOCKER_HOST"), Transport: transport})
	t.Cleanup(func() { _ = p.Close() })
	err := p.Ping(t.Context())
	testenv.Need(t, "a Docker engine (.ci/docker starts one)", err == nil)
	return p
}

// baseImage returns the reference of the default image, built if need be.
func baseImage(t testing.TB, p *Provider) string {
	t.Helper()
	b := image.Builder{Engine: p.Images(), Lock: filepath.Join(os.TempDir(), "insightscli-test-image.lock")}
	_, err := b.Ensure(t.Context(), image.DefaultBase, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	return image.DefaultBase.Tag()
}

func TestBaseImageIsFreshAfterEnsure(t *testing.T) {
	p := realEngine(t, TransportAuto)
	info, err := p.Images().Inspect(context.Background(), baseImage(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if image.Stale(image.DefaultBase.Tag(), info.Labels) {
		t.Errorf("labels %v after Ensure are stale", info.Labels)
	}
}
