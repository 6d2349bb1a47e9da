package llm

import (
	"math"
	"strings"
	"testing"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/secret"
	"github.com/Insights/insightscli/internal/task"
)

func TestListedPrices(t *testing.T) {
	for model, input := range map[string]float64{
		"claude-opus-5-5": 4, "claude-opus-5-5-20261001": 4, "claude-opus-5": 5, "claude-opus-4-20250514": 15, "claude-opus-4-5-20251101": 5,
		"claude-sonnet-4-5@20250929": 3, "claude-opus-5-5[1m]": 4, "claude-haiku-4-5-latest": 1,
		"gpt-5": 1.25, "gpt-5-2025-08-07": 1.25, "gpt-5.5": 5, "gpt-5-mini": 0.25, "gpt-4o-mini-2024-07-18": 0.15, "o3-2025-04-16": 2,
		// Models that nobody knows yet are not their predecessors.
		"gpt-5.7": -1, "gpt-5-huge": -1, "claude-opus-5-6": -1, "claude-opus-4-9": -1, "claude-opus-50": -1, "o30": -1, "": -1, "gpt": -1,
	} {
		p, ok := Prices{}.Of(model)
		if !ok {
			p.Input = -1
		}
		if p.Input != input {
			t.Errorf("%s: %v, want %v", model, p.Input, input)
		}
	}
	seen := map[string]bool{}
	for _, l := range listed() {
		p := l.price
		if seen[l.model] || p.Input <= 0 || p.Output <= p.Input || p.CacheRead <= 0 || p.CacheRead >= p.Input || p.CacheWrite < p.Input {
			t.Errorf("%+v", l)
		}
		seen[l.model] = true
	}
}

func TestOwnPrices(t *testing.T) {
	p, err := ParsePrices(" qwen3 = 1,2 ; gpt-5.5=1,2,0.5;gpt-5.5-local*=3, 4, 5, 6;local/*=0,0; ")
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]Price{
		"qwen3": {Input: 1, Output: 2, CacheRead: 1, CacheWrite: 1}, "gpt-5.5": {Input: 1, Output: 2, CacheRead: 0.5, CacheWrite: 1},
		"gpt-5.5-2026-04-23": {Input: 1, Output: 2, CacheRead: 0.5, CacheWrite: 1},
		"gpt-5.5-local-7b":   {Input: 3, Output: 4, CacheRead: 5, CacheWrite: 6}, "local/x": {},
	} {
		if got, ok := p.Of(model); !ok || got != want {
			t.Errorf("%s: %+v %t", model, got, ok)
		}
	}
	if got, ok := p.Of("claude-opus-5-5"); !ok || got.Input != 4 {
		t.Errorf("the list is gone: %+v", got)
	}
	if _, ok := p.Of("qwen3-max"); ok {
		t.Error("qwen3-max has the price of qwen3")
	}
	all, err := ParsePrices("*=1,1")
	if _, ok := all.Of("anything"); err != nil || !ok {
		t.Errorf("%v", err)
	}
}

func TestPricesThatCannotBeRead(t *testing.T) {
	for _, list := range []string{"m", "m=", "m=1", "=1,2", "m=1,2,3,4,5", "m=a,b", "m=-1,2", "m=1,NaN", "m=Inf,1", "ok=1,2;bad"} {
		_, err := ParsePrices(list)
		if errs.KindOf(err) != errs.Config || errs.HintOf(err) == "" || !strings.Contains(err.Error(), "INSIGHTS_LLM_PRICES") {
			t.Errorf("%q: %v", list, err)
		}
	}
}

func TestLongPromptsCostMore(t *testing.T) {
	p, _ := Prices{}.Of("gpt-5.4")
	short, long := p.cost(counts{Input: 272_000, Output: 1e6}), p.cost(counts{Input: 272_000, CacheRead: 1e6, Output: 1e6})
	if math.Abs(short-15.68) > 1e-9 || math.Abs(long-(2*0.68+2*0.25+1.5*15)) > 1e-9 {
		t.Errorf("%v, %v", short, long)
	}
}

func TestBudget(t *testing.T) {
	spent := func(cost float64, tokens, unpriced int64) task.Tokens {
		return task.Tokens{CostUSD: cost, Total: tokens, Unpriced: unpriced}
	}
	tests := []struct {
		budget Budget
		spent  task.Tokens
		words  string
	}{
		{Budget{}, spent(1e9, 1e15, 5), ""},
		{Budget{MaxCost: 2}, spent(1.99, 1e15, 0), ""},
		{Budget{MaxCost: 2}, spent(2, 0, 0), "used $2.00 of the $2.00 that --max-cost"},
		{Budget{MaxCost: 2}, spent(0, 0, 1), "INSIGHTS_LLM_PRICES"},
		{Budget{MaxTokens: 10}, spent(5, 9, 1), ""},
		{Budget{MaxTokens: 10}, spent(0, 10, 0), "10 of the 10 tokens that --max-tokens"},
	}
	for _, tt := range tests {
		got := tt.budget.Exceeded(tt.spent)
		if (got == "") != (tt.words == "") || !strings.Contains(got, tt.words) {
			t.Errorf("%+v with %+v: %q", tt.budget, tt.spent, got)
		}
	}
	b := Budget{MaxTokens: 10}
	if b.usedUp(spent(0, 12, 0), spent(0, 5, 0)) == "" || b.usedUp(spent(0, 17, 0), spent(0, 5, 0)) != "" || b.usedUp(spent(0, 9, 0), spent(0, 5, 0)) != "" {
		t.Error("the end is not told exactly once")
	}
}

func TestKeysOfTheWrongKind(t *testing.T) {
	const other = "https://models.example"
	type check func(Upstream) error
	tests := []struct {
		check    check
		url, key string
		words    string // empty: it is taken
	}{
		{CheckAnthropicKey, "", "", ""},
		{CheckAnthropicKey, "", "sk-ant-api03-x", ""},
		{CheckAnthropicKey, "https://api.anthropic.com/", "sk-proj-x", "another provider"},
		{CheckAnthropicKey, other, "sk-or-x", ""},
		{CheckAnthropicKey, "", "sk-or-x", "another provider"},
		{CheckAnthropicKey, "", "sk-ant-oat01-x", "subscription"},
		{CheckAnthropicKey, "", "sk-ant-admin01-x", "admin"},
		{CheckAnthropicKey, other, "insx_x", "insightscli's own"},
		{CheckAnthropicKey, other, "a b", "spaces"},
		{CheckAnthropicKey, "", "\"sk-ant-api03-x\"", "quotes"},
		{CheckAnthropicKey, "", "sk-ant-api03-x\n", "spaces"},
		{CheckOpenAIKey, "", "", ""},
		{CheckOpenAIKey, "", "sk-proj-x", ""},
		{CheckOpenAIKey, "", "sk-x", ""},
		{CheckOpenAIKey, "", "sk-ant-api03-x", "Anthropic"},
		{CheckOpenAIKey, other, "sk-ant-api03-x", ""},
		{CheckOpenAIKey, "", "sk-admin-x", "admin"},
		{CheckOpenAIKey, "", "eyJhbGciOi", "ChatGPT"},
		{CheckOpenAIKey, "", "insx_x", "insightscli's own"},
		{CheckOpenAIKey, other, "kéy", "characters"},
	}
	for _, tt := range tests {
		err := tt.check(Upstream{URL: tt.url, Key: secret.New(tt.key)})
		if (err == nil) != (tt.words == "") {
			t.Errorf("%q at %q: %v", tt.key, tt.url, err)
			continue
		}
		if err == nil {
			continue
		}
		if errs.KindOf(err) != errs.Config || errs.HintOf(err) == "" || !strings.Contains(err.Error(), tt.words) ||
			strings.Contains(err.Error()+errs.HintOf(err), tt.key) && tt.key != "" {
			t.Errorf("%q: %v (%s)", tt.key, err, errs.HintOf(err))
		}
	}
}
