package datasets

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/trace"
)

// windowWidth is the width of the last window of a trace, and of the only one.
const windowWidth = 600 * time.Second

// Bounds of what a window may say, far beyond the pools' 308 requests a second;
// below the least shape the gamma function has no value.
const (
	maxRate            = 1e4
	maxArrivals        = 1e7
	minShape, maxShape = 0.01, 1e6
)

// readWindows reads a trace file: rows without a header of start, rate, CV,
// pattern, shape and scale, idle windows with neither rate nor pattern.
func readWindows(f *File) (windows []poolWindow, end time.Duration, err error) {
	in, err := f.Open()
	if err != nil {
		return nil, 0, fault.Broken(1, 1, err).At(f.Name)
	}
	defer in.Close()
	r := csv.NewReader(io.LimitReader(in, record.MaxBytes))
	r.ReuseRecord = true
	r.FieldsPerRecord = -1
	for {
		fields, err := r.Read()
		if err == io.EOF {
			break
		}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			return nil, 0, fault.Refuse(int64(parse.Line), int64(parse.Column), "a quote is out of place").At(f.Name)
		}
		if err != nil {
			return nil, 0, fault.Broken(int64(len(windows)+1), 1, err).At(f.Name)
		}
		w, col, why := readWindow(fields)
		if n := len(windows); why == "" && n > 0 && w.start <= windows[n-1].start {
			col, why = 0, "the windows are not in order of time"
		}
		if why != "" {
			line, column := r.FieldPos(min(col, len(fields)-1))
			return nil, 0, fault.Refuse(int64(line), int64(column), why).At(f.Name)
		}
		windows = append(windows, w)
	}
	for i := range windows {
		windows[i].width = windowWidth
		if i+1 < len(windows) {
			windows[i].width = windows[i+1].start - windows[i].start
		}
		if windows[i].rate*windows[i].width.Seconds() > maxArrivals {
			return nil, 0, fault.Refuse(int64(i+1), 1,
				"a window has more than ten million requests: is this the right file?").At(f.Name)
		}
		end = windows[i].start + windows[i].width
	}
	return windows, end, nil
}

// readWindow reads a row; col is the field at fault.
func readWindow(fields []string) (w poolWindow, col int, why string) {
	if len(fields) != 6 {
		return w, 0, "want six fields: start, rate, CV, pattern, shape, scale"
	}
	start, err := strconv.ParseUint(fields[0], 10, 32)
	if err != nil || time.Duration(start)*time.Second > maxPool {
		return w, 0, "want the start of the window in whole seconds"
	}
	w.start = time.Duration(start) * time.Second
	if w.rate, err = strconv.ParseFloat(fields[1], 64); err != nil || !(w.rate >= 0 && w.rate <= maxRate) {
		return w, 1, "want a rate from 0 to 10000 requests per second"
	}
	w.shape = 1 // a window without a pattern is Poisson
	switch fields[3] {
	case "":
		return w, 0, ""
	case "Gamma", "Weibull":
		w.weibull = fields[3] == "Weibull"
	default:
		return w, 3, "want a pattern of Gamma, Weibull or none"
	}
	if w.shape, err = strconv.ParseFloat(fields[4], 64); err != nil || !(w.shape >= minShape && w.shape <= maxShape) {
		return w, 4, "want a shape from 0.01 to 1000000"
	}
	return w, 0, ""
}

// A lengthWindow holds the distributions of one time.
type lengthWindow struct {
	start  time.Duration
	fields map[string]*pmf
}

// poolFields are the fields of a dataset. A count says how many draws of the
// tokens beside it a request has.
var poolFields = []string{
	"input_tokens", "output_tokens", "reason_ratio", "text_tokens",
	"image_tokens", "audio_tokens", "video_tokens", "image_count", "audio_count", "video_count",
}

// readLengths reads of a dataset file the distributions for windows that begin
// from first to last: an object of start times, each with an object of fields,
// each a Python dict of value and probability in a string.
func readLengths(f *File, first, last time.Duration, known *row.Fields) (kept []lengthWindow, err error) {
	in, err := f.Open()
	if err != nil {
		return nil, fault.Broken(1, 1, err).At(f.Name)
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, record.MaxBytes+1))
	if err != nil {
		return nil, fault.Broken(1, 1, err).At(f.Name)
	}
	if len(raw) > record.MaxBytes {
		return nil, fault.Refuse(1, 1, "the file is longer than 64 MiB").At(f.Name)
	}
	refuseAt := func(offset int, why string) error {
		line, col := record.PlaceIn(raw, offset)
		return fault.Refuse(line, col, why).At(f.Name)
	}
	var times map[string]map[string]string
	if err := json.Unmarshal(raw, &times); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input" {
			line, col := record.PlaceIn(raw, len(raw))
			return nil, fault.CutOff(line, col, "the distributions are not whole").At(f.Name)
		}
		if errors.As(err, &syntax) {
			return nil, refuseAt(int(max(syntax.Offset-1, 0)), "it is not valid JSON")
		}
		return nil, refuseAt(0, "want an object of times, each with an object of fields, each a string")
	}
	var starts []time.Duration
	texts := map[time.Duration]map[string]string{}
	for name, fields := range times {
		start, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			return nil, refuseAt(0, "a time is not a whole number of seconds")
		}
		starts = append(starts, time.Duration(start)*time.Second)
		known.AdmitNames(fields)
		texts[starts[len(starts)-1]] = fields
	}
	slices.Sort(starts)
	locate := func(start time.Duration, field, why string) error {
		offset := row.OffsetOf(raw, strconv.FormatInt(int64(start/time.Second), 10)+"."+field)
		return refuseAt(offset, field+": "+why)
	}
	// Of the windows that have lengths, the latest one up to first is kept and those
	// after it up to last, or the next one when there is none.
	after, _ := slices.BinarySearch(starts, first+1)
	for i := after - 1; i >= 0 && len(kept) == 0; i-- {
		if kept, err = appendUsable(kept, starts[i], texts[starts[i]], locate); err != nil {
			return nil, err
		}
	}
	for i := after; i < len(starts) && (starts[i] <= last || len(kept) == 0); i++ {
		if kept, err = appendUsable(kept, starts[i], texts[starts[i]], locate); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// appendUsable appends the window when it has lengths of input and output.
func appendUsable(kept []lengthWindow, start time.Duration, texts map[string]string,
	locate func(start time.Duration, field, why string) error) ([]lengthWindow, error) {
	w := lengthWindow{start: start, fields: map[string]*pmf{}}
	for field, text := range texts {
		if !slices.Contains(poolFields, field) {
			continue
		}
		p, why := parsePMF(text, field == "reason_ratio")
		if why != "" {
			return nil, locate(start, field, why)
		}
		w.fields[field] = p
	}
	// Where nothing was sent the fields are empty, or certain to be 0.
	output, input := w.fields["output_tokens"], false
	for _, field := range []string{"input_tokens", "text_tokens", "image_tokens", "audio_tokens", "video_tokens"} {
		input = input || !w.fields[field].none()
	}
	if output != nil && len(output.values) > 0 && (input || !output.none()) {
		kept = append(kept, w)
	}
	return kept, nil
}

// A pmf is a distribution as the bounds of its values in 32-bit uniforms: value
// i has those up to tops[i] that are above tops[i-1].
type pmf struct {
	values []int32
	tops   []uint32
}

// none reports that only 0 can be drawn.
func (p *pmf) none() bool {
	return p == nil || len(p.values) == 0 || len(p.values) == 1 && p.values[0] == 0
}

func (p *pmf) draw(r *rand.Rand) int64 {
	if p == nil || len(p.values) == 0 {
		return 0
	}
	i, _ := slices.BinarySearch(p.tops, r.Uint32())
	return int64(p.values[i])
}

// ratioUnit is a share of 1 in the values of a distribution of ratios.
const ratioUnit = 1e9

// parsePMF reads a dict such as {9: 0.0067, 12: 1e-05}, in units of ratioUnit
// when its values are ratios.
func parsePMF(text string, ratio bool) (*pmf, string) {
	const want = "want a dict of whole numbers, or of ratios from 0 to 1, and their probabilities"
	text = strings.TrimSpace(text)
	inner, ok := strings.CutPrefix(text, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if !ok || !closed {
		return nil, want
	}
	type bar struct {
		value int32
		p     float64
	}
	var bars []bar
	sum := 0.0
	for pair := range strings.SplitSeq(inner, ",") {
		if strings.TrimSpace(pair) == "" {
			continue // an empty dict, or a comma after the last pair
		}
		key, value, _ := strings.Cut(pair, ":")
		k, err := strconv.ParseFloat(strings.TrimSpace(key), 64)
		p, err2 := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if ratio {
			k = math.Round(k * ratioUnit)
		}
		if err != nil || err2 != nil || k != math.Trunc(k) || !(k >= 0 && k <= math.MaxInt32) ||
			ratio && k > ratioUnit || !(p >= 0 && p <= 1e9) {
			return nil, want
		}
		bars = append(bars, bar{int32(k), p})
		sum += p
	}
	slices.SortStableFunc(bars, func(a, b bar) int { return cmp.Compare(a.value, b.value) })
	d, below, cumulative := &pmf{}, uint64(0), 0.0
	for _, b := range bars {
		cumulative += b.p
		top := uint64(math.Round(cumulative / sum * (1 << 32)))
		if top > below && top <= 1<<32 { // rarer than one in 2³² is never
			d.values, d.tops = append(d.values, b.value), append(d.tops, uint32(top-1))
			below = top
		}
	}
	if n := len(d.tops); n > 0 {
		d.tops[n-1] = math.MaxUint32
	}
	return d, ""
}

// request draws the lengths of a request.
func (w *lengthWindow) request(draw map[string]*rand.Rand, s *Source) trace.Entry {
	one := func(field string) int64 { return w.fields[field].draw(draw[field]) }
	input := one("input_tokens") + one("text_tokens")
	var e trace.Entry
	for _, kind := range []string{"image", "audio", "video"} {
		tokens, isThere := w.fields[kind+"_tokens"]
		if !isThere {
			continue
		}
		count := int64(1)
		if w.fields[kind+"_count"] != nil {
			count = min(one(kind+"_count"), maxParts)
		}
		var sum int64
		for range count {
			sum += tokens.draw(draw[kind+"_tokens"])
		}
		input += sum
		if kind == "image" {
			e.Images, e.ImageTokens = trace.Ptr(int32(count)), trace.Ptr(int32(min(sum, math.MaxInt32)))
		} else if sum > 0 {
			s.notes.Count("requests with audio or video, whose tokens are counted in the input alone")
		}
	}
	output := one("output_tokens")
	e.InputTokens = trace.Ptr(int32(min(input, math.MaxInt32)))
	e.OutputTokens = trace.Ptr(int32(output))
	if w.fields["reason_ratio"] != nil {
		e.Reasoning = trace.Ptr(int32((one("reason_ratio")*output + ratioUnit/2) / ratioUnit))
	}
	return e
}

// maxParts bounds the images, or the like, of a request.
const maxParts = 10_000
