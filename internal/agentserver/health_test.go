package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/link/wire"
)

// booting is an agent that takes its time to start.
type booting struct {
	talker
	host *Host
	fail error
}

func (d *booting) Start(context.Context, wire.Start) error {
	d.host.Phase(wire.PhaseInitialize)
	pass(2 * time.Second)
	d.host.Phase(wire.PhaseDependencies)
	pass(6 * time.Second)
	d.host.Phase("") // is none
	return d.fail
}

// boots runs test with a server whose session is starting.
func boots(t *testing.T, fail error, test func(t *testing.T, s *Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{
			Boot: wire.Boot{Env: map[string]string{"PW": "s3cr3t-canary"}, Secrets: []string{"PW"}}, Starter: &proc.Plain{},
			Drivers: map[string]NewDriver{"booting": func(h *Host) Driver {
				return &booting{host: h, fail: fail, talker: talker{cancelled: make(chan struct{}, 1)}}
			}},
			LogTail: func() []string { return []string{"level=ERROR msg=x", "the password is s3cr3t-canary"} },
		})
		s.life, s.kill = context.WithCancel(t.Context())
		if b := s.Health().Boot; b.State != starting || b.CurrentPhase != wire.PhaseWaiting || b.ContractVersion != 1 || len(b.BootID) < 8 {
			t.Errorf("%+v", b)
		}
		pass(time.Second)
		_, err := s.call(t.Context(), wire.MethodStart, json.RawMessage(`{"agent":"booting"}`), false)
		must(t, err)
		test(t, s)
		s.session.close(t.Context())
		s.session.running.Wait()
		s.kill()
	})
}

func TestHealthTellsThePhases(t *testing.T) {
	boots(t, nil, func(t *testing.T, s *Server) {
		h := s.hostHealth()
		if h.Phase != wire.PhaseInitialize || h.Boot.CurrentPhase != wire.PhaseInitialize || h.HasSession || len(h.LogTail) != 0 {
			t.Errorf("%+v", h)
		}
		if _, err := s.call(t.Context(), wire.MethodStart, json.RawMessage(`{"agent":"booting"}`), false); err == nil {
			t.Error("a second session was started beside one that starts")
		}
		pass(5 * time.Second)
		if h = s.hostHealth(); h.Phase != wire.PhaseDependencies || h.Boot.TotalMs != 7000 || len(h.LogTail) != 2 {
			t.Errorf("%+v", h)
		}
		pass(5 * time.Second)
		h = s.hostHealth()
		b := h.Boot
		if !h.HasSession || h.Phase != "" || b.State != ready || b.CurrentPhase != "" || b.FailedPhase != "" || b.TotalMs != 9000 || len(h.LogTail) != 0 {
			t.Errorf("%+v", h)
		}
		want := map[string]float64{wire.PhaseWaiting: 1000, wire.PhaseSession: 0, wire.PhaseInitialize: 2000, wire.PhaseDependencies: 6000}
		if len(b.PhasesMs) != len(want) {
			t.Errorf("%v", b.PhasesMs)
		}
		for phase, ms := range want {
			if b.PhasesMs[phase] != ms {
				t.Errorf("%s: %v ms", phase, b.PhasesMs[phase])
			}
		}
		s.session.host.Phase("late")
		if h := s.Health(); h.Phase != "" {
			t.Errorf("%+v", h)
		}
	})
}

func TestHealthOfAFailedStart(t *testing.T) {
	boots(t, errors.New("no such model"), func(t *testing.T, s *Server) {
		pass(time.Hour)
		h := s.hostHealth()
		if h.Readiness != failed || h.FailureCode != "session_dependencies_failed" || h.Error != "no such model" {
			t.Errorf("%+v", h)
		}
		b := h.Boot
		if b.State != failed || b.FailedPhase != wire.PhaseDependencies || b.CurrentPhase != "" || b.TotalMs != 9000 || b.PhasesMs[wire.PhaseDependencies] != 6000 {
			t.Errorf("%+v", b)
		}
		if len(h.LogTail) != 2 || strings.Contains(h.LogTail[1], "canary") || h.LogTail[0] != "level=ERROR msg=x" {
			t.Errorf("%q", h.LogTail)
		}
		if public := s.Health(); public.LogTail != nil {
			t.Errorf("whoever asks is told %q", public.LogTail)
		}
	})
}

// TestHealthIsShapedAsItsClientsKnowIt.
func TestHealthIsShapedAsItsClientsKnowIt(t *testing.T) {
	s := New(Config{Starter: &proc.Plain{}, Boot: wire.Boot{Ports: map[string]int{wire.ServiceLLM: 1}}})
	b, err := json.Marshal(s.Health())
	must(t, err)
	for _, field := range []string{
		`"status":"ok"`, `"hasSession":false`, `"readiness":"starting"`, `"bootMs":`, `"capabilities":["events","exec","archive","http","services"]`,
		`"boot":{"contractVersion":1,"bootId":"`, `"state":"starting","currentPhase":"waiting_for_start","totalMs":`, `"httpReadyMs":`, `"phasesMs":{}`,
	} {
		if !strings.Contains(string(b), field) {
			t.Errorf("%s is missing in %s", field, b)
		}
	}
}
