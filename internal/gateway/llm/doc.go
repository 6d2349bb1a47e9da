// Package llm is the gateway between agents and the providers of models. An agent
// holds a token of its run and nothing else; the gateway checks the token, puts the
// host's key in its place, passes the request on and the answer back as it comes, and
// keeps account of tokens and cost. It speaks Anthropic's Messages and OpenAI's
// Responses and Chat Completions, over a link's streams (a run is known) and over TCP
// (the token names the run).
//
// It stores nothing: tokens, routes and accounts are functions of its [Config]. It
// keeps no content either: what it remembers of a request is in [Request].
//
// # Keys
//
// The credentials of the agent are taken out of every request, whatever header they
// came in; the key of the host goes only into the header of the provider, and is taken
// out of what an upstream answers to a request that it refused.
//
// # Accounts
//
// What a request used is read from the answer on its way, in bounded memory: a JSON
// text of any size is followed piece by piece and only the counts are kept. The account
// is written before the end of the answer is passed on, so an agent that asks one
// question at a time is never ahead of its account; only the last event waits for that.
// For a stream of Chat Completions that does not say stream_options, the gateway asks
// for include_usage, and the agent sees the last chunk that this brings.
//
// Where an answer ends before it says what it used (the agent hangs up, the connection
// breaks), what was seen is accounted: the counts so far, and for those still missing an
// estimate of one token per four bytes. An answer that says nothing at all is
// accounted the same way.
//
// Costs are those of [Prices]: list prices of the standard tier. Discounts, service
// tiers, fast modes and fees of the provider's own tools are not in them.
//
// # Budget
//
// A budget is checked before each request that a model answers. Requests that are in
// flight when it is used up are finished: the overshoot is bounded by what those cost.
// They are few, because those of a run with a budget wait for each other. A request for a
// dearer tier than the listed one is refused under a bound on the cost.
package llm
