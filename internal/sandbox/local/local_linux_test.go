package local

import "testing"

func TestUnprivileged(t *testing.T) { asUser(t, "^TestSandbox|^TestRecord") }
