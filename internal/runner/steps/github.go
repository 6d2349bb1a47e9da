package steps

import (
	"fmt"
	"strconv"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
	"github.com/Insights/insightscli/internal/repo"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

// GitHubToken is a credential with which programs of a sandbox read the run's repositories.
type GitHubToken struct {
	Value   secret.String // empty: there is none any more
	Host    string        // of the GitHub that it is for
	Expires time.Time
}

// addRewrites has the git of a sandbox fetch the run's repositories from the host, whatever
// form of address it is given. What the user sets stays, and comes first.
func addRewrites(env map[string]string, repos []task.Repo) {
	n := 0
	if text, set := env["GIT_CONFIG_COUNT"]; set {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 0 {
			return // git will say so
		}
	}
	for _, u := range repo.Upstreams(repos) {
		key := fmt.Sprintf("%s%s/%s.insteadOf", wire.GitRewrite, u.Repo.Org, u.Repo.Name)
		for _, address := range u.Addresses {
			env[fmt.Sprintf("GIT_CONFIG_KEY_%d", n)], env[fmt.Sprintf("GIT_CONFIG_VALUE_%d", n)] = key, address
			n++
		}
	}
	if n > 0 {
		env["GIT_CONFIG_COUNT"] = strconv.Itoa(n)
	}
}
