// Package reply decides what came of a prompt: it follows the turns of an agent in the
// events of a run ([Turns]), finds the reply in what the agent said ([Extract]), checks
// it against a JSON Schema ([Schema]) and says whether it is good, bad or to be asked
// for again ([Judge]).
//
// Everything here is pure: no clock, no network, no file, no goroutine. A runner that
// takes a run over feeds the recorded events to a new Turns and stands where the last
// one stood.
//
// # The rules
//
// A turn that ended without a word is asked for again, once, and so is a reply that does
// not fit its schema: at most two more turns for one prompt. A refusal is no answer, and
// nothing of it is kept. An error, a cancelled turn and one that ran out of time fail at
// once. A value that fits only after others did not, and only because it says nothing, is
// handed on, but marked as degraded.
//
// # Schemas
//
// github.com/santhosh-tekuri/jsonschema/v6 does the checking; only this package imports
// it, and none of its types leave. It compiles the schemas of all drafts whenever a program
// that holds it starts, which is the price of numbers that are exact, schemas that are
// checked themselves and reasons that can be told (docs/performance.md has what others
// lack). Drafts 4 to 2020-12 are told apart by $schema; without one it is 2020-12. A $ref
// may lead anywhere within the schema, also back to where it is, as long as each time
// around goes one step down into the value. What lies elsewhere is refused with its
// address: nothing is fetched and no file is read. `format` is checked in every draft;
// unknown formats are free. Patterns are those of Go (RE2), which have no look-around and
// no back-references.
//
// The library can neither be interrupted nor does it know bounds, so everything is
// bounded before it begins: sizes, nesting, the magnitude of numbers (it computes
// 4E31322574 digit by digit), and the work that a value and a schema make together, which
// is counted first. Numbers are never rounded, and a value is handed on byte by byte as it
// was said. A name that occurs twice in one object is refused: which of the two counts
// would depend on who reads it.
package reply
