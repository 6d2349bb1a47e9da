package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/link/wire"
)

// offered is what is read of a new session: what can be chosen in it. Agents have modes
// and models in fields of their own, or among the options, or in both. Lists are read
// entry by entry, so that one of a newer kind does not spoil the others.
type offered struct {
	Session string `json:"sessionId"`
	Modes   struct {
		Current   string            `json:"currentModeId"`
		Available []json.RawMessage `json:"availableModes"`
	} `json:"modes"`
	Models struct {
		Available []json.RawMessage `json:"availableModels"`
	} `json:"models"`
	Options []json.RawMessage `json:"configOptions"`
}

// entry is one of any of the lists.
type entry struct {
	ID       string            `json:"id"`      // of a mode, of an option
	ModelID  string            `json:"modelId"` // of a model
	Value    string            `json:"value"`   // of a value of an option
	Category string            `json:"category"`
	Current  json.RawMessage   `json:"currentValue"`
	Options  []json.RawMessage `json:"options"` // values of an option, or of a group of them
}

func entries(raw []json.RawMessage) []entry {
	var all []entry
	for _, r := range raw {
		var e entry
		if json.Unmarshal(r, &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// The kinds of choice, by the category of an option.
const (
	categoryMode   = "mode"
	categoryModel  = "model"
	categoryEffort = "thought_level"
)

// values are what an option can be set to; they may come in groups.
func (e entry) values() []string {
	var all []string
	for _, v := range entries(e.Options) {
		if v.Value != "" {
			all = append(all, v.Value)
		}
		all = append(all, v.values()...)
	}
	return all
}

// choice is one thing to choose: what can be had, and how it is set.
type choice struct {
	offers  []string
	current string
	method  string
	params  func(session, value string) any
}

// of finds how something is chosen in a session; one without offers cannot be.
func (o offered) of(category string) choice {
	c := choice{}
	switch category {
	case categoryMode:
		c = choice{current: o.Modes.Current, method: sdk.AgentMethodSessionSetMode, params: setMode}
		for _, m := range entries(o.Modes.Available) {
			c.offers = append(c.offers, m.ID)
		}
	case categoryModel:
		c = choice{method: sdk.AgentMethodSessionSetModel, params: setModel}
		for _, m := range entries(o.Models.Available) {
			c.offers = append(c.offers, m.ModelID)
		}
	}
	if len(c.offers) > 0 {
		return c
	}
	for _, opt := range entries(o.Options) {
		if opt.Category == category || opt.Category == "" && opt.ID == category {
			var current string
			_ = json.Unmarshal(opt.Current, &current) // of another type: nothing that we set
			return choice{opt.values(), current, sdk.AgentMethodSessionSetConfigOption, setOption(opt.ID)}
		}
	}
	return choice{}
}

func setMode(session, value string) any {
	return sdk.SetSessionModeRequest{SessionId: sdk.SessionId(session), ModeId: sdk.SessionModeId(value)}
}

func setModel(session, value string) any {
	return map[string]string{"sessionId": session, "modelId": value}
}

func setOption(id string) func(session, value string) any {
	return func(session, value string) any {
		return map[string]string{"sessionId": session, "configId": id, "value": value}
	}
}

// choose sets what the run asks for.
func (d *driver) choose(ctx context.Context, a *agent, session string, o offered) error {
	d.mu.Lock()
	d.offer, d.full = o, false
	d.mu.Unlock()
	if err := d.chooseMode(ctx, a, session, o.of(categoryMode)); err != nil {
		return err
	}
	for _, want := range []struct{ category, name, value string }{
		{categoryModel, "model", d.start.Model}, {categoryEffort, "effort", d.start.Effort},
	} {
		c := o.of(want.category)
		switch {
		case want.value == "":
		case len(c.offers) == 0:
			d.notice(ctx, "warn", fmt.Sprintf("the agent has no choice of %s: %s is ignored", want.name, want.value))
		case !slices.Contains(c.offers, want.value):
			return fmt.Errorf("it has no %s %q (it has %s)", want.name, want.value, strings.Join(c.offers, ", "))
		default:
			if err := a.set(ctx, session, c, want.value); err != nil {
				return fmt.Errorf("%s %s: %w", want.name, want.value, err)
			}
		}
	}
	return nil
}

// fullAccess are the names that agents give to the mode in which they ask for nothing.
func fullAccess() []string {
	return []string{"bypassPermissions", "agent-full-access", "full-access", "yolo"}
}

// chooseMode sets the run's permission mode, or full access. It never leaves an agent in
// a mode "auto", in which claude-agent-acp asks a model about every step.
func (d *driver) chooseMode(ctx context.Context, a *agent, session string, c choice) error {
	mode := d.start.PermissionMode
	if mode == "" {
		for _, full := range append(fullAccess(), "default") {
			if slices.Contains(c.offers, full) && (full != "default" || c.current == "auto") {
				mode = full
				break
			}
		}
	}
	switch {
	case mode == "":
		return nil
	case len(c.offers) == 0:
		return fmt.Errorf("it has no permission modes, and %q is asked for", mode)
	case !slices.Contains(c.offers, mode):
		return fmt.Errorf("it has no permission mode %q (it has %s)", mode, strings.Join(c.offers, ", "))
	}
	if err := a.set(ctx, session, c, mode); err != nil {
		return fmt.Errorf("permission mode %s: %w", mode, err)
	}
	d.mu.Lock()
	d.full = slices.Contains(fullAccess(), mode)
	d.mu.Unlock()
	return nil
}

func (a *agent) set(ctx context.Context, session string, c choice, value string) error {
	if _, err := ask[json.RawMessage](ctx, a, c.method, c.params(session, value)); err != nil {
		return a.explain(err)
	}
	return nil
}

var _ agentserver.Optioner = (*driver)(nil)

// SetOption implements agentserver.Optioner. The ids "mode" and "model" mean what the
// protocol has methods for; every other is that of an option of the agent.
func (d *driver) SetOption(ctx context.Context, o wire.ConfigOption) error {
	d.mu.Lock()
	a, session, offer := d.agent, d.session, d.offer
	d.mu.Unlock()
	if a == nil || a.lost() {
		return errors.New("the agent does not run")
	}
	c := offer.of(o.ConfigID)
	if len(c.offers) == 0 {
		c = choice{method: sdk.AgentMethodSessionSetConfigOption, params: setOption(o.ConfigID)}
	}
	return a.set(ctx, session, c, o.Value)
}
