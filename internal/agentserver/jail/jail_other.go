//go:build !linux

package jail

import (
	"errors"

	"github.com/Insights/insightscli/internal/agentserver/proc"
)

// errLinux is what everything here says where there are no namespaces.
var errLinux = errors.New("a sandbox needs Linux")

type walls struct{}

// Init is for Linux only.
func Init() (*Jail, error) { return nil, errLinux }

// Container is for Linux only.
func Container() (*Jail, error) { return nil, errLinux }

// Starter is for Linux only.
func (j *Jail) Starter(*proc.Reaper) proc.Starter { return nil }
