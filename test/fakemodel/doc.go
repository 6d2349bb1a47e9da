// Package fakemodel answers like a model whose prompt says what to do: it serves the
// APIs of the models (Anthropic Messages, OpenAI Responses and Chat Completions) to
// agents that nobody in this project wrote, so that tests drive the real ones.
//
// # Scripts
//
// The prompt carries the script:
//
//	<<script>>[{"bash":"date > d.txt"},{"text":"done"}]<<end>>
//
// The last script in a user's words counts. A step is one reply of the model:
//
//	{"bash":"COMMAND"}                          the agent's own shell tool
//	{"read":"PATH"}                             its way to read a file
//	{"write":{"path":"P","content":"C"}}        its way to write one
//	{"edit":{"path":"P","old":"A","new":"B"}}   its way to change one (read it first)
//	{"tool":"mcp__SERVER__NAME","args":{}}      a tool of an MCP server, named as this agent names it
//	{"ns":"mcp__SERVER","tool":"NAME"}          the same
//	{"tool":"Glob","args":{}}                   any tool by its own name
//	{"structured":VALUE}                        the agent's tool for structured replies, or VALUE as text
//	{"text":"WORDS"}                            words that end the turn
//	{"refuse":true} {"empty":true}              an end of turn without an answer
//
// Each may also have "say" (words before it), "think" (thoughts before it), "usage"
// ({"input":1,"output":2,"cache_read":3,"cache_write":4}), "slow":"200ms" (a pause
// between the parts of the stream) and "hold":"NAME" (after half of the stream, wait
// for [Model.Release] of that name). {"slow":"200ms"} and {"hold":"NAME"} alone apply
// to the step behind them.
//
// A failure takes the place of the step behind it:
//
//	{"status":500}           an error of HTTP; also "message" and "retry_after" (seconds)
//	{"cut":true}             the connection ends within the reply of the step behind it
//	{"stream_error":"WORDS"} an error event within that reply
//	{"hang":true}            no answer until the client leaves
//
// It happens at every request that comes to it, or "times":N times and then no more.
//
// # Which step
//
// The model keeps no state of a conversation: the step is found by counting what
// came after the script, namely results of tools, and words of the user without a
// script that begin another turn (a host's request to mend a reply, an agent's own
// urging). So a script goes on over later turns, retries and resumed sessions. Words
// that come while tools are at work are a steer and count for nothing, as does what
// an agent wraps in a tag of its own. Behind its last step the reply is "(the script
// has ended)"; without one it is "ok (no script)".
//
// The one state is how often a failure with "times" has happened. It is counted by
// the text of the script, so two conversations at one Model that must not share it
// need different texts: a step {"id":"ANYTHING"} does nothing else.
package fakemodel
