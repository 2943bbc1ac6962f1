package synth

import (
	"errors"

	"reprise/trace"
)

// modelSchema names the row layout of model files, under reprise.schema, and oldSchema
// that of earlier versions, whose rows this one cannot use.
const (
	modelSchema = "model/2"
	oldSchema   = "model/1"
)

// errOldModel is the error of [ReadModel] for a file of an earlier version.
var errOldModel = errors.New("it is a model of an earlier version (" + oldSchema +
	"), which this one does not read: fit the trace again with reprise synth fit")

// ErrNotModel is the error of [ReadModel] for a file that is no model at all.
var ErrNotModel = errors.New("it has no reprise.schema = " + modelSchema + ", so it is not a model")

// Keys of the metadata that only models have, and those that they inherit from
// the trace.
const (
	keySchema   = "reprise.schema"
	keyKind     = "reprise.model_kind"
	keyKSwap    = "reprise.k_swap"
	keyJitter   = "reprise.swap_jitter"
	keySwapped  = "reprise.swapped"
	keySampled  = "reprise.sampled_trees"
	keyPrivacy  = "reprise.privacy_note"
	keyRequests = "reprise.fitted_requests"
	keySpan     = "reprise.span_ns"
	keyBlock    = "reprise.block_size"

	kindPlaces = "places"
	kindCells  = "cells"
)

// privacyNote goes with every model, so that nobody takes it for more.
const privacyNote = "Not differentially private. No ids, no dates and no text of the trace. With k_swap of 2 or " +
	"more the size of each request, its output and the gaps between requests are exchanged among at least so many " +
	"similar requests, each for itself, and jittered, and bursts move among twice as many requests, or five times " +
	"as many as they have. Sessions stay whole: their numbers of turns, what each turn builds on, and their user " +
	"numbers. Each part still is one that occurred. Which requests share a beginning stays as it is, and so does " +
	"how long that is, where at least so many sessions do. The arrivals keep the counts of parts of the time that " +
	"hold five times k_swap on average. With k_swap 1 the places are the trace's own."

// cellsNote goes with a model of histograms.
const cellsNote = "Made of the histograms of a profile, without noise: independent lengths by category, and as " +
	"private as the trace that was profiled."

// inherited lists the metadata that a model takes over from the trace: each key with
// its place in m.
func inherited(m *trace.Meta) []struct {
	key   string
	value *string
} {
	return []struct {
		key   string
		value *string
	}{
		{"reprise.tokenizer", &m.Tokenizer}, {"reprise.template", &m.Template},
		{"reprise.source_format", &m.SourceFormat},
		{"reprise.time_unit", &m.TimeUnit}, {"reprise.timing", &m.Timing}, {"reprise.tier", &m.Tier},
		{"reprise.unit", &m.Unit},
		{"reprise.capture_ids", &m.Captures}, {"reprise.card", &m.Card}, {"reprise.card_sha256", &m.CardHash},
		{"reprise.digest", &m.Digest},
	}
}
