package task

import "slices"

// MaxDenied is how many places a sum of denials holds.
const MaxDenied = 100

// AddDenied adds a denial to a sum of them, in which every place stands once for each
// reason. What would be one place too many is counted in the last, which then stands for
// others.
func AddDenied(all []Denied, d Denied) []Denied {
	if d.Count < 1 {
		d.Count = 1
	}
	same := func(o Denied) bool { return o.Host == d.Host && o.Port == d.Port && o.Reason == d.Reason }
	switch i := slices.IndexFunc(all, same); {
	case i >= 0:
		all[i].Count += d.Count
	case len(all) < MaxDenied-1:
		all = append(all, d)
	case len(all) < MaxDenied:
		all = append(all, Denied{Host: "other places", Count: d.Count, Reason: "more places than are told one by one"})
	default:
		all[len(all)-1].Count += d.Count
	}
	return all
}
