package codex

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Insights/insightscli/internal/agentcli"
	"github.com/Insights/insightscli/internal/agentserver"
	"github.com/Insights/insightscli/internal/agentserver/proc"
	"github.com/Insights/insightscli/internal/errs"
)

// install is what a user does who has no Codex.
const install = "npm install -g @openai/codex"

// unheard are notifications that say nothing to us, and may be many.
var unheard = []string{
	"account/rateLimits/updated", "item/commandExecution/outputDelta", "item/fileChange/outputDelta",
	"item/fileChange/patchUpdated", "thread/readState/changed", "thread/status/changed", "turn/diff/updated",
}

// connect returns the running program with the thread in it, and starts it where there
// is none. Only Start and Prompt call it.
func (d *driver) connect(ctx context.Context) (*conn, error) {
	d.mu.Lock()
	c := d.conn
	d.mu.Unlock()
	if c != nil {
		select {
		case <-c.dead:
			d.end(c) // what is left of it
		default:
			return c, nil
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("codex was not ready within %s", startTime))
	defer cancel()
	c, err := d.launch(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.ready(ctx, c); err != nil {
		d.end(c)
		return nil, err
	}
	return c, nil
}

// launch starts the program.
func (d *driver) launch(ctx context.Context) (*conn, error) {
	args, err := arguments(d.start, d.host.Env)
	if err != nil {
		return nil, err
	}
	if err := d.home(ctx); err != nil {
		return nil, err
	}
	program := d.host.Program(Name, d.start.PreferMounted)
	pipe, err := d.host.Pipe(ctx, append([]string{program}, args...), d.start.Dir, d.host.Env)
	switch {
	case errors.Is(err, proc.ErrNotFound) && program == Name:
		return nil, fmt.Errorf("the sandbox has no codex: install it in the image, or on this machine (%s)", install)
	case err != nil:
		return nil, fmt.Errorf("start codex: %w", err)
	}
	d.servers.reset()
	c := newConn(ctx, pipe, d, d.grace)
	d.mu.Lock()
	d.conn = c
	over := d.closed
	d.mu.Unlock()
	if over {
		d.end(c)
		return nil, errors.New("the session is over")
	}
	return c, nil
}

// home makes the directory that CODEX_HOME names, which Codex wants to be there. The
// one that it has without that, it makes itself.
func (d *driver) home(ctx context.Context) error {
	dir := value(d.host.Env, "CODEX_HOME")
	if dir == "" {
		return nil
	}
	child, err := d.host.Starter.Start(ctx, proc.Spec{Argv: []string{"mkdir", "-p", dir}, Dir: d.start.Dir, Env: d.host.Env})
	if err != nil {
		return fmt.Errorf("make CODEX_HOME: %w", err)
	}
	if exit := child.Exit(); exit.Code != 0 {
		return fmt.Errorf("make CODEX_HOME: mkdir -p %s ended with exit code %d", dir, exit.Code)
	}
	return nil
}

// ready introduces us and opens the thread.
func (d *driver) ready(ctx context.Context, c *conn) error {
	var hello struct {
		UserAgent string `json:"userAgent"`
	}
	err := c.call(ctx, "initialize", map[string]any{
		"clientInfo": map[string]string{"name": "insightscli", "version": "1"},
		// The experimental part has plan mode, and the end of commands that go on.
		"capabilities": map[string]any{"experimentalApi": true, "optOutNotificationMethods": unheard},
	}, &hello)
	if err != nil {
		return err
	}
	version := versionOf(hello.UserAgent)
	if err := agentcli.CheckVersion(Name, version); err != nil {
		return fmt.Errorf("%w: %s", err, errs.HintOf(err))
	}
	if err := c.send(ctx, message{Method: "initialized"}); err != nil {
		return err
	}
	return d.open(ctx, c, version)
}

// versionOf reads the version in "insightscli/0.171.0 (Debian ...".
func versionOf(userAgent string) string {
	_, rest, _ := strings.Cut(userAgent, "/")
	version, _, _ := strings.Cut(rest, " ")
	return version
}

// open opens the thread: the one there was, after the program had ended within a
// session.
func (d *driver) open(ctx context.Context, c *conn, version string) error {
	var reply struct {
		Thread struct {
			ID string `json:"id"`
		} `json:"thread"`
		Model string `json:"model"`
	}
	d.mu.Lock()
	old, kept, s := d.thread, d.kept, d.settings
	d.mu.Unlock()
	params := map[string]any{"cwd": d.start.Dir, "approvalPolicy": s.mode.policy(), "sandbox": "danger-full-access"}
	if s.model != "" {
		params["model"] = s.model
	}
	err := errors.New("no thread")
	if kept {
		params["threadId"], params["excludeTurns"] = old, true
		if err = c.call(ctx, "thread/resume", params, &reply); err != nil && ctx.Err() == nil {
			d.notice(ctx, "codex has lost the conversation and begins a new one: "+err.Error())
		}
		delete(params, "threadId")
		delete(params, "excludeTurns")
	}
	if err != nil {
		if err := c.call(ctx, "thread/start", params, &reply); err != nil {
			return err
		}
	}
	d.mu.Lock()
	d.thread, d.settings.chosen = reply.Thread.ID, reply.Model
	if reply.Thread.ID != old {
		d.kept, d.planned = false, false
	}
	d.mu.Unlock()
	if reply.Thread.ID == old {
		return nil
	}
	return d.host.Event(ctx, "_insights/sdk_session", map[string]string{
		"sessionId": reply.Thread.ID, "adapter": Name, "version": version,
	})
}

// notice tells people of something, the first time it happens.
func (d *driver) notice(ctx context.Context, text string) {
	d.mu.Lock()
	known := d.warned[text]
	if d.warned == nil {
		d.warned = map[string]bool{}
	}
	if len(d.warned) < 1000 { // of a program that says ever new things, the later ones repeat
		d.warned[text] = true
	}
	d.mu.Unlock()
	if known {
		return
	}
	d.tell(ctx, "warn", text)
}

// tell puts a line for people into the journal.
func (d *driver) tell(ctx context.Context, level, text string) {
	const limit = 2 << 10
	if text = oneLine(text); len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	d.put(d.host.Notice(ctx, level, text))
}

// put is for an entry of the journal that could not be made: nobody waits for it.
func (d *driver) put(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		d.host.Log.Warn("codex: entry left out", "err", err)
	}
}

var _ peer = (*driver)(nil)

var _ agentserver.Driver = (*driver)(nil)
