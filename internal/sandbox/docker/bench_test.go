package docker

import (
	"context"
	"os/exec"
	"testing"

	"github.com/Insights/insightscli/internal/sandbox"
)

// BenchmarkRoundTrip is the life of one sandbox: create, start, link, handshake,
// `true`, destroy, by a provider that meets the engine for the first time, as in
// one command. BenchmarkDockerRun beside it is the same by the docker command.
func BenchmarkRoundTrip(b *testing.B) {
	for _, transport := range []Transport{TransportSocket, TransportExec} {
		for _, network := range []sandbox.Network{networkLink, networkFull} {
			b.Run(string(transport)+"/"+string(network), func(b *testing.B) {
				p := realEngine(b, transport)
				image := baseImage(b, p)
				for b.Loop() {
					b.StopTimer()
					r := newRequest(b, image, network)
					b.StartTimer()
					own := New(p.engine.opts)
					if err := roundTrip(context.Background(), own, r); err != nil {
						b.Fatal(err)
					}
					_ = own.Close()
				}
			})
		}
	}
}

// BenchmarkDockerRun is `docker run --rm` on the same networks.
func BenchmarkDockerRun(b *testing.B) {
	image := baseImage(b, realEngine(b, TransportAuto))
	for _, network := range []string{"none", bridgeName} {
		b.Run(network, func(b *testing.B) {
			for b.Loop() {
				if out, err := exec.Command("docker", "run", "--rm", "--network", network, image, "true").CombinedOutput(); err != nil {
					b.Fatal(string(out))
				}
			}
		})
	}
}
