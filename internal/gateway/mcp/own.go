package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/Insights/insightscli/internal/task"
)

// Bounds of what the agent may say, in bytes.
const (
	maxMessage = 4 << 10
	maxStep    = 64
	maxSummary = 64 << 10
	// maxReports is how often one run may say what it is doing: every time is an event
	// that is kept for good.
	maxReports = 5000
)

// ownTools are the tools of every run.
func (h *Hub) ownTools() []Tool {
	return []Tool{{
		Name:        "report_progress",
		Description: "Tell the people who watch this run what you are doing, in one short sentence. Call it when a new phase of the work begins.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["message"],"properties":{
			"message":{"type":"string","description":"One short sentence."},
			"step":{"type":"string","description":"A short name of the phase, such as tests."}}}`),
		Call: h.reportProgress,
	}, {
		Name: "upload_artifact",
		Description: "Keep a file after this sandbox is gone, such as a report or an image. Give path for a file in the sandbox (at most 50 MiB), " +
			"or content for a text or base64 data (at most 4 MiB). Do not upload code changes: they are kept anyway.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["name"],"properties":{
			"name":{"type":"string","description":"File name, without directories."},
			"path":{"type":"string","description":"Path of a file in the sandbox."},
			"content":{"type":"string","description":"The content itself, instead of path."},
			"encoding":{"type":"string","enum":["text","base64"],"description":"Of content; text if not given."},
			"media_type":{"type":"string","description":"Such as text/markdown."}}}`),
		Call: h.uploadArtifact,
	}, {
		Name:        "finish",
		Description: "Say that the task is over. Call it once, as the last thing: completed if the task was done, failed if it could not be.",
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["status"],"properties":{
			"status":{"type":"string","enum":["completed","failed"]},
			"summary":{"type":"string","description":"What was done, or why it could not be."}}}`),
		Call: h.finish,
	}}
}

func (h *Hub) reportProgress(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct {
		Message string `json:"message"`
		Step    string `json:"step"`
	}
	if err := decode(args, &in); err != nil {
		return "", err
	}
	message, step := strings.TrimSpace(in.Message), strings.TrimSpace(in.Step)
	if message == "" {
		return "", errors.New("message is empty; say in one sentence what you are doing")
	}
	if h.reports.Add(1) > maxReports {
		return "", errors.New("this run has reported as often as it may; go on without")
	}
	if err := h.cfg.Do.Progress(ctx, cut(step, maxStep), cut(message, maxMessage)); err != nil {
		return "", fmt.Errorf("not recorded: %w", err)
	}
	return "Recorded.", nil
}

func (h *Hub) finish(ctx context.Context, args json.RawMessage) (string, error) {
	var in struct {
		Status  string `json:"status"`
		Summary string `json:"summary"`
	}
	if err := decode(args, &in); err != nil {
		return "", err
	}
	if in.Status != "completed" && in.Status != "failed" {
		return "", fmt.Errorf("status is %q; it must be completed or failed", cut(in.Status, maxStep))
	}
	if err := h.cfg.Do.Finish(ctx, in.Status, cut(strings.TrimSpace(in.Summary), maxSummary)); err != nil {
		return "", fmt.Errorf("not recorded: %w", err)
	}
	return "Recorded. End your turn now.", nil
}

// cut shortens s to at most n bytes, at the border of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	for n -= len(mark); n > 0 && !utf8.RuneStart(s[n]); {
		n--
	}
	return s[:n] + mark
}

// workDir is where relative paths of the agent begin.
func (h *Hub) workDir() string {
	if h.cfg.WorkDir == "" {
		return task.WorkspaceDir
	}
	return h.cfg.WorkDir
}
