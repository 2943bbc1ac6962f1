package engine

import "reprise/replay/result"

// Covers is the most that an engine was asked for: of the records that it was fitted to, beyond
// which it extrapolates, or of a run. Tokens of KV count for each request that has them, also
// where several share blocks.
type Covers struct {
	MaxPromptTokens int `yaml:"max_prompt_tokens" json:"max_prompt_tokens"`
	MaxOutputTokens int `yaml:"max_output_tokens" json:"max_output_tokens"`
	MaxInFlight     int `yaml:"max_in_flight" json:"max_in_flight"`
	MaxDecoding     int `yaml:"max_decoding" json:"max_decoding"`
	MaxKVTokens     int `yaml:"max_kv_tokens" json:"max_kv_tokens"`
}

// bounds are the figures, each with what it is.
func (c *Covers) bounds() [5]result.Beyond {
	return [5]result.Beyond{
		{Bound: "max_prompt_tokens", Covers: c.MaxPromptTokens},
		{Bound: "max_output_tokens", Covers: c.MaxOutputTokens},
		{Bound: "max_in_flight", Covers: c.MaxInFlight},
		{Bound: "max_decoding", Covers: c.MaxDecoding},
		{Bound: "max_kv_tokens", Covers: c.MaxKVTokens},
	}
}

// beyondShare is how far above a bound a run may be before it is said: another seed of the same
// load passes it by some percent.
const beyondShare = 0.05

// Beyond are the bounds that a run passed by more than 5 %. A bound of 0 is not known.
func (c *Covers) Beyond(run Covers) (out []result.Beyond) {
	reached := run.bounds()
	for i, b := range c.bounds() {
		b.Reached = reached[i].Covers
		if b.Covers > 0 && float64(b.Reached) > (1+beyondShare)*float64(b.Covers) {
			out = append(out, b)
		}
	}
	return out
}

// join keeps the larger of each figure.
func (c *Covers) join(o Covers) {
	c.MaxPromptTokens, c.MaxOutputTokens = max(c.MaxPromptTokens, o.MaxPromptTokens),
		max(c.MaxOutputTokens, o.MaxOutputTokens)
	c.MaxInFlight, c.MaxDecoding, c.MaxKVTokens = max(c.MaxInFlight, o.MaxInFlight), max(c.MaxDecoding, o.MaxDecoding),
		max(c.MaxKVTokens, o.MaxKVTokens)
}

// Reached is the most that was asked of any engine of the fleet.
func (f *Fleet) Reached() (c Covers) {
	for _, e := range f.engines {
		c.join(e.reached)
	}
	return c
}
