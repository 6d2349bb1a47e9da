package config

import (
	"strings"

	"github.com/Insights/insightscli/internal/errs"
)

// The providers.
const (
	ProviderDocker      = "docker"
	ProviderLocal       = "local"
	ProviderModal       = "modal"
	ProviderModalDocker = "MODAL_DOCKER"
)

// ChooseProvider returns the provider that the settings name, in its canonical
// spelling, or "" where the machine decides: docker if an engine answers, else
// local. A production machine (DEBUG=0, or a CLOUD_DEPLOYMENT) defaults to modal,
// and DEBUG=0 without TEST=1 refuses the providers that are for development.
func (c Config) ChooseProvider() (string, error) {
	name := ""
	for _, known := range []string{ProviderDocker, ProviderLocal, ProviderModal, ProviderModalDocker} {
		if strings.EqualFold(c.Provider, known) {
			name = known
		}
	}
	switch {
	case c.Provider == "" && (!c.Debug || c.CloudDeployment != ""):
		return ProviderModal, nil
	case c.Provider == "":
		return "", nil
	case name == "":
		return "", errs.New("config.ChooseProvider", errs.Config,
			"use docker, local, modal or MODAL_DOCKER", "unknown provider %q", c.Provider)
	case c.Debug || c.Test || name != ProviderDocker && name != ProviderModalDocker:
		return name, nil
	}
	return "", errs.New("config.ChooseProvider", errs.Config,
		"keep DEBUG=1 (or TEST=1), which the docker and MODAL_DOCKER providers require",
		"%s sandbox is for local development only", name)
}
