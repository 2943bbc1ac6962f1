package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/result"
	"reprise/replay/scrape"
	"reprise/trace"
	"reprise/trace/doc"
)

// Servers is what the servers said about themselves during the run, from their
// metrics. Several engines, replicas and GPUs are taken together as each field
// says; apart they are in run.server. What no server gave is null.
type Servers struct {
	FromS float64 `json:"from_s"` // what follows is of this time of the run
	ToS   float64 `json:"to_s"`

	Running *Level `json:"running"`      // requests in the batch, of all engines together
	Waiting *Level `json:"waiting"`      // requests in the queue, of all together
	KVUsage *Level `json:"kv_cache_use"` // share of the KV cache in use, mean of the engines

	QueueTime *Stat `json:"queue_time"` // by the servers' histograms, of all engines together

	PrefixHits    *float64 `json:"prefix_hit_tokens"`
	PrefixQueries *float64 `json:"prefix_query_tokens"`
	PrefixRatio   *float64 `json:"prefix_hit_ratio"` // hits ÷ queries

	Preemptions   *float64 `json:"preemptions"`
	PromptTokens  *float64 `json:"prompt_tokens"`
	Generated     *float64 `json:"generated_tokens"`
	GeneratedPerS *float64 `json:"generated_tokens_per_s"`
	Restarts      int      `json:"counter_resets"` // counters that fell: a server started anew
	GPUUse        *Level   `json:"gpu_utilisation"`
	GPUPowerW     *Level   `json:"gpu_power_w"` // of all GPUs together
	GPUMemoryMiB  *Level   `json:"gpu_memory_mib"`

	// of all GPUs together, from their counters of energy, else power × time
	EnergyJ *float64 `json:"gpu_energy_j"`
	// energy ÷ generated tokens, of the answers where no server counts them
	JoulesPerToken *float64 `json:"joules_per_output_token"`
	TokensPerWatt  *float64 `json:"output_tokens_per_s_per_watt"` // the reciprocal

	Speculation *Speculation `json:"speculation"` // null: the servers do not decode speculatively, or do not say so
}

// A Level is a gauge over time.
type Level struct {
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"` // the largest value that was scraped

	Scrapes int64 `json:"scrapes"` // values that it is of, of the series that has the fewest
}

// peakScrapes are the fewest scrapes whose largest value is called a peak: a level that was looked at
// a few times was higher between them.
const peakScrapes = 5

// Peak is the largest value; null where there are fewer than [peakScrapes].
func (l *Level) Peak() *float64 {
	if l == nil || l.Scrapes < peakScrapes {
		return nil
	}
	return &l.Max
}

// Speculation says how speculative decoding fared.
type Speculation struct {
	Steps          *float64  `json:"steps"` // drafts that were verified; null where the server gives means only
	DraftTokens    *float64  `json:"draft_tokens"`
	AcceptedTokens *float64  `json:"accepted_tokens"`
	Acceptance     *float64  `json:"acceptance_rate"`      // accepted ÷ drafted
	Length         *float64  `json:"mean_accepted_length"` // tokens of a step, with the one that the model itself adds
	ByPosition     []float64 `json:"acceptance_by_position,omitempty"`
}

// How the series of several engines become one.
type fold uint8

const (
	foldSum  fold = iota
	foldMean      // of those that have a value
)

// A role is what a metric means, under any engine's name for it. Where an engine gives it
// in two metrics that add up, a plus stands between their names. Of the names that a page
// has, the first counts.
type role struct {
	names []string
	fold  fold
	scale float64 // 0 is 1
	// busy says that a zero means nothing was done, and is left out.
	busy bool
}

// Names that vLLM, SGLang, llama.cpp, Dynamo's frontend, TensorRT-LLM and NVIDIA's DCGM
// exporter give, newer ones first. A client's sample of a counter ends in _total, whatever
// its engine calls it. llama.cpp's prompt tokens are without the cached ones, and those of
// all others with them. At Dynamo's frontend a request counts as running from its arrival
// on, and as waiting until its first token.
var roles = map[string]role{
	"running": {names: []string{"vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing",
		"dynamo_frontend_inflight_requests", "trtllm_num_requests_running"}},
	"waiting": {names: []string{"vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred",
		"dynamo_frontend_queued_requests", "trtllm_num_requests_waiting"}},
	"kv": {names: []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage",
		"llamacpp:kv_cache_usage_ratio", "trtllm_kv_cache_utilization"}, fold: foldMean},
	"hits": {names: []string{"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total",
		"sglang:cached_tokens_total",
		"llamacpp:prompt_tokens_cached_total", "dynamo_frontend_cached_tokens_sum",
		"trtllm_prompt_cached_tokens_total"}},
	"queries": {names: []string{"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total",
		"sglang:prompt_tokens_total",
		"llamacpp:prompt_tokens_total+llamacpp:prompt_tokens_cached_total", "dynamo_frontend_input_sequence_tokens_sum",
		"trtllm_prompt_tokens_total"}},
	"preempt": {names: []string{"vllm:num_preemptions_total", "sglang:num_retracted_requests_total"}},
	"prompt": {names: []string{"vllm:prompt_tokens_total", "sglang:prompt_tokens_total",
		"llamacpp:prompt_tokens_total+llamacpp:prompt_tokens_cached_total",
		"dynamo_frontend_input_sequence_tokens_sum", "trtllm_prompt_tokens_total"}},
	"generate": {names: []string{"vllm:generation_tokens_total", "sglang:generation_tokens_total",
		"llamacpp:tokens_predicted_total",
		"dynamo_frontend_output_tokens_total", "dynamo_frontend_output_sequence_tokens_sum",
		"trtllm_generation_tokens_total"}},
	"gpu":    {names: []string{"DCGM_FI_DEV_GPU_UTIL"}, fold: foldMean, scale: 0.01},
	"power":  {names: []string{"DCGM_FI_DEV_POWER_USAGE"}},
	"energy": {names: []string{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"}, scale: 1e-3}, // mJ
	"memory": {names: []string{"DCGM_FI_DEV_FB_USED"}},

	"drafts": {names: []string{"vllm:spec_decode_num_drafts_total", "llamacpp:spec_decode_num_drafts_total"}},
	"drafted": {names: []string{"vllm:spec_decode_num_draft_tokens_total",
		"llamacpp:spec_decode_num_draft_tokens_total", "trtllm_spec_decode_num_draft_tokens_total"}},
	"accepted": {names: []string{"vllm:spec_decode_num_accepted_tokens_total",
		"llamacpp:spec_decode_num_accepted_tokens_total", "trtllm_spec_decode_num_accepted_tokens_total"}},
	"positions": {names: []string{"vllm:spec_decode_num_accepted_tokens_per_pos_total"}},
	"acceptLen": {names: []string{"sglang:spec_accept_length", "trtllm_spec_decode_acceptance_length"},
		fold: foldMean, busy: true},
	"acceptRate": {names: []string{"sglang:spec_accept_rate"}, fold: foldMean, busy: true},
}

// A source is a metric of a target.
type source struct{ target, metric string }

// rolesOf lists the roles that the metrics of each target have; SGLang's prompt tokens
// have two.
func rolesOf(metrics []result.ServerMetric) map[source][]string {
	has := map[source]bool{}
	targets := map[string]bool{}
	for i := range metrics {
		has[source{metrics[i].Target, metrics[i].Metric}] = true
		targets[metrics[i].Target] = true
	}
	out := map[source][]string{}
	for target := range targets {
		for name, r := range roles {
			for _, sum := range r.names {
				parts := slices.DeleteFunc(strings.Split(sum, "+"),
					func(metric string) bool { return !has[source{target, metric}] })
				for _, metric := range parts {
					out[source{target, metric}] = append(out[source{target, metric}], name)
				}
				if len(parts) > 0 {
					break
				}
			}
		}
	}
	return out
}

// readServers reads the metrics of a run, nil for none, whose first request was due at
// firstDue, and whose last ended at lastDone.
func readServers(s *Summary, metrics func() trace.Reader[result.Metric], firstDue, lastDone int64) error {
	if metrics == nil {
		return nil
	}
	from, to, whole := int64(0), lastDone, s.Run.Window == nil
	if made := s.Run.Server; made != nil {
		from, to = made.FromNS, made.ToNS
	} else if err := trace.Each(metrics(), func(_ int64, m *result.Metric) error {
		to = max(to, m.AtNS) // of a run that did not finish
		return nil
	}); err != nil {
		return err
	}
	sums, err := result.SummariseMetrics(metrics(), from, to, whole)
	if err != nil {
		return err
	}
	if len(sums.Metrics) == 0 {
		return nil
	}
	lines := newServerLines(&s.Run, from, to, rolesOf(sums.Metrics))
	if whole { // what a GPU uses before the first request and after the last is for no token
		lines.busyFrom, lines.busyTo = firstDue, min(to, lastDone)
	}
	queue := serverHistogram{known: map[string]bool{}, last: map[lineKey]float64{}, buckets: map[float64]float64{}}
	if err := trace.Each(metrics(), func(_ int64, m *result.Metric) error {
		lines.add(m)
		queue.add(queueTimes, m)
		return nil
	}); err != nil {
		return err
	}
	out := &Servers{FromS: float64(from) / 1e9, ToS: float64(to) / 1e9}
	if s.Latency.QueueTime.Count == 0 { // which each answer knows better
		out.QueueTime = queue.stat()
	}
	totals := lines.totals(sums, out)
	for name, into := range map[string]**float64{"hits": &out.PrefixHits, "queries": &out.PrefixQueries,
		"preempt": &out.Preemptions,
		"prompt":  &out.PromptTokens, "generate": &out.Generated} {
		*into = totals[name]
	}
	out.PrefixRatio = Quotient(out.PrefixHits, out.PrefixQueries)
	if seconds := out.ToS - out.FromS; out.Generated != nil && seconds > 0 {
		out.GeneratedPerS = Rounded(*out.Generated/seconds, 1e6)
	}
	for name, into := range map[string]**Level{"running": &out.Running, "waiting": &out.Waiting, "kv": &out.KVUsage,
		"gpu": &out.GPUUse, "power": &out.GPUPowerW, "memory": &out.GPUMemoryMiB} {
		*into = lines.level(name)
	}
	out.Speculation = speculation(totals, sums, lines)
	if joules := lines.spent("energy"); joules != nil && (whole || out.Generated == nil) {
		totals["energy"] = joules // else the tokens are those between the same scrapes
	}
	answered := float64(s.Tokens.Output)
	if v := s.Tokens.Impossible; v != nil && v.OutputRows > 0 {
		answered = 0 // not known, since the sum lacks some
	}
	energy(out, totals["energy"], answered, float64(lines.busyTo-lines.busyFrom)/1e9)
	s.Servers = out

	p := &s.Series
	p.Running, p.Waiting = lines.series("running", "running"), lines.series("waiting", "waiting")
	p.KVUse = lines.series("kv", "KV cache in use")
	p.ServerHits = lines.ratio("hits", "queries", "hit ratio, server")
	p.Generated, p.Prefilled = lines.series("generate", "generated"), lines.series("prompt", "prompt")
	p.Preempted = lines.series("preempt", "preemptions")
	p.GPUUse, p.GPUPower = lines.series("gpu", "utilisation"), lines.series("power", "power")
	return nil
}

// queueTimes are the histograms of how long requests waited to be scheduled, in seconds.
var queueTimes = []string{"vllm:request_queue_time_seconds", "sglang:queue_time_seconds"}

// A serverHistogram is what histograms of the servers grew by from their first scrape to their last, all together.
type serverHistogram struct {
	known   map[string]bool // targets that were scraped before the run
	last    map[lineKey]float64
	sum     float64             // s
	buckets map[float64]float64 // by upper bound, each with those below it
}

// add takes a sample of one of the names. A series that a target did not have before the run began at zero.
func (h *serverHistogram) add(names []string, m *result.Metric) {
	h.known[m.Target] = h.known[m.Target] || m.AtNS <= 0
	name, bucket := strings.CutSuffix(m.Name, "_bucket")
	name, sum := strings.CutSuffix(name, "_sum")
	of := &scrape.Series{Metric: m.Name, Labels: m.Labels}
	if !bucket && !sum || !slices.Contains(names, name) || of.Secondary() {
		return
	}
	key := lineKey{target: m.Target, metric: m.Name, labels: m.Labels}
	was, begun := h.last[key]
	h.last[key] = m.Value
	switch {
	case !begun && (m.AtNS <= 0 || !h.known[m.Target]):
		return
	case m.Value < was: // its server started anew
		was = 0
	}
	if sum {
		h.sum += m.Value - was
	} else if bound, err := strconv.ParseFloat(of.Label("le"), 64); err == nil {
		h.buckets[bound] += m.Value - was
	}
}

// stat describes what the histogram grew by; nil without one.
func (h *serverHistogram) stat() *Stat {
	bounds := slices.Sorted(maps.Keys(h.buckets))
	if len(bounds) < 2 || !math.IsInf(bounds[len(bounds)-1], 1) {
		return nil
	}
	count := h.buckets[math.Inf(1)]
	out := &Stat{Count: int64(count), Method: "buckets", Mean: Quotient(trace.Ptr(h.sum*1000), &count)}
	for _, p := range percentiles {
		if out.Count >= p.needed {
			*p.of(out) = Rounded(1000*h.quantile(bounds, float64(p.per)/1000), 1e6)
		}
	}
	return out
}

// quantile lies in a bucket, whose values are taken to be spread evenly, as Prometheus takes them.
func (h *serverHistogram) quantile(bounds []float64, share float64) float64 {
	rank := share * h.buckets[math.Inf(1)]
	i := slices.IndexFunc(bounds, func(bound float64) bool { return h.buckets[bound] >= rank })
	if i == len(bounds)-1 {
		return bounds[i-1]
	}
	lower, below := 0.0, 0.0
	if i > 0 {
		lower, below = bounds[i-1], h.buckets[bounds[i-1]]
	}
	return lower + (bounds[i]-lower)*(rank-below)/(h.buckets[bounds[i]]-below)
}

// totals are what the counters of each role grew by, over engines. It counts their restarts.
func (lines *serverLines) totals(sums *result.Server, out *Servers) map[string]*float64 {
	totals := map[string]*float64{}
	for i := range sums.Metrics {
		m := &sums.Metrics[i]
		if m.Kind != result.Counter || m.Delta == nil ||
			(&scrape.Series{Metric: m.Metric, Labels: m.Labels}).Secondary() {
			continue
		}

		names := lines.roles[source{m.Target, m.Metric}]
		if len(names) > 0 {
			out.Restarts += m.Resets
		}
		for _, name := range names {
			if totals[name] == nil {
				totals[name] = new(float64)
			}
			*totals[name] += *m.Delta * cmp.Or(roles[name].scale, 1)
		}
	}
	if totals["hits"] == nil { // llama.cpp's prompt tokens alone do not say what was looked up
		delete(totals, "queries")
	}
	return totals
}

// energy sets what the GPUs used, by their counters in joules or else by their power over so
// many seconds, for each token that the servers or else the answers gave.
func energy(v *Servers, counted *float64, answered, seconds float64) {
	if v.EnergyJ = counted; counted == nil && v.GPUPowerW != nil {
		v.EnergyJ = Rounded(v.GPUPowerW.Mean*seconds, 1e6)
	}
	tokens := cmp.Or(v.Generated, &answered)
	v.JoulesPerToken, v.TokensPerWatt = Quotient(v.EnergyJ, tokens), Quotient(tokens, v.EnergyJ)
}

// Quotient is a/b rounded to nine decimals, nil where either is unknown or b is not above 0.
func Quotient(a, b *float64) *float64 {
	if a == nil || b == nil || *b <= 0 {
		return nil
	}
	return Rounded(*a / *b, 1e9)
}

// speculation takes the counters of vLLM and llama.cpp, or SGLang's and TensorRT-LLM's means.
func speculation(totals map[string]*float64, sums *result.Server, lines *serverLines) *Speculation {
	if d := totals["drafts"]; d != nil && *d > 0 {
		out := &Speculation{Steps: d, DraftTokens: totals["drafted"], AcceptedTokens: totals["accepted"]}
		out.Acceptance = Quotient(out.AcceptedTokens, out.DraftTokens)
		if q := Quotient(out.AcceptedTokens, d); q != nil {
			out.Length = Rounded(1+*q, 1e9)
		}
		out.ByPosition = byPosition(sums, *d)
		return out
	}
	length, rate := lines.level("acceptLen"), lines.level("acceptRate")
	d := totals["drafted"]
	if length == nil && rate == nil && (d == nil || *d <= 0) {
		return nil
	}
	out := &Speculation{DraftTokens: d, AcceptedTokens: totals["accepted"]}
	out.Acceptance = Quotient(out.AcceptedTokens, d)
	if length != nil {
		out.Length = &length.Mean
	}
	if rate != nil {
		out.Acceptance = &rate.Mean
	}
	return out
}

// byPosition is the share of the drafts whose token at each position was accepted.
func byPosition(sums *result.Server, drafts float64) (out []float64) {
	type position struct {
		at       int
		accepted float64
	}
	var all []position
	for i := range sums.Metrics {
		m := &sums.Metrics[i]
		if m.Delta == nil || !slices.Contains(roles["positions"].names, m.Metric) {
			continue
		}
		for _, l := range strings.Split(m.Labels, ",") {
			if name, value, _ := strings.Cut(l, "="); name == "position" {
				if at, err := strconv.Atoi(value); err == nil {
					all = append(all, position{at, *m.Delta})
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b position) int { return cmp.Compare(a.at, b.at) })
	for i, p := range all {
		if i > 0 && p.at == all[i-1].at { // of another engine
			out[len(out)-1] += p.accepted / drafts
			continue
		}
		out = append(out, p.accepted/drafts)
	}
	return out
}

// serverLines follow the metrics that have a role over time, each series in at
// most maxSlots bins, which are 24 kB. A bin is as wide as a scrape interval at least, so that
// each has a value.
type serverLines struct {
	from, to int64 // the measured part

	busyFrom, busyTo int64                    // the time in which its tokens were generated
	first            int64                    // width of a bin to begin with
	roles            map[source][]string      // of each metric
	of               map[string][]*serverLine // by role, in the order in which they came
	known            map[lineKey]*serverLine
}

type lineKey struct{ role, target, metric, labels string }

// A serverLine is one series: a gauge's values, or the rates of a counter
// between one sample and the next.
type serverLine struct {
	width int64
	bins  []lineBin

	last   float64 // of a counter
	lastAt int64
	begun  bool
	spent  float64 // by a counter in the busy time; between two samples it grows evenly

	sum  float64 // of a gauge, in the measured part
	n    int64
	most float64
}

type lineBin struct{ num, den, most float64 }

func newServerLines(run *result.Run, from, to int64, roles map[source][]string) *serverLines {
	l := &serverLines{from: from, to: to, busyFrom: from, busyTo: to, first: 1e9, roles: roles,
		of: map[string][]*serverLine{}, known: map[lineKey]*serverLine{}}
	switch s := run.Server; {
	case s != nil && s.EveryNS > 0:
		l.first = s.EveryNS
	case s != nil && s.Prometheus != nil:
		l.first = int64(s.Prometheus.Step)
	}
	l.first = max(l.first, firstSlot)
	return l
}

// add takes a sample. Those of a series come in order of time.
func (l *serverLines) add(m *result.Metric) {
	names := l.roles[source{m.Target, m.Name}]
	if len(names) == 0 || (&scrape.Series{Metric: m.Name, Labels: m.Labels}).Secondary() || math.IsNaN(m.Value) ||
		math.IsInf(m.Value, 0) || m.AtNS > MaxInstant {
		return
	}
	for _, name := range names {
		r := roles[name]
		if r.busy && m.Value == 0 {
			continue
		}
		key := lineKey{name, m.Target, m.Name, m.Labels}
		line := l.known[key]
		if line == nil {
			line = &serverLine{width: l.first}
			l.known[key] = line
			l.of[name] = append(l.of[name], line)
		}
		value := m.Value
		if r.scale != 0 {
			value *= r.scale
		}
		if m.Kind == result.Counter {
			line.spend(m.AtNS, value, l.busyFrom, l.busyTo)
			line.count(m.AtNS, value)
		} else {
			line.level(m.AtNS, value, m.AtNS >= l.from && m.AtNS <= l.to)
		}
	}
}

func (s *serverLine) level(at int64, value float64, measured bool) {
	if measured {
		if s.n == 0 || value > s.most {
			s.most = value
		}
		s.sum, s.n = s.sum+value, s.n+1
	}
	if at >= 0 {
		s.put(at, value, 1, value)
	}
}

// spend adds the part of the growth since the last sample that fell between two instants.
func (s *serverLine) spend(at int64, value float64, from, to int64) {
	if !s.begun || at <= s.lastAt {
		return
	}
	grown := value - s.last
	if value < s.last { // its server started anew
		grown = value
	}
	if inside := min(at, to) - max(s.lastAt, from); inside > 0 {
		s.spent += grown * float64(inside) / float64(at-s.lastAt)
	}
}

// spent is what the counters of a role grew by in the busy time, all together; nil for none.
func (l *serverLines) spent(name string) *float64 {
	if len(l.of[name]) == 0 {
		return nil
	}
	sum := 0.0
	for _, s := range l.of[name] {
		sum += s.spent
	}
	return Rounded(sum, 1e6)
}

// count puts the growth since the last sample where this one is.
func (s *serverLine) count(at int64, value float64) {
	grown, took := value-s.last, at-s.lastAt
	if value < s.last { // its server started anew
		grown = value
	}
	if s.begun && at >= 0 && took > 0 {
		s.put(at, grown, float64(took)/1e9, grown*1e9/float64(took))
	}
	s.last, s.lastAt, s.begun = value, at, true
}

func (s *serverLine) put(at int64, num, den, most float64) {
	for at/s.width >= maxSlots {
		s.fold()
	}
	for int64(len(s.bins)) <= at/s.width {
		s.bins = append(s.bins, lineBin{})
	}
	s.bins[at/s.width].join(lineBin{num, den, most})
}

func (b *lineBin) join(o lineBin) {
	if o.den == 0 {
		return
	}
	if b.den == 0 || o.most > b.most {
		b.most = o.most
	}
	b.num, b.den = b.num+o.num, b.den+o.den
}

func (s *serverLine) fold() {
	s.bins = halve(s.bins, (*lineBin).join)
	s.width *= 2
}

// level sums a gauge up over the measured part: the mean of the series' means, or
// their sum; and the largest of any bin, all series at once, since their peaks
// need not fall together.
func (l *serverLines) level(name string) *Level {
	r, out := roles[name], &Level{Max: math.Inf(-1)}
	known := 0
	for _, s := range l.of[name] {
		if s.n == 0 {
			continue
		}
		if known++; known == 1 || int64(s.n) < out.Scrapes {
			out.Scrapes = int64(s.n)
		}
		out.Mean += s.sum / float64(s.n)
	}
	if known == 0 {
		return nil
	}
	if r.fold == foldMean {
		out.Mean /= float64(known)
	}
	if known == 1 {
		for _, s := range l.of[name] {
			if s.n > 0 {
				out.Max = s.most
			}
		}
	} else {
		width, tops := l.join(name, func(b lineBin) float64 { return b.most })
		for i, top := range tops {
			if begin := int64(i) * width; !math.IsNaN(top) && begin+width > l.from && begin <= l.to {
				out.Max = max(out.Max, top)
			}
		}
	}
	out.Mean, out.Max = *Rounded(out.Mean, 1e9), *Rounded(max(out.Max, out.Mean), 1e9)
	return out
}

// join folds the series of a role into one value for each bin, NaN where no
// series had begun. A series keeps its last value where a bin has none.
func (l *serverLines) join(name string, of func(lineBin) float64) (width int64, out []float64) {
	lines := l.of[name]
	for _, s := range lines {
		width = max(width, s.width)
	}
	n := 0
	for _, s := range lines {
		for s.width < width {
			s.fold()
		}
		n = max(n, len(s.bins))
	}
	sums, known := make([]float64, n), make([]float64, n)
	for _, s := range lines {
		last, begun := 0.0, false
		for i := range n {
			if i < len(s.bins) && s.bins[i].den > 0 {
				last, begun = of(s.bins[i]), true
			}
			if begun {
				sums[i] += last
				known[i]++
			}
		}
	}
	for i := range sums {
		switch {
		case known[i] == 0:
			sums[i] = math.NaN()
		case roles[name].fold == foldMean:
			sums[i] /= known[i]
		}
	}
	return width, sums
}

// series draws a role over time, each value in the middle of its bin.
func (l *serverLines) series(name, label string) doc.Series {
	s := doc.Series{Name: label}
	width, values := l.join(name, func(b lineBin) float64 { return b.num / b.den })
	for i, v := range values {
		if !math.IsNaN(v) {
			s.X = append(s.X, (float64(i)+0.5)*float64(width)/1e9)
			s.Y = append(s.Y, v)
		}
	}
	return s
}

// ratio divides one rate by another, bin by bin, where there is something to
// divide by.
func (l *serverLines) ratio(over, under, label string) doc.Series {
	s := doc.Series{Name: label}
	a, b := l.series(over, ""), l.series(under, "")
	at := map[float64]float64{}
	for i, x := range b.X {
		at[x] = b.Y[i]
	}
	for i, x := range a.X {
		if d := at[x]; d > 0 {
			s.X, s.Y = append(s.X, x), append(s.Y, min(a.Y[i]/d, 1))
		}
	}
	return s
}
