package ghapp

import (
	"maps"
	"slices"
	"strings"
)

// differences compares what was asked for.
func (v *verifier) differences(a *App) []Difference {
	var all []Difference
	if v.Slug != "" && v.Slug != a.Slug {
		all = append(all, Difference{"slug", a.Slug, v.Slug})
	}
	// GitHub does not tell names apart by case.
	if v.Owner != "" && !strings.EqualFold(v.Owner, a.Owner) {
		all = append(all, Difference{"owner", a.Owner, v.Owner})
	}
	for _, name := range slices.Sorted(maps.Keys(v.Permissions)) {
		if have, want := a.Permissions[name], v.Permissions[name]; level(have) < level(want) {
			all = append(all, Difference{name, have, want})
		}
	}
	return all
}

// level orders what a permission allows.
func level(permission string) int {
	return slices.Index([]string{"", "read", "write", "admin"}, permission)
}
