package cli

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/Insights/insightscli/internal/config"
	"github.com/Insights/insightscli/internal/platform"
	"github.com/Insights/insightscli/internal/runner"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
	"github.com/Insights/insightscli/internal/telemetry"
)

// flagTelemetry is the flag of teams whose runs may be told about.
const flagTelemetry = "tasks-agent-run-otel-telemetry"

// The names under which the tokens of telemetry are sealed.
const (
	secretTelemetry = "insightscli.otel.logs"
	secretMirror    = "insightscli.otel.mirror"
	secretOwn       = "insightscli.otel.own"
)

// telemetryDir is where it is kept how far receivers have got, in the state directory.
const telemetryDir = "telemetry"

// freezeTelemetry decides what is told to others about the run. On a developer's machine
// the settings alone do, elsewhere the team's flag as it is now.
func (o *runOptions) freezeTelemetry(ctx context.Context, p *plan) error {
	t := p.config.Tell
	var out task.Telemetry
	if t.LogsURL != "" && !t.LogsToken.Empty() {
		out.LogsURL, out.TracesURL = t.LogsURL, t.TracesURL
	}
	if out.Mirror = slices.Contains(t.MirrorOrigins, p.spec.OriginProduct); out.Mirror && !t.MirrorToken.Empty() {
		out.MirrorURL = t.MirrorURL
	}
	p.withoutForeign(&out)
	if out == (task.Telemetry{}) {
		return nil
	}
	out.Enabled = p.config.Debug
	if !out.Enabled {
		s, err := o.app.openState(ctx, p.config)
		if err != nil {
			return err
		}
		flag, err := platform.NewFlags(s.db.DB).Get(ctx, p.spec.Team, flagTelemetry)
		if err != nil {
			return err
		}
		out.Enabled = flag.Enabled
	}
	if !out.Enabled {
		return nil
	}
	p.spec.Telemetry = out
	if out.LogsURL != "" {
		p.secrets[secretTelemetry] = t.LogsToken
	}
	if out.MirrorURL != "" {
		p.secrets[secretMirror] = t.MirrorToken
	}
	return nil
}

// freezeOwnTraces decides whether insightscli tells what it does itself, and where: as the
// environment of this process says, whichever process carries the run out.
func (o *runOptions) freezeOwnTraces(_ context.Context, p *plan) error {
	place, headers, err := ownTraces(p.config.Tell.Own)
	if err != nil {
		p.notices = append(p.notices, "no traces of insightscli itself: the endpoint of OTEL_EXPORTER_OTLP_* is "+err.Error())
		return nil
	}
	parent, traced := telemetry.ParentOf(p.config.Tell.Own.Parent)
	if place == "" || !traced {
		return nil
	}
	t := &p.spec.Telemetry
	t.OwnURL, t.OwnService, t.TraceParent = place, p.config.Tell.Own.Service, parent
	if !headers.Empty() {
		p.secrets[secretOwn] = headers
	}
	return nil
}

// ownTraces is where traces of insightscli itself go, empty for nowhere, and with what.
func ownTraces(o config.Own) (place string, headers secret.String, err error) {
	if o.Disabled {
		return "", headers, nil
	}
	if headers = o.TracesHeaders; headers.Empty() {
		headers = o.Headers
	}
	place, err = telemetry.TracesAddress(o.TracesURL, o.Endpoint)
	return place, headers, err
}

// withoutForeign leaves out places that a file of the project names, where the token is
// the user's own: it is not for them.
func (p *plan) withoutForeign(t *task.Telemetry) {
	foreign := func(address, token string) bool {
		v, ok := p.config.ByProject(address)
		_, theirs := p.config.ByProject(token)
		if !ok || theirs || v.Text == "" {
			return false
		}
		p.notices = append(p.notices, v.Source+": "+address+" is not used, because "+token+" is your own")
		return true
	}
	if t.LogsURL != "" && foreign("SANDBOX_AGENT_OTEL_LOGS_URL", "SANDBOX_AGENT_OTEL_LOGS_TOKEN") {
		t.LogsURL, t.TracesURL = "", ""
	}
	if t.TracesURL != "" && foreign("SANDBOX_AGENT_OTEL_TRACES_URL", "SANDBOX_AGENT_OTEL_LOGS_TOKEN") {
		t.TracesURL = ""
	}
	if t.MirrorURL != "" && foreign("TASK_RUN_LOGS_MIRROR_OTLP_URL", "TASK_RUN_LOGS_MIRROR_OTLP_TOKEN") {
		t.MirrorURL = ""
	}
}

// toldInProject tells of places that a file of the project has named for what is told
// about runs.
func toldInProject(c config.Config) []string {
	var notices []string
	for _, place := range []struct{ name, what string }{
		{"SANDBOX_AGENT_OTEL_LOGS_URL", "sends what runs do, without their content, to "},
		{"SANDBOX_AGENT_OTEL_TRACES_URL", "sends traces of runs, without their content, to "},
		{"TASK_RUN_LOGS_MIRROR_OTLP_URL", "sends the logs of runs to "},
	} {
		if v, ok := c.ByProject(place.name); ok && v.Text != "" && !isOurs(v.Text) {
			notices = append(notices, v.Source+": "+place.name+" "+place.what+v.Text)
		}
	}
	return notices
}

// watch makes what tells others about a run that this process carries out; see
// runner.Config.Watch.
func (v *services) watch(ctx context.Context, spec task.Spec, values map[string]secret.String, notify func(level, message string)) runner.Watcher {
	r, err := telemetry.New(ctx, telemetry.Options{
		Spec: spec, LogsToken: values[secretTelemetry], MirrorToken: values[secretMirror], OwnHeaders: values[secretOwn],
		Dir: filepath.Join(v.dir, telemetryDir), Client: v.teller, Lines: v.mirrorTo, Grace: v.grace, Notify: notify,
	})
	if err != nil {
		notify("warn", "nothing is told to others about this run: "+err.Error())
	}
	if r == nil {
		return nil
	}
	return r
}

// tellLeft delivers what earlier processes could not tell of runs that are over, with the
// settings as they are now: a run's own secrets are erased at its end.
func (v *services) tellLeft(ctx context.Context) {
	telemetry.Deliver(ctx, telemetry.Later{
		Dir: filepath.Join(v.dir, telemetryDir),
		Options: func(ctx context.Context, run task.ID) (o telemetry.Options, ok bool) {
			rec, err := v.store.Run(ctx, run)
			if err != nil || !rec.State.Terminal() {
				return o, false
			}
			o = telemetry.Options{Spec: rec.Spec, Dir: filepath.Join(v.dir, telemetryDir), Client: v.teller}
			t, now := rec.Spec.Telemetry, v.config.Tell
			if t.LogsURL == now.LogsURL && t.TracesURL == now.TracesURL {
				o.LogsToken = now.LogsToken
			}
			if t.MirrorURL == now.MirrorURL {
				o.MirrorToken = now.MirrorToken
			}
			place, headers, err := ownTraces(now.Own)
			if o.OwnHeaders = headers; err != nil || t.OwnURL != place {
				o.Spec.Telemetry.OwnURL = "" // its headers are not known any more
			}
			return o, true
		},
		Read: func(ctx context.Context, spec task.Spec, f func(task.Event)) error {
			rec, err := v.store.Run(ctx, spec.Run)
			if err != nil {
				return err
			}
			return v.store.ReadLog(ctx, rec, 0, func(_ []byte, ev task.Event) error {
				f(ev)
				return nil
			})
		},
	})
}
