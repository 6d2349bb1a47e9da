package config

import (
	"slices"
	"strconv"
	"strings"
)

// wider reports whether text a of the setting allows an agent more than text b does. A
// file that may have come with a repository does not widen what the user's own
// config.yaml says. Texts that are no value are not compared: they are refused later.
func (s Setting) wider(a, b string) bool {
	switch s.Key {
	case "network":
		return WiderNetwork(a, b)
	case "scopes":
		return b != "full" && a != b && a != "read_only"
	case "max-cost", "max-tokens":
		x, errX := strconv.ParseFloat(strings.TrimSpace(a), 64)
		y, errY := strconv.ParseFloat(strings.TrimSpace(b), 64)
		return errX == nil && errY == nil && y > 0 && (x == 0 || x > y)
	}
	return false
}

// WiderNetwork reports whether the network level a allows more than b.
func WiderNetwork(a, b string) bool {
	order := []string{"none", "custom", "trusted", "link", "full"} // of which each allows more
	x, y := slices.Index(order, a), slices.Index(order, b)
	return x >= 0 && y >= 0 && x > y
}

// winner is the layer that decides about the setting, nil if it is in none. Over is the
// layer that would have, had it not asked for more than the user allows.
func (s Setting) winner(layers []layer) (found, over *layer) {
	for i := range layers {
		l := &layers[i]
		e, ok := l.got[s.Name]
		switch {
		case !ok:
		case found == nil:
			found = l
		case found.project && !l.project && s.wider(found.got[s.Name].text, e.text):
			return l, found
		}
	}
	return found, nil
}
