package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// TasksFlag is the key of the flag without which no task is carried out.
const TasksFlag = "tasks"

// FlagStore keeps the feature flags of teams.
type FlagStore interface {
	Teams(ctx context.Context) ([]int64, error)
	// Enabled reports whether a flag is on; one that is deleted or was never set is off.
	Enabled(ctx context.Context, team int64, key string) (bool, error)
	// Enable turns a flag on for everybody in the team and keeps what else it holds.
	Enable(ctx context.Context, team int64, key string) error
}

// Flag is the step that turns the tasks flag on for every team.
type Flag struct{ Store FlagStore }

// Name implements [Step].
func (Flag) Name() string { return "tasks-flag" }

// Check implements [Step].
func (s Flag) Check(ctx context.Context) (Finding, error) {
	teams, off, err := FlagOff(ctx, s.Store)
	switch {
	case err != nil:
		return Finding{}, err
	case teams == 0:
		return Finding{State: Manual, Text: "there are no teams"}, nil
	case len(off) == 0:
		return Finding{State: Ready, Text: "active for " + teamCount(teams)}, nil
	}
	return Finding{State: Missing, Text: "off for team " + join(off)}, nil
}

// Apply implements [Step].
func (s Flag) Apply(ctx context.Context) (string, error) {
	_, off, err := FlagOff(ctx, s.Store)
	if err != nil {
		return "", err
	}
	var all []error
	for _, team := range off {
		all = append(all, s.Store.Enable(ctx, team, TasksFlag))
	}
	return "turned on for team " + join(off), errors.Join(all...)
}

// FlagOff counts the teams and returns those for whom the tasks flag is off.
func FlagOff(ctx context.Context, store FlagStore) (teams int, off []int64, err error) {
	all, err := store.Teams(ctx)
	if err != nil {
		return 0, nil, err
	}
	for _, team := range all {
		on, err := store.Enabled(ctx, team, TasksFlag)
		if err != nil {
			return 0, nil, err
		}
		if !on {
			off = append(off, team)
		}
	}
	return len(all), off, nil
}

func teamCount(n int) string {
	if n == 1 {
		return "1 team"
	}
	return fmt.Sprintf("%d teams", n)
}

func join(ids []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ", "), "[]")
}

// short is the beginning of a hash, enough for people.
func short(hash string) string { return hash[:min(len(hash), 12)] }
