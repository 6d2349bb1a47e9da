package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Environment is one entry of INSIGHTSCLI_ENVIRONMENTS: a sandbox environment that a
// repository brings in its insights.yaml. What it names takes effect where somebody asks
// for it by name, and no other rule does.
type Environment struct {
	Network        string            `json:"network"` // full, trusted or custom
	Allow          []string          `json:"allow,omitempty"`
	IncludeDefault bool              `json:"include-default-domains,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	// Secrets are names: the values are those that the environment of the caller has.
	Secrets []string `json:"secrets,omitempty"`
	Image   string   `json:"image,omitempty"`
	Repos   []string `json:"repos,omitempty"`
}

// parseEnvironments reads a JSON object from name to environment.
func parseEnvironments(text string) (map[string]Environment, error) {
	all, err := parseMapping[Environment](text, "environment", "network, allow, include-default-domains, env, secrets, image and repos")
	if err != nil {
		return nil, err
	}
	for name, e := range all {
		if !environmentName(name) {
			return nil, fmt.Errorf("%q is no name for an environment: letters, digits, '.', '_' and '-', at most 64", name)
		}
		if e.Network == "" {
			return nil, fmt.Errorf("environment %q: it needs a network: full, trusted or custom", name)
		}
		for _, v := range slices.Concat(slices.Collect(maps.Keys(e.Env)), e.Secrets) {
			if err := CheckVar(v); err != nil {
				return nil, fmt.Errorf("environment %q: %w", name, err)
			}
		}
	}
	return all, nil
}

// environmentName keeps names out that mean something else to a shell or a terminal.
func environmentName(name string) bool {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+"._-") == "" && strings.Contains(letters, name[:1])
}
