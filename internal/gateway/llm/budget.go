package llm

import (
	"fmt"

	"github.com/Insights/insightscli/internal/task"
)

// Budget is what a run may use. Zero is no bound.
type Budget struct {
	MaxCost   float64 // US dollars
	MaxTokens int64   // of all kinds
}

// Exceeded returns why a run that has used this much may use no more, and "" if it may.
// With a bound on the cost, a request whose cost is not known ends it: it could be any.
func (b Budget) Exceeded(spent task.Tokens) string {
	switch {
	case b.MaxCost > 0 && spent.CostUSD >= b.MaxCost:
		return fmt.Sprintf("the run has used %s of the %s that --max-cost allows", dollars(spent.CostUSD), dollars(b.MaxCost))
	case b.MaxTokens > 0 && spent.Total >= b.MaxTokens:
		return fmt.Sprintf("the run has used %d of the %d tokens that --max-tokens allows", spent.Total, b.MaxTokens)
	case b.MaxCost > 0 && spent.Unpriced > 0:
		return "the run has used a model without a known price, so --max-cost cannot be kept: set INSIGHTS_LLM_PRICES"
	}
	return ""
}

// limited reports whether there is any bound.
func (b Budget) limited() bool { return b.MaxCost > 0 || b.MaxTokens > 0 }

// usedUp returns the reason if it was this request that used the budget up.
func (b Budget) usedUp(total, last task.Tokens) string {
	before := task.Tokens{
		CostUSD: total.CostUSD - last.CostUSD, Total: total.Total - last.Total, Unpriced: total.Unpriced - last.Unpriced,
	}
	if b.Exceeded(before) != "" {
		return ""
	}
	return b.Exceeded(total)
}

func dollars(v float64) string {
	if v < 1 {
		return fmt.Sprintf("$%.4f", v)
	}
	return fmt.Sprintf("$%.2f", v)
}
