package llm

// listing is one line of the built-in price list.
type listing struct {
	model string
	price Price
}

// longOpenAI is the prompt above which OpenAI's newer models charge double for what goes
// in and half as much again for what comes out.
const longOpenAI = 272_000

// listed returns the public list prices of the standard tier, as of 2026-11. Models that
// are not in it have no price: see setting INSIGHTS_LLM_PRICES.
func listed() []listing {
	return []listing{
		{"claude-fable-5-1", claude(10, 50, 0.25)},
		{"claude-mythos-5-1", claude(10, 50, 0.25)},
		{"claude-fable-5", claude(10, 50, 1)},
		{"claude-mythos-5", claude(10, 50, 1)},
		{"claude-opus-5-5", claude(4, 20, 0.20)},
		{"claude-opus-5", claude(5, 25, 0.50)},
		{"claude-opus-4-8", claude(5, 25, 0.50)},
		{"claude-opus-4-7", claude(5, 25, 0.50)},
		{"claude-opus-4-6", claude(5, 25, 0.50)},
		{"claude-opus-4-5", claude(5, 25, 0.50)},
		{"claude-opus-4-1", claude(15, 75, 1.50)},
		{"claude-opus-4-0", claude(15, 75, 1.50)},
		{"claude-opus-4", claude(15, 75, 1.50)},
		{"claude-sonnet-5-5", claude(2, 10, 0.10)},
		{"claude-sonnet-5", claude(2, 10, 0.20)},
		{"claude-sonnet-4-6", claude(3, 15, 0.30)},
		{"claude-sonnet-4-5", claude(3, 15, 0.30)},
		{"claude-sonnet-4-0", claude(3, 15, 0.30)},
		{"claude-sonnet-4", claude(3, 15, 0.30)},
		{"claude-haiku-5-5", long(claude(0.10, 0.50, 0.01), 100_000, 5, 5)},
		{"claude-haiku-4-5", claude(1, 5, 0.10)},

		{"gpt-6.1-sol", gptLong(2, 10, 0.10)},
		{"gpt-6.1-terra", gptLong(1, 5, 0.05)},
		{"gpt-6-astra", gptLong(10, 50, 1)},
		{"gpt-6-sol", gptLong(2, 10, 0.20)},
		{"gpt-6-luna", gptLong(0.10, 0.50, 0.01)},
		{"gpt-5.6-sol", gptLong(4, 20, 0.40)},
		{"gpt-5.6-terra", gptLong(2, 12, 0.20)},
		{"gpt-5.6-luna", gptLong(0.20, 1.20, 0.02)},
		{"gpt-5.6", gptLong(4, 20, 0.40)},
		{"gpt-5.5", long(gpt(5, 30, 0.50), longOpenAI, 2, 1.5)},
		{"gpt-5.4", long(gpt(2.50, 15, 0.25), longOpenAI, 2, 1.5)},
		{"gpt-5.4-mini", gpt(0.75, 4.50, 0.075)},
		{"gpt-5.4-nano", gpt(0.20, 1.25, 0.02)},
		{"gpt-5.3-codex", gpt(1.75, 14, 0.175)},
		{"gpt-5.2", gpt(1.75, 14, 0.175)},
		{"gpt-5.2-codex", gpt(1.75, 14, 0.175)},
		{"gpt-5.1", gpt(1.25, 10, 0.125)},
		{"gpt-5.1-codex", gpt(1.25, 10, 0.125)},
		{"gpt-5.1-codex-max", gpt(1.25, 10, 0.125)},
		{"gpt-5.1-codex-mini", gpt(0.25, 2, 0.025)},
		{"gpt-5", gpt(1.25, 10, 0.125)},
		{"gpt-5-codex", gpt(1.25, 10, 0.125)},
		{"gpt-5-mini", gpt(0.25, 2, 0.025)},
		{"gpt-5-nano", gpt(0.05, 0.40, 0.005)},
		{"gpt-4.1", gpt(2, 8, 0.50)},
		{"gpt-4.1-mini", gpt(0.40, 1.60, 0.10)},
		{"gpt-4.1-nano", gpt(0.10, 0.40, 0.025)},
		{"gpt-4o", gpt(2.50, 10, 1.25)},
		{"gpt-4o-mini", gpt(0.15, 0.60, 0.075)},
		{"o3", gpt(2, 8, 0.50)},
		{"o4-mini", gpt(1.10, 4.40, 0.275)},
	}
}

// claude is a price of Anthropic's: writing to the cache costs a quarter more than
// input, for an hour twice as much.
func claude(in, out, cached float64) Price {
	return Price{Input: in, Output: out, CacheRead: cached, CacheWrite: 1.25 * in, hourWrite: 2 * in}
}

// gpt is a price of OpenAI's that does not charge for writing to the cache.
func gpt(in, out, cached float64) Price {
	return Price{Input: in, Output: out, CacheRead: cached, CacheWrite: in}
}

// gptLong is a price of OpenAI's since GPT-5.6.
func gptLong(in, out, cached float64) Price {
	p := gpt(in, out, cached)
	p.CacheWrite = 1.25 * in
	return long(p, longOpenAI, 2, 1.5)
}

func long(p Price, above int64, in, out float64) Price {
	p.long, p.longIn, p.longOut = above, in, out
	return p
}
