//go:build !linux && !darwin

package owner

import "time"

// bootID is unknown on this platform: the host name tells machines apart.
func bootID() string { return "" }

// machineID is unknown on this platform: the host name tells machines apart.
func machineID() string { return "" }

// processStart is when it is asked first, soon after the start.
func processStart() time.Time { return time.Now() }
