package result

import (
	"strings"
	"time"

	"reprise/trace/usage"
)

// Refute takes the counts out of a result that findings show to be wrong, so that no figure
// uses them, and keeps what was claimed. claimed are the counts as the server had them.
func (r *Result) Refute(found usage.Findings, claimed *usage.Counts) {
	defer r.checkEventTokens()
	wrong := found.Contradictions()
	if wrong == 0 {
		return
	}

	keys := make([]string, 0, 1)
	for _, one := range wrong.All() {
		keys = append(keys, one.Key())
	}
	r.Refuted = strings.Join(keys, ",")

	for _, count := range []struct {
		kind    usage.Kind
		count   **int32
		claimed **int64
	}{
		{usage.Input, &r.Input, &r.ClaimedInput},
		{usage.Cached, &r.Cached, &r.ClaimedCached},
		{usage.Output, &r.Output, &r.ClaimedOutput},
	} {
		n, told := claimed.Get(count.kind)
		isMissing := wrong.Has(usage.NoCount) && *count.count == nil
		if !isMissing && !wrong.Refutes(count.kind) {
			continue
		}
		*count.count = nil
		if told {
			*count.claimed = &n
		}
	}
	if r.Output == nil {
		r.OutputFrom, r.EventTokens = "", nil
	}
}

// Contradictions are the findings that took counts out of the result, see [Result.Refute].
func (r *Result) Contradictions() (found usage.Findings) {
	if r.Refuted == "" {
		return 0
	}
	for key := range strings.SplitSeq(r.Refuted, ",") {
		if one, ok := usage.FindingOf(key); ok {
			found = found.With(one)
		}
	}
	return found
}

// recheck holds the counts of a result against each other and against its instants, where its
// client has not held them against the text: a client of an earlier version, or another tool.
func (r *Result) recheck() {
	if r.TextBytes != nil || r.Refuted != "" {
		return
	}
	claim := usage.Claim{PromptTokens: int64(r.WantInput), Events: int64(r.Events), Embedded: r.API == APIEmbeddings}
	var counts usage.Counts
	for _, count := range []struct {
		kind  usage.Kind
		told  *int32
		claim *int64
	}{{usage.Input, r.Input, &claim.Input}, {usage.Cached, r.Cached, &claim.Cached},
		{usage.Output, r.Output, &claim.Output}} {
		if count.told != nil && (count.kind != usage.Output || r.OutputFrom == FromUsage) {
			*count.claim = int64(*count.told)
			counts.Set(count.kind, *count.claim)
		}
	}
	if r.WantOutput != nil {
		claim.Asked = int64(*r.WantOutput)
	}
	if r.SentNS != nil && r.DoneNS != nil {
		claim.Took = time.Duration(max(*r.DoneNS, deref(r.LastTokenNS)) - *r.SentNS)
	}
	r.Refute(claim.Judge(), &counts)
}

// checkEventTokens drops what running counts say of events where it is more than the whole.
func (r *Result) checkEventTokens() {
	if r.Output == nil || len(r.EventTokens) == 0 {
		return
	}
	sum := int64(0)
	for _, n := range r.EventTokens {
		sum += int64(n)
	}
	if sum > int64(*r.Output) {
		r.EventTokens = nil
	}
}

func deref(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
