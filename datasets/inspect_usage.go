package datasets

import (
	"slices"
	"strings"

	"reprise/datasets/internal/row"
	tokenusage "reprise/trace/usage"
)

// A namedCount is what a field counts of a request, as far as its name tells.
type namedCount struct {
	kind  tokenusage.Kind
	is    bool   // it is a count of tokens
	known bool   // by the names of providers, of which usage has a table
	in    string // the object whose usage it is part of; "" for the record
	path  string // within that object
}

// countKinds are the kinds that a name may tell.
var countKinds = []tokenusage.Kind{tokenusage.Input, tokenusage.Cached, tokenusage.Written, tokenusage.Output,
	tokenusage.Reasoning, tokenusage.Thoughts, tokenusage.Total}

// noCountWords are of names that count something else than the tokens of one request: Cohere's billed
// units leave its template out, and results have sums and means.
var noCountWords = wordsOf("cost price usd cents time ms latency audio image billed totals mean avg average " +
	"median sum std p50 p90 p95 p99")

// countOfName tells what a field counts: by the longest end of its path that providers name so, else by
// the words of its name. A count of input that was written to a cache is told by the words around: Cursor has
// "Input (w/ Cache Write)" and "Input (w/o Cache Write)".
func (i *Inspection) countOfName(c candidate) (n namedCount) {
	if !c.is(wholeType) || share(c.whole, noCountWords) || strings.Contains(c.field.Path, row.ListMembers) {
		return n
	}
	column := slices.Contains(i.columns, c.field.Path)
	for rest, at := c.field.Path, 0; ; {
		var counts tokenusage.Counts
		if share(words(rest), countWords) && counts.Take([]byte(rest), 1) {
			kind := slices.IndexFunc(countKinds, counts.Has)
			return namedCount{countKinds[max(kind, 0)], kind >= 0, kind >= 0,
				strings.TrimSuffix(c.field.Path[:at], "."), rest}
		}
		_, after, below := strings.Cut(rest, ".")
		if n.path = rest; column || !below {
			break
		}
		at, rest = at+len(rest)-len(after), after
	}
	n.in = strings.TrimSuffix(strings.TrimSuffix(c.field.Path, n.path), ".")
	n.kind, n.is = kindOfWords(c.words)
	return n
}

// kindOfWords tells what a name counts by its words.
func kindOfWords(w []string) (kind tokenusage.Kind, ok bool) {
	counts, cache := share(w, countWords), share(w, wordsOf("cache cached"))
	without := share(w, wordsOf("without non not uncached miss misses")) ||
		strings.Contains(strings.Join(w, " "), "w o cache")
	switch {
	case share(w, wordsOf("reasoning thinking thoughts thought")):
		return tokenusage.Reasoning, counts
	case cache && !without && share(w, wordsOf("write written creation created")):
		return tokenusage.Written, true
	case cache && !without && share(w, wordsOf("read reads hit hits cached")):
		return tokenusage.Cached, true
	case share(w, wordsOf("total")) && counts:
		return tokenusage.Total, true
	case share(w, answerWords) && counts:
		return tokenusage.Output, true
	case share(w, promptWords) && (counts || cache || without), without && counts:
		return tokenusage.Input, true
	}
	return 0, false
}

// partsOf are what may stand beside a count.
var partsOf = map[string][]tokenusage.Kind{
	"input_tokens":  {tokenusage.Input, tokenusage.Written, tokenusage.Cached},
	"output_tokens": {tokenusage.Output, tokenusage.Reasoning, tokenusage.Thoughts},
}

// proposeSum proposes the sum of the counts that a prompt or an output is split into, where the cached tokens
// or the reasoning stand beside the others. It reports whether it did.
func (i *Inspection) proposeSum(target string, all []candidate, taken map[string]bool) bool {
	kinds := partsOf[target]
	for _, first := range all { // in the order of the fields
		if !first.count.is || first.count.kind != kinds[0] || taken[first.field.Path] {
			continue
		}
		of := map[tokenusage.Kind][]candidate{} // those of the same usage
		for _, c := range all {
			if c.count.is && c.count.in == first.count.in {
				of[c.count.kind] = append(of[c.count.kind], c)
			}
		}
		var paths []string
		for _, kind := range kinds {
			for _, part := range of[kind] {
				paths = append(paths, part.field.Path)
			}
		}
		if len(of[kinds[0]]) != 1 || len(paths) == 1 || len(of[tokenusage.Cached]) > 1 || !standsBeside(of, kinds) ||
			strings.Contains(strings.Join(paths, ""), "+") {
			continue
		}
		taken[first.field.Path] = true
		i.Flags = append(i.Flags, "--map", target+"="+strings.Join(paths, "+"))
		return true
	}
	return false
}

// standsBeside reports whether the parts of some counts stand beside their whole, the first of the kinds: a part
// is more than it, the total of all says so, or a name, as Anthropic's do.
func standsBeside(of map[tokenusage.Kind][]candidate, kinds []tokenusage.Kind) bool {
	whole := of[kinds[0]][0]
	for _, kind := range kinds[1:] {
		for _, part := range of[kind] {
			if part.field.stats.max > whole.field.stats.max {
				return true
			}
		}
	}
	var counts tokenusage.Counts // the sums of all records add up as those of one do
	for kind, fields := range of {
		sum := 0.0
		for _, c := range fields {
			sum += c.field.stats.sum
		}
		counts.Set(kind, int64(sum))
	}
	tokens, found, err := counts.Settle(tokenusage.Relayed)
	if err != nil {
		return false
	}
	if kinds[0] == tokenusage.Output {
		return tokens.Output != nil && int64(*tokens.Output) > int64(whole.field.stats.sum)
	}
	named := func(c candidate) bool {
		return c.count.path == "cache_read_input_tokens" || c.count.path == "cache_creation_input_tokens"
	}
	return found.Has(tokenusage.CacheAdded) || found.Has(tokenusage.CacheTaken) &&
		(whole.count.path == "input_tokens" &&
			slices.ContainsFunc(slices.Concat(of[tokenusage.Cached], of[tokenusage.Written]), named) ||
			share(whole.words, wordsOf("uncached without non miss")) ||
			strings.Contains(strings.Join(whole.words, " "), "w o cache"))
}

// countsRequests are names of fields that count the requests of which a row is the sum.
const countsRequests = "requests num_requests n_requests request_count requests_count num_model_requests " +
	"successful_requests total_requests completed_requests completed num_prompts"

// periods are names of the times of sums.
const periods = "month week quarter year period bucket monat woche quartal jahr zeitraum"

// sums says why the rows are no requests but sums of several, as bills, dashboards and the summaries of
// benchmarks have them; empty where nothing shows it.
func sums(all []candidate, timed bool) string {
	for _, c := range all {
		switch {
		case c.is(wholeType) && c.named(countsRequests) && c.field.stats.max > 1:
			return "its rows are sums of several requests, which " + c.field.Path + " counts"
		case c.is(dateType) && (c.named(periods) || c.field.stats.midnights == c.field.stats.n && c.field.stats.n > 1) &&
			!slices.ContainsFunc(all, func(o candidate) bool { return o.fitsTime() > 0 && o.field != c.field }):
			return "its only time, " + c.field.Path + ", is the begin of a day or of a longer period, as in reports of sums"
		case !timed && c.field.stats.days > 0 && c.field.stats.days == c.field.stats.n && share(c.words, beginWords):
			return "its only date, " + c.field.Path + ", is a day without a time, as in reports of sums by day"
		}
	}
	return ""
}
