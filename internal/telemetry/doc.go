// Package telemetry tells others about runs: it makes OTLP logs and spans of a run's
// events ([New]: agent telemetry, the log mirror) and sends them to a collector over HTTP.
//
// Agent telemetry is about the life of a run and never about its content. What leaves this
// package is made of words that stand in this package, of numbers, and of identifiers whose
// form is checked; a text of a prompt, a tool, an error or a title has no way into it. The
// log mirror is the opposite: a copy of the run's log, masked like the log, for a place
// that its operator names. Traces of insightscli itself are a third thing, about the steps
// of a run, for who wants to see them beside those of other programs.
//
// Nothing here slows a run or breaks it. Events are taken on the caller's goroutine without
// waiting for anything, queues are bounded, what finds no room is counted, and the end of a
// run waits for the last words [Grace] at most. What was not delivered until then is
// left to a later process ([Deliver]): everything that is sent follows from the run's own
// log, with ids that are made of sequence numbers, and a small file says how far each
// receiver has got. So does the process that takes over the run of one that died.
//
// Messages are written as OTLP in JSON, which every receiver has to read, with nothing but
// the standard library: the SDK and its exporters would make the command's binary 8 MB
// larger and its start 2,000 allocations dearer, hide what they drop, and know neither
// spans that another process has begun nor an end that does not wait.
package telemetry
