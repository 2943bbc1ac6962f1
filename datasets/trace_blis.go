package datasets

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
	"reprise/trace"
)

// blisFields maps the columns of TraceV2. Of those that not every version has
// the ones that are there are read.
var blisFields = Mapping{
	"time":          {"arrival_time_us"},
	"input_tokens":  {"input_tokens"},
	"output_tokens": {"output_tokens"},
	"user":          {"client_id", "tenant_id"},
	"session":       {"session_id"},
	"model":         {"model"},
	"adapter":       {"adapter"},
	"class":         {"slo_class"},
	"stream":        {"streaming"},
	"finish_reason": {"finish_reason"},
}

// blisFormat reads TraceV2 of the BLIS simulator
// (github.com/inference-sim/inference-sim, sim/workload/tracev2.go): a CSV, and
// optionally the YAML header that belongs to it as a file of its own.
//
//   - Arrivals count from the beginning, while the times of sending and of chunks
//     count from there or from 1970: the two are never mixed. Latencies count
//     from the sending. In all of them 0 means not recorded.
//   - input_tokens leaves out the prefix of prefix_length; the input is both, or
//     server_input_tokens where the server counted.
//   - prefix_group and prefix_length become ids of 512-token blocks: requests of
//     a group share the blocks that lie in the prefix whole, and every other
//     block is new. What the rounds of a session share beyond that the format
//     does not say.
//   - A round follows the one before it in its session when that had ended; where
//     both times come from one clock, the gap is think time.
//   - A client's timeout is a cancellation, an error a failure. Error messages,
//     which may hold anything, are not read.
func blisFormat() Format {
	return Format{
		reads:  mappedFields(blisFields, nil),
		labels: true,
		detect: func(head *sniff.Sample) bool {
			columns, err := csv.NewReader(bytes.NewReader(head.Bytes)).Read()
			return err == nil && slices.Contains(columns, "arrival_time_us") &&
				slices.Contains(columns, "input_tokens") && slices.Contains(columns, "slo_class")
		},
		open: openBLIS,
		detectFiles: func(files []File) bool {
			headers, _, ok := blisFiles(files)
			return ok && len(headers) > 0
		},
		openFiles: openBLISFiles,
	}.described("blis")
}

// blisFiles tells headers from rows; ok is false when there is something else,
// or what is named as a header is none.
func blisFiles(files []File) (headers []string, rows []File, ok bool) {
	for _, f := range files {
		switch strings.ToLower(path.Ext(f.Name)) {
		case ".yaml", ".yml":
			in, err := f.Open()
			if err != nil {
				return nil, nil, false
			}
			text, err := io.ReadAll(io.LimitReader(in, 1<<20))
			_ = in.Close()
			if err != nil || headerValue(string(text), "trace_version") == "" {
				return nil, nil, false
			}
			headers = append(headers, string(text))
		default:
			rows = append(rows, f)
		}
	}
	return headers, rows, len(rows) > 0
}

// headerValue returns a value at the top of a YAML header. It stands in for a
// YAML parser, which a few plain words do not need.
func headerValue(text, key string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

// openBLISFiles reads CSVs one after the other, and what their headers say of
// them all.
func openBLISFiles(files []File, o Options, s *Source) (decoder, error) {
	headers, rows, ok := blisFiles(files)
	if !ok {
		return nil, fault.Usage("blis wants a CSV, with its YAML header or without")
	}
	for _, text := range headers {
		switch headerValue(text, "time_unit") {
		case "", "us", "microseconds":
		default:
			return nil, fault.Refuse(1, 1, "the time_unit of the header is not microseconds, which is all that the "+
				"columns can be")
		}
		if n, err := strconv.ParseUint(headerValue(text, "warm_up_requests"), 10, 31); err == nil && n > 0 {
			s.notes.SayOnce("the first requests are a warm-up by the header, and are kept: " +
				strconv.FormatUint(n, 10))
		}
	}
	o.Format = "blis"
	if err := s.openChain(rows, o); err != nil {
		return nil, err
	}
	for _, text := range headers {
		for line := range strings.Lines(text) {
			key, _, ok := strings.Cut(line, ":")
			if top := !strings.ContainsAny(key[:min(1, len(key))], " \t#-"); ok && top {
				s.fields.Reads(key)
			}
		}
	}
	return s.dec, nil
}

func openBLIS(in *bufio.Reader, _ []byte, o Options, s *Source) (decoder, error) {
	rows, err := row.NewCSV(in, row.CSVOptions{})
	if err != nil {
		return nil, err
	}
	m := Mapping{}
	for name, columns := range blisFields {
		isThere := func(column string) bool { return slices.Contains(rows.Names(), column) }
		if name == "time" || strings.HasSuffix(name, "_tokens") || slices.ContainsFunc(columns, isThere) {
			m[name] = columns
		}
	}
	if err := needColumns(rows.Names(), m, nil, Options{}); err != nil {
		return nil, err
	}
	rows.Admit(s.fields, nil)
	o.TimeUnit = "us"
	mapped, err := newMappedDecoder(rows, row.None{}, m, o, s)
	if err != nil {
		return nil, err
	}
	mapped.timing = withTimes
	require(mapped.fields, "input_tokens")
	mapped.s.info.BlockSize, mapped.s.info.BlocksHashed = sharedBlock, true
	return &blisDecoder{mapped: mapped, groups: map[string][]uint64{}, sessions: map[string]lastRound{}, s: s}, nil
}

type blisDecoder struct {
	mapped   *mappedDecoder
	groups   map[string][]uint64 // blocks of prefix groups
	blocks   blockIDs            // so far
	sessions map[string]lastRound
	entries  int64
	s        *Source
}

func (d *blisDecoder) mapping() *mappedDecoder { return d.mapped }

func (d *blisDecoder) decode(dst []trace.Entry) ([]trace.Entry, error) {
	r, err := d.mapped.rows.Next()
	if err != nil {
		return dst, err
	}
	before := len(dst)
	dst, err = d.mapped.entry(dst, r)
	if err == nil {
		err = d.setDerived(&dst[before], r)
	}
	if f, ok := err.(*fault.Fault); ok && !f.Stop && r.Cut() {
		err = fault.CutOff(f.Line, f.Col, "the last row is not whole")
	}
	if err != nil {
		return dst[:before], err
	}
	d.entries++
	return dst, nil
}

// setDerived sets what needs several columns.
func (d *blisDecoder) setDerived(e *trace.Entry, r row.Row) error {
	n := map[string]int64{}
	for _, name := range []string{"prefix_length", "server_input_tokens", "image_tokens",
		"audio_tokens", "video_tokens",
		"round_index", "arrival_time_us", "send_time_us", "first_chunk_time_us", "last_chunk_time_us"} {
		v, ok := r.Value(name)
		if !ok {
			continue
		}
		whole, nano, ok := stamp.Decimal(row.Plain(v))
		if !ok || nano != 0 || whole < 0 || whole > math.MaxInt32 && !strings.HasSuffix(name, "_us") {
			return row.BadAt(r, name, name+": want a whole number that is not negative")
		}
		n[name] = whole
	}
	if why := d.lengths(e, r, n); why != "" {
		return row.BadAt(r, "input_tokens", why)
	}
	v, _ := r.Value("status")
	switch status := row.Plain(v); status {
	case "error":
		e.Status = trace.StatusFailed
	case "timeout":
		e.Status = trace.StatusCancelled
	default:
		e.Status = trace.ClosedStatus(status)
	}
	if e.Status != trace.StatusOK && *e.OutputTokens == 0 {
		e.OutputTokens = nil // not recorded
	}
	last := d.latencies(e, n)
	d.follow(e, r, n, last)
	return nil
}

// lengths sets the lengths and the blocks.
func (d *blisDecoder) lengths(e *trace.Entry, r row.Row, n map[string]int64) (why string) {
	prefix := n["prefix_length"]
	input := int64(*e.InputTokens) + prefix
	if n["server_input_tokens"] > 0 {
		input = n["server_input_tokens"]
	}
	if input > math.MaxInt32 {
		return "the input has more than 2147483647 tokens"
	}
	e.InputTokens = trace.Ptr(int32(input))
	group, _ := r.Value("prefix_group")
	var shared []uint64
	if whole := int(min(prefix, input) / sharedBlock); whole > 0 && row.Plain(group) != "" {
		all := d.blocks.fill(d.groups[row.Plain(group)], whole)
		d.groups[strings.Clone(row.Plain(group))] = all
		shared = all[:whole]
	}
	e.SourceBlocks = d.blocks.fill(append([]uint64{}, shared...), blocksOf(int32(input), sharedBlock))
	if n["image_tokens"] > 0 {
		e.ImageTokens = trace.Ptr(int32(n["image_tokens"]))
	}
	if n["audio_tokens"]+n["video_tokens"] > 0 {
		d.s.notes.Count("requests with audio or video, whose tokens are counted in the input alone")
	}
	v, _ := r.Value("reason_ratio")
	if ratio, err := strconv.ParseFloat(row.Plain(v), 64); err == nil && ratio > 0 && ratio <= 1 {
		e.Reasoning = trace.Ptr(int32(math.Round(ratio * float64(*e.OutputTokens))))
	}
	return ""
}

// latencies sets the latencies, from the sending, and returns the time of the
// last chunk on the clock of the arrivals, zero when it is not known.
func (d *blisDecoder) latencies(e *trace.Entry, n map[string]int64) (last time.Time) {
	sent, first, end := n["send_time_us"], n["first_chunk_time_us"], n["last_chunk_time_us"]
	oneClock := (sent < 1e15) == (n["arrival_time_us"] < 1e15)
	if sent == 0 && (n["arrival_time_us"] != 0 || max(first, end) >= 1e15) {
		return last // of a request that arrives at 0 a sending at 0 is real
	}
	if first > 0 && first < sent || end > 0 && end < max(sent, first) {
		d.s.notes.Count("requests whose chunks are before their sending, or out of order, taken to have no latencies")
		return last
	}
	if first > 0 {
		e.TTFT = fromMicros(first - sent)
	}
	if end > 0 {
		e.E2E = fromMicros(end - sent)
		if oneClock {
			last = Epoch.Add(*fromMicros(end))
		}
	}
	return last
}

// fromMicros is a duration of at most 292 years.
func fromMicros(us int64) *time.Duration {
	return trace.Ptr(time.Duration(min(us, math.MaxInt64/1000)) * time.Microsecond)
}

// follow puts a round after the one before it in its session.
func (d *blisDecoder) follow(e *trace.Entry, r row.Row, n map[string]int64, last time.Time) {
	v, _ := r.Value("session_id")
	id := row.Plain(v)
	if id == "" {
		return
	}
	e.Turn = trace.Ptr(int32(n["round_index"]))
	before, later := d.sessions[id]
	d.sessions[strings.Clone(id)] = lastRound{d.entries, last}
	if !later || e.Time.Before(before.done) {
		return
	}
	e.Parents = []int64{before.entry}
	if !before.done.IsZero() {
		e.Think = trace.Ptr(e.Time.Sub(before.done))
	}
}
