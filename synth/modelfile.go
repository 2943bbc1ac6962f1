package synth

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"reprise/trace"
	"reprise/trace/arrival"
)

// Write writes the model file: Parquet, see [modelRow] and [cellRow]. Metadata say what was
// fitted, the tier of the trace, how places were swapped and what that is worth.
func (m *Model) Write(w io.Writer) error {
	if m.cells != nil {
		return m.writeCells(w)
	}
	out := trace.NewRowsWriter[modelRow](w, nil)
	batch := make([]modelRow, 0, 512)
	flush := func() error {
		_, err := out.Write(batch)
		batch = batch[:0]
		return err
	}
	err := m.eachRow(func(r *modelRow) error {
		if batch = append(batch, *r); len(batch) == cap(batch) {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	out.SetMetadata(keySchema, modelSchema)
	out.SetMetadata(keyKind, kindPlaces)
	out.SetMetadata(keyKSwap, strconv.Itoa(m.kSwap))
	if m.kSwap > 1 {
		out.SetMetadata(keyJitter, strconv.FormatFloat(swapJitter, 'g', -1, 64))
	}
	out.SetMetadata(keySwapped, m.swapped.text())
	if m.sampled != nil {
		out.SetMetadata(keySampled, m.sampled.text())
	}
	out.SetMetadata(keyPrivacy, privacyNote)
	out.SetMetadata(keyRequests, strconv.Itoa(len(m.places)))
	out.SetMetadata(keySpan, strconv.FormatInt(m.span, 10))
	if m.meta.BlockSize > 0 {
		out.SetMetadata(keyBlock, strconv.Itoa(m.meta.BlockSize))
	}
	for _, p := range inherited(&m.meta) {
		if *p.value != "" {
			out.SetMetadata(p.key, *p.value)
		}
	}
	return out.Close()
}

// ReadModel reads a model file of size bytes. A file of another kind is
// [ErrNotModel], and one of an earlier version another error; one that is damaged, or
// whose rows no fit could give, is an error that names the row.
func ReadModel(r io.ReaderAt, size int64) (*Model, error) {
	if in, err := trace.NewRowsReader[anyRow](r, size); err != nil {
		return nil, ErrNotModel
	} else if s, _ := in.Metadata(keySchema); s == oldSchema {
		return nil, errOldModel
	} else if s != modelSchema {
		return nil, ErrNotModel
	}
	if in, err := trace.NewRowsReader[cellRow](r, size); err == nil {
		return readCells(in)
	}
	in, err := trace.NewRowsReader[modelRow](r, size)
	if err != nil {
		return nil, err
	}
	b := modelReader{m: &Model{}}
	if err := b.metadata(in.Metadata); err != nil {
		return nil, err
	}
	if err := trace.Each(in, b.row); err != nil {
		return nil, err
	}
	return b.finish()
}

// An anyRow is the part of a row that all kinds of model files have.
type anyRow struct {
	trace.Row `parquet:"-"`
	Table     string `parquet:"table,dict"`
}

// A modelReader builds a model from its rows.
type modelReader struct {
	m        *Model
	requests int64
	labels   numbering[label]
	ends     numbering[end]
	cascade  []arrival.CascadeRow
}

func (b *modelReader) metadata(lookup func(string) (string, bool)) error {
	number := func(key string, most int64) (int64, error) {
		s, _ := lookup(key)
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 1 || n > most {
			return 0, fmt.Errorf("its metadata %s is not a number from 1 to %d", key, most)
		}
		return n, nil
	}
	if kind, _ := lookup(keyKind); kind != kindPlaces {
		return errors.New("it is not a model of kind " + kindPlaces)
	}
	k, err := number(keyKSwap, math.MaxInt32)
	if err != nil {
		return err
	}
	if b.requests, err = number(keyRequests, math.MaxInt32); err != nil {
		return err
	}
	m := b.m
	if m.span, err = number(keySpan, math.MaxInt64/2); err != nil {
		return err
	}
	m.kSwap = int(k)
	if text, ok := lookup(keySwapped); ok {
		if m.swapped, err = parseSwapped(text); err != nil {
			return err
		}
	}
	if text, ok := lookup(keySampled); ok {
		if m.sampled, err = parseSampled(text, b.requests); err != nil {
			return err
		}
	}
	if _, ok := lookup(keyBlock); ok {
		n, err := number(keyBlock, 1<<20)
		if err != nil {
			return err
		}
		m.meta.BlockSize = int(n)
	}
	for _, p := range inherited(&m.meta) {
		*p.value, _ = lookup(p.key)
	}
	return nil
}

func (b *modelReader) row(i int64, r *modelRow) error {
	var reason string
	switch {
	case r.Table == tableTemplates && len(b.m.places) == 0 && len(b.cascade) == 0:
		reason = b.template(r)
	case r.Table == tablePlaces && len(b.cascade) == 0:
		reason = b.place(r)
	case r.Table == tableArrivals:
		b.cascade = append(b.cascade, arrival.CascadeRow{Kind: r.Part, Level: r.Level, Contrast: r.Contrast,
			Bin: r.Bin, Left: r.Left, Right: r.Right, Count: r.Count})
	default:
		reason = "its table is unknown, or out of order"
	}
	if reason != "" {
		return fmt.Errorf("row %d of the model: %s", i, reason)
	}
	return nil
}

// template takes a template, which goes on from one before it, behind the beginning of that.
func (b *modelReader) template(r *modelRow) string {
	t := template{up: none, from: r.Trunk, shared: r.Shared, cut: r.Cut}
	if r.Template != nil && (*r.Template < 0 || *r.Template >= int64(len(b.m.templates))) {
		return "it goes on from no template before it"
	}
	if r.Template != nil {
		t.up = int32(*r.Template)
	}
	switch {
	case t.from < 0 || t.from > maxBlocks || (t.up == none) != (t.from == 0), t.up != none &&
		b.m.templates[t.up].from >= t.from:
		return "it does not go on where a template is"
	case t.shared && t.cut, t.up != none &&
		(t.shared && !b.m.templates[t.up].shared || t.cut && !b.m.templates[t.up].several()):
		return "more share it than the template above it"
	}
	b.m.templates = append(b.m.templates, t)
	return ""
}

func (b *modelReader) place(r *modelRow) string {
	if reason := r.check(b.m.meta.BlockSize, int64(len(b.m.places)), b.m.templates); reason != "" {
		return reason
	}
	l := label{model: r.Model, adapter: r.Adapter, kind: r.Kind, stream: none}
	if r.Class != nil {
		l.class, l.hasClass = *r.Class, true
	}
	if r.Stream != nil {
		if l.stream = 0; *r.Stream {
			l.stream = 1
		}
	}
	if r.Temperature != nil {
		l.temperature, l.hasTemperature = *r.Temperature, true
	}
	t := place{user: none, label: b.labels.numberOf(l), template: none,
		link: link{class: class(slices.Index(classNames[:], r.Builds)), parent: none, hit: r.Hit,
			parentHit: r.ParentHit, parentFull: r.ParentFull, parentLength: r.ParentBlocks},
		seat: seat{join: join(r.Join), after: none, waits: r.Waits},
		size: size{trunk: r.Trunk, fresh: r.Fresh, tail: r.Tail, growth: r.Growth}, ending: ending{output: none,
			end: b.ends.numberOf(end{r.Status, r.FinishReason})}}
	if r.OutputTokens != nil {
		t.output = *r.OutputTokens
	}
	if r.Parent != nil {
		t.parent = int32(*r.Parent)
	}
	if r.After != nil {
		t.after = int32(*r.After)
	}
	if r.Template != nil {
		t.template = int32(*r.Template)
	}
	if r.User != nil {
		t.user = *r.User
	}
	if r.ThinkNS != nil || r.ToolNS != nil {
		t.pause = &pause{r.ThinkNS, r.ToolNS}
	}
	x := extra{r.ReasoningTokens, r.ImageTokens, r.Images, r.MaxTokens, r.CancelledNS}
	if x != (extra{}) {
		t.extra = &x
	}
	switch {
	case (r.GapNS != nil) != (len(b.m.gaps) == len(b.m.places)) && len(b.m.places) > 0:
		return "it has a gap between arrivals and others have none"
	case r.GapNS != nil:
		b.m.gaps = append(b.m.gaps, *r.GapNS)
	}
	b.m.places = append(b.m.places, t)
	return ""
}

// check says what is wrong with the row of place n.
func (r *modelRow) check(size int, n int64, templates []template) string {
	opens, sized := r.Builds == classNames[opens], r.Builds == classNames[opens] || r.Builds == classNames[branches]
	length := int64(r.Trunk) + int64(r.Fresh)
	if !opens {
		length = int64(r.Hit) + int64(r.Fresh)
	}
	switch {
	case r.User != nil && (*r.User < 0 || *r.User >= maxIDs):
		return "its user is not between 0 and 2^40"
	case r.Hit < 0 || r.ParentHit < 0 || r.ParentFull < 0 || r.ParentBlocks < 0 || r.Trunk < 0 || r.Fresh < 0 ||
		r.Tail < 0 || r.OutputTokens != nil && *r.OutputTokens < 0:
		return "a count is negative"
	case !slices.Contains(classNames[:], r.Builds):
		return "how it builds on its parent is unknown"
	case opens != (r.Parent == nil) || r.Parent != nil && (*r.Parent < 0 || *r.Parent >= n):
		return "its parent is not a place before it"
	case opens && (r.Hit > 0 || r.ParentHit > 0 || r.ParentFull > 0 || r.ParentBlocks > 0),
		!opens && (r.Trunk > 0 || r.Hit == 0 || size == 0),
		!sized && (r.Fresh > 0 || r.Tail > 0), r.Builds == classNames[branches] && r.Fresh == 0:
		return "its blocks do not fit how it builds on its parent"
	case r.Trunk > 0 && r.Template == nil:
		return "it follows a prefix that the model does not name: fit the trace again with reprise synth fit"
	case r.Template != nil && (*r.Template < 0 || *r.Template >= int64(len(templates)) ||
		r.Trunk <= templates[*r.Template].from):
		return "it does not follow its template"
	case length > maxBlocks || length*int64(size) > maxTokens, max(r.Growth, -r.Growth) > maxTokens/2, r.Growth != 0 &&
		(sized || r.Builds == classNames[repeats]):
		return "its prompt is too long"
	case sized && length > 0 && (r.Tail < 1 || int(r.Tail) > size):
		return "its last block does not fit the block size"
	case length == 0 && size > 0 && r.Tail > 0:
		return "it has tokens but no blocks"
	case r.Join < 0 || r.Join >= int32(joins), (join(r.Join) == byPlace) != (r.After != nil), r.After != nil &&
		(*r.After < 0 || *r.After >= n), join(r.Join) == byParent && opens:
		return "how it joins its session is unknown"
	case r.GapNS != nil && (*r.GapNS < 0 || *r.GapNS > math.MaxInt64/2):
		return "its gap between arrivals is not between 0 and 2^62 nanoseconds"
	case r.Status == trace.StatusFailed:
		return "it failed, so it is no load"
	case r.Temperature != nil && math.IsNaN(float64(*r.Temperature)):
		return "its temperature is not a number"
	}
	return ""
}

// finish makes the cascade and checks what only the whole tells.
func (b *modelReader) finish() (*Model, error) {
	m := b.m
	if int64(len(m.places)) != b.requests || len(b.cascade) == 0 {
		return nil, errors.New("the model is damaged: its number of rows contradicts its metadata")
	}
	m.labels, m.ends = b.labels.values, b.ends.values
	if len(m.labels) > math.MaxUint16 {
		return nil, errTooManyLabels
	}
	var err error
	if m.arrivals, err = arrival.NewCascade(b.cascade); err != nil {
		return nil, fmt.Errorf("arrivals: %w", err)
	}
	if m.arrivals.Span() != m.span {
		return nil, errors.New("the model is damaged: its arrivals have another span")
	}
	left := m.span
	for _, gap := range m.gaps {
		if left -= gap; left < 0 {
			return nil, errors.New("the model is damaged: its gaps between arrivals are longer than its span")
		}
	}
	if m.digest() != m.meta.Digest {
		return nil, errors.New("the model is damaged: its rows do not match their digest")
	}
	m.finish()
	return m, nil
}
