package profile

import "reprise/trace"

// A Classifier is the rule that gives a request its reuse category. The
// categories, in their order of precedence:
//
//   - cold: no block of the prompt is known;
//   - global: the hit is no deeper than the prefix that more than half of the
//     requests with blocks carry;
//   - duplicate: every block of the prompt is known;
//   - continuation: the hit ends at the last full block of the request that
//     last touched that block, so this is a next turn;
//   - branch: the hit ends inside an earlier prompt, as after a template, a
//     document or few-shot examples.
//
// A request that is cold or global begins a session, where sessions are
// inferred; any other continues that of the request that last touched its
// deepest hit block.
//
// What was known and touched is the caller's to find out: an [Annotator] does
// so in memory.
type Classifier struct {
	GlobalBlocks int // depth of the global prefix, in blocks
}

// Classify takes how many leading blocks of a prompt are known, how many it has,
// and whether the last known one is the last full block of the request that
// touched it last; without a hit that is of no account.
func (c Classifier) Classify(hit, blocks int, end bool) (category string, continues bool) {
	switch {
	case hit == 0:
		return trace.Cold, false
	case hit <= c.GlobalBlocks:
		return trace.Global, false
	case hit == blocks:
		return trace.Duplicate, true
	case end:
		return trace.Continuation, true
	}
	return trace.Branch, true
}
