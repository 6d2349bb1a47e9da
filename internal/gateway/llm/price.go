package llm

import (
	"math"
	"strconv"
	"strings"

	"github.com/Insights/insightscli/internal/errs"
	"github.com/Insights/insightscli/internal/task"
)

// Price is what a model costs, in US dollars per million tokens.
type Price struct {
	Input, Output, CacheRead, CacheWrite float64

	hourWrite float64 // of a cache entry that is kept for an hour; 0: as CacheWrite

	// A request with a longer prompt costs more, all of it.
	long            int64 // tokens of the prompt; 0: no such bound
	longIn, longOut float64
}

// cost returns what a request costs.
func (p Price) cost(c counts) float64 {
	hour := p.hourWrite
	if hour == 0 {
		hour = p.CacheWrite
	}
	in := float64(c.Input)*p.Input + float64(c.CacheRead)*p.CacheRead +
		float64(c.CacheWrite-c.WriteHour)*p.CacheWrite + float64(c.WriteHour)*hour
	out := float64(c.Output) * p.Output
	if p.long > 0 && c.Input+c.CacheRead+c.CacheWrite > p.long {
		in, out = in*p.longIn, out*p.longOut
	}
	return (in + out) / 1e6
}

// Prices is a price list: the user's own prices over the list that is built in. The zero
// value is that list alone.
type Prices struct {
	own []ownPrice
}

type ownPrice struct {
	model  string
	prefix bool // every model whose name begins so
	price  Price
}

// ParsePrices reads the user's own prices, as in
// "model=in,out[,cache read[,cache write]];other*=in,out": US dollars per million
// tokens. A name stands for its dated versions too, and one that ends in * for every
// model that begins so. What is not said about the cache costs as much as input.
func ParsePrices(list string) (Prices, error) {
	var p Prices
	for _, entry := range strings.Split(list, ";") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		own, ok := parsePrice(entry)
		if !ok {
			return Prices{}, errs.New("llm.ParsePrices", errs.Config,
				"write INSIGHTS_LLM_PRICES='model=in,out[,cache read[,cache write]];...', in US dollars per million tokens",
				"INSIGHTS_LLM_PRICES: cannot read %q", entry)
		}
		p.own = append(p.own, own)
	}
	return p, nil
}

func parsePrice(entry string) (ownPrice, bool) {
	name, list, found := strings.Cut(entry, "=")
	model, prefix := strings.CutSuffix(strings.TrimSpace(name), "*")
	figures := strings.Split(list, ",")
	if !found || model == "" && !prefix || len(figures) < 2 || len(figures) > 4 {
		return ownPrice{}, false
	}
	var v [4]float64
	for i, figure := range figures {
		n, err := strconv.ParseFloat(strings.TrimSpace(figure), 64)
		if err != nil || n < 0 || math.IsInf(n, 0) || math.IsNaN(n) {
			return ownPrice{}, false
		}
		v[i] = n
	}
	for i := len(figures); i < len(v); i++ {
		v[i] = v[0]
	}
	return ownPrice{model: model, prefix: prefix, price: Price{Input: v[0], Output: v[1], CacheRead: v[2], CacheWrite: v[3]}}, true
}

// Of returns the price of a model: the user's own if there is one, else that of the
// list. The longest name that fits counts. A newer model is not its predecessor, though
// its name may begin with the other's: it has no price until somebody gives it one.
func (p Prices) Of(model string) (Price, bool) {
	best, length := Price{}, -1
	for _, own := range p.own {
		if len(own.model) > length && (isVersion(model, own.model) || own.prefix && strings.HasPrefix(model, own.model)) {
			best, length = own.price, len(own.model)
		}
	}
	if length >= 0 {
		return best, true
	}
	for _, l := range listed() {
		if len(l.model) > length && isVersion(model, l.model) {
			best, length = l.price, len(l.model)
		}
	}
	return best, length >= 0
}

// isVersion reports whether model is name or a dated version of it:
// name-20250929, name-2025-08-07, name-latest, name@20250929, name[1m].
func isVersion(model, name string) bool {
	rest, ok := strings.CutPrefix(model, name)
	switch {
	case !ok:
		return false
	case rest == "", rest == "-latest", rest[0] == '@', rest[0] == '[':
		return true
	}
	return rest[0] == '-' && len(rest) >= len("-20250929") && strings.Trim(rest, "-0123456789") == ""
}

// priced fills in what the request costs.
func (p Prices) priced(c counts, models ...string) task.Tokens {
	t := task.Tokens{
		Input: c.Input, Output: c.Output, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite,
		Thought: min(c.Thought, c.Output), Total: c.Input + c.Output + c.CacheRead + c.CacheWrite, Requests: 1,
	}
	for _, model := range models {
		if price, ok := p.Of(model); ok {
			t.CostUSD = price.cost(c)
			return t
		}
	}
	t.Unpriced = 1
	return t
}
