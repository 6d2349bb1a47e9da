package fakemodel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// call is a call of a tool, in the words of the agent that asked.
type call struct {
	id        string
	namespace string // Responses: of tools of MCP servers
	name      string
	args      json.RawMessage
	custom    string // Responses: the input of a tool that takes text, not args
}

// reply is what the model says, before a dialect writes it.
type reply struct {
	id     string
	model  string
	think  string
	say    string
	call   *call
	refuse bool
	empty  bool
	usage  Usage
}

// answer makes the reply of a step.
func (c *conversation) answer(s *Step) reply {
	r := reply{id: newID(), model: c.model, think: s.Think, say: s.Say, refuse: s.Refuse, empty: s.Empty}
	r.usage = Usage{Input: 10, Output: 5}
	if s.Usage != nil {
		r.usage = *s.Usage
	}
	switch {
	case s.Structured != nil && c.offers("StructuredOutput"):
		r.call = &call{name: "StructuredOutput", args: s.Structured}
	case s.Structured != nil:
		r.say += string(s.Structured)
	case s.Text != nil:
		r.say += *s.Text
	case s.Refuse, s.Empty:
	default:
		r.call = c.toolCall(s)
	}
	if r.call != nil {
		r.call.id = "call_" + newID()
	}
	return r
}

func (c *conversation) offers(name string) bool { return slices.Contains(c.tools, name) }

// offered returns the first of names that the agent offers, or the first.
func (c *conversation) offered(names ...string) string {
	for _, n := range names {
		if c.offers(n) {
			return n
		}
	}
	return names[0]
}

// codeMode is the tool of Codex for models that call its tools from JavaScript.
const codeMode = "functions.exec"

// toolCall turns a step into a call of a tool that this agent has.
func (c *conversation) toolCall(s *Step) *call {
	switch {
	case c.offers(codeMode):
		return c.code(s)
	case s.Bash != "":
		return c.bash(s.Bash)
	case s.Read != "":
		switch name := c.offered("Read", "read", "read_file"); {
		case c.offers(name):
			return &call{name: name, args: paths(name, s.Read, nil)}
		default:
			return c.bash("cat " + quote(s.Read))
		}
	case s.Write != nil:
		return c.write(s.Write)
	case s.Edit != nil:
		return c.edit(s.Edit)
	}
	return c.named(s)
}

func (c *conversation) bash(command string) *call {
	name := c.offered("Bash", "exec_command", "bash", "shell_command", "run_shell_command")
	args := map[string]any{"command": command}
	switch name {
	case "exec_command":
		args = map[string]any{"cmd": command}
	case "Bash", "bash":
		args["description"] = "as the script says"
	}
	return &call{name: name, args: encode(args)}
}

// code writes the program for a step.
func (c *conversation) code(s *Step) *call {
	program := ""
	switch {
	case s.Bash != "":
		program = fmt.Sprintf("const r = await tools.exec_command(%s); text(r.output);",
			encode(map[string]any{"cmd": s.Bash, "yield_time_ms": 30000}))
	case s.Read != "":
		return c.code(&Step{Bash: "cat " + quote(s.Read)})
	case s.Write != nil:
		program = fmt.Sprintf("text(await tools.apply_patch(%s));", encode(writePatch(s.Write)))
	case s.Edit != nil:
		program = fmt.Sprintf("text(await tools.apply_patch(%s));", encode(editPatch(s.Edit)))
	default:
		name := s.Tool
		if s.NS != "" {
			name = s.NS + "__" + s.Tool
		}
		args := s.Args
		if args == nil {
			args = json.RawMessage("{}")
		}
		program = fmt.Sprintf("text(await tools.%s(%s));", name, args)
	}
	space, name, _ := strings.Cut(codeMode, ".")
	return &call{namespace: space, name: name, custom: program}
}

func (c *conversation) write(w *Write) *call {
	name := c.offered("Write", "write", "write_file")
	if c.offers(name) {
		return &call{name: name, args: paths(name, w.Path, map[string]string{"content": w.Content})}
	}
	if c.offers("apply_patch") {
		return patch(writePatch(w))
	}
	return c.bash(fmt.Sprintf("printf %%s %s > %s", quote(w.Content), quote(w.Path)))
}

func (c *conversation) edit(e *Edit) *call {
	switch name := c.offered("Edit", "edit", "replace"); {
	case c.offers(name) && name == "edit":
		return &call{name: name, args: paths(name, e.Path, map[string]string{"oldString": e.Old, "newString": e.New})}
	case c.offers(name):
		return &call{name: name, args: paths(name, e.Path, map[string]string{"old_string": e.Old, "new_string": e.New})}
	case c.offers("apply_patch"):
		return patch(editPatch(e))
	}
	const script = `import sys; p, a, b = sys.argv[1:]; t = open(p).read(); assert a in t; open(p, "w").write(t.replace(a, b, 1))`
	return c.bash(fmt.Sprintf("python3 -c %s %s %s %s", quote(script), quote(e.Path), quote(e.Old), quote(e.New)))
}

// named calls a tool by name; one of an MCP server by the name this agent gives it.
func (c *conversation) named(s *Step) *call {
	args := s.Args
	if args == nil {
		args = json.RawMessage("{}")
	}
	server, tool := strings.TrimPrefix(s.NS, "mcp__"), s.Tool
	if s.NS == "" {
		rest, ok := strings.CutPrefix(s.Tool, "mcp__")
		if ok {
			server, tool, ok = strings.Cut(rest, "__")
		}
		if !ok {
			return &call{name: s.Tool, args: args}
		}
	}
	switch {
	case c.offers("exec_command") || c.offers("shell_command"): // Codex
		return &call{namespace: "mcp__" + server, name: tool, args: args}
	case c.offers("bash"): // opencode
		return &call{name: server + "_" + tool, args: args}
	case c.offers("run_shell_command"): // gemini and its kin
		return &call{name: "mcp_" + server + "_" + tool, args: args}
	}
	return &call{name: "mcp__" + server + "__" + tool, args: args}
}

func patch(body string) *call { return &call{name: "apply_patch", custom: body} }

func writePatch(w *Write) string {
	return "*** Begin Patch\n*** Add File: " + w.Path + "\n" + prefix("+", w.Content) + "*** End Patch\n"
}

func editPatch(e *Edit) string {
	return "*** Begin Patch\n*** Update File: " + e.Path + "\n@@\n" + prefix("-", e.Old) + prefix("+", e.New) + "*** End Patch\n"
}

// paths returns arguments with the path as the tool names it.
func paths(tool, path string, rest map[string]string) json.RawMessage {
	args := map[string]string{}
	for k, v := range rest {
		args[k] = v
	}
	switch tool {
	case "read", "write", "edit":
		args["filePath"] = path
	default:
		args["file_path"] = path
	}
	return encode(args)
}

func prefix(mark, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(mark + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// quote makes s one word of a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// encode is for values that always encode.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`"` + err.Error() + `"`)
	}
	return b
}
