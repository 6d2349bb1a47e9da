// Package journal is the memory of runs. [Store] keeps them in state.db: what was
// asked, where each step stands, what people said meanwhile, how it ended. [Log] is
// the one event log of a run, a file of JSON lines that only its owner appends to;
// [Store.ReadLog] and [Store.Tail] read it from any process. Nothing else records a
// run.
//
// Invariants:
//   - a method that returned nil has put what it says on the disk ([Log.Append]
//     excepted, which [Log.Sync] completes);
//   - a run has one owner at a time, changed by compare-and-set ([Store.Claim]);
//   - the terminal state, the result and the erasure of the run's secrets are one
//     transaction ([Store.Finish]);
//   - a log only ever grows by whole lines. A power cut or a kill may shorten it to
//     an earlier line, never tear it: what is torn is cut when the log is opened.
package journal
