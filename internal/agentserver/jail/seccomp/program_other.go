//go:build !amd64 && !arm64

package seccomp

// Program returns the filter for this architecture, or "" where there is none.
func Program() string { return "" }
