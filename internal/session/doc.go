// Package session runs scripted conversations with an agent: a prompt whose reply decides
// about the next ones. It neither makes sandboxes nor talks to an agent, that is done by
// the [Conversation] it is given.
//
// # Scripts
//
// A script is YAML, read by go.yaml.in/yaml/v3, which also tells the line of a mistake:
//
//	title: Cursed names          # of the task
//	agent: claude                # these five are options of `run`,
//	repo: org/repo               # repo may be a list
//	branch: main
//	scopes: read_only
//	model: some-model
//	options: {network: link}     # and so are these: any flag of `run` that takes a value
//	turns:
//	  - label: discovery
//	    prompt: Find up to 10 items to investigate.
//	    schema: {type: object, required: [items], properties: {items: {type: array}}}
//	  - label: research
//	    each: discovery.items    # a turn for every element of that list
//	    max: 10                  # of it at most so many; 20 if not said
//	    as: research_${item.name}
//	    prompt: Research ${item.name} (${index}) in detail.
//	    schema: finding.json     # a file beside the script
//	  - label: priority
//	    when: research.0.severity == high
//	    prompt: "Rank these: ${research}"
//
// ${…} is the only thing that is replaced in a prompt, a label and nothing else is
// computed: it is a path that begins with the label of an earlier turn, or with item or
// index within each, and goes on with names and numbers between dots. A text stands as it
// is, everything else as JSON. $${ is a plain ${. What a path leads to must be there: a
// missing name fails the session. when is a path, !path, path == word or path != word;
// alone a path is true unless it is missing, false, null, 0 or empty. Of what is missing
// only !path holds.
//
// The replies of a turn with each are a list under its label; each of them also has a
// label of its own, as or the label with a number.
//
// Everything that can be known beforehand is checked by [Load]: unknown fields, schemas,
// paths. Every failure, also cancellation, ends the conversation as failed; an end that
// cannot be told is a warning.
package session
