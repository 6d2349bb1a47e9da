package agentserver

import (
	"maps"
	"time"

	"github.com/Insights/insightscli/internal/link/wire"
)

// bootContract is the version of wire.BootReport.
const bootContract = 1

// slowStart is when a session that is not there yet is one whose log is worth a look.
const slowStart = 5 * time.Second

// Health tells how the server is.
func (s *Server) Health() wire.Health {
	last, _ := s.journal.state()
	h := s.session.health()
	h.Status, h.LastSeq, h.BootMs = "ok", last, s.upMs
	h.Boot.BootID, h.Boot.HTTPReadyMs = s.bootID, s.upMs
	h.Boot.TotalMs = ms(s.session.settled().Sub(s.began))
	h.Capabilities = []string{"events", "exec", "archive", "http"}
	if len(s.boot.Ports) > 0 {
		h.Capabilities = append(h.Capabilities, "services")
	}
	return h
}

// hostHealth is what the host is told beside: the end of the log of a start that is in
// trouble.
func (s *Server) hostHealth() wire.Health {
	h := s.Health()
	if s.logTail == nil || h.HasSession || h.Readiness != failed && !s.session.isSlow() {
		return h
	}
	for _, line := range s.logTail() {
		h.LogTail = append(h.LogTail, s.mask().MaskString(line))
	}
	return h
}

// boot is how far the start of a session is. Its session guards it.
type boot struct {
	phase   string
	since   time.Time // when phase began
	phases  map[string]float64
	settled time.Time // when the session was ready or had failed
}

// enter ends one phase and begins the next; "" is none.
func (b *boot) enter(phase string, now time.Time) {
	if b.phases == nil {
		b.phases = map[string]float64{}
	}
	if b.phase != "" && !b.since.IsZero() {
		b.phases[b.phase] += ms(now.Sub(b.since))
	}
	b.phase, b.since = phase, now
}

// Phase tells what the start of the session is doing, one of the phases of package wire
// or the driver's own. It may be called in Driver.Start only.
func (h *Host) Phase(name string) {
	if h.phase != nil {
		h.phase(name)
	}
}

func (s *session) enterPhase(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.began.IsZero() && s.readiness == starting && name != "" {
		s.boot.enter(name, time.Now())
	}
}

func (s *session) health() wire.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := wire.Health{
		HasSession: s.readiness == ready, Readiness: s.readiness, SessionInitMs: s.initMs,
		Phase: s.boot.phase, Active: s.active,
		Boot: wire.BootReport{
			ContractVersion: bootContract, State: s.readiness, CurrentPhase: s.boot.phase, PhasesMs: map[string]float64{},
		},
	}
	maps.Copy(h.Boot.PhasesMs, s.boot.phases)
	if s.err != nil {
		h.FailureCode, h.Error = s.boot.phase+"_failed", s.err.Error()
		h.Boot.FailedPhase, h.Boot.CurrentPhase = s.boot.phase, ""
	}
	return h
}

// settled is when the start was over, or now.
func (s *session) settled() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.boot.settled.IsZero() {
		return time.Now()
	}
	return s.boot.settled
}

// isSlow reports whether the session should have been there by now.
func (s *session) isSlow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readiness == starting && !s.began.IsZero() && time.Since(s.began) > slowStart
}
