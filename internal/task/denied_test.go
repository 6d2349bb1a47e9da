package task

import (
	"fmt"
	"testing"
)

func TestAddDenied(t *testing.T) {
	var all []Denied
	for range 3 {
		all = AddDenied(all, Denied{Host: "a.example", Port: 443, Count: 2, Reason: "no rule allows it"})
	}
	all = AddDenied(all, Denied{Host: "a.example", Port: 80, Reason: "no rule allows it"})
	if len(all) != 2 || all[0].Count != 6 || all[1].Count != 1 {
		t.Errorf("%+v", all)
	}
	for i := range 10 * MaxDenied {
		all = AddDenied(all, Denied{Host: fmt.Sprintf("%d.example", i), Count: 1})
	}
	sum := 0
	for _, d := range all {
		sum += d.Count
	}
	if len(all) != MaxDenied || sum != 7+10*MaxDenied {
		t.Errorf("%d places, %d denials", len(all), sum)
	}
}
