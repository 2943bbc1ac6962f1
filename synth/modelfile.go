package synth

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"reprise/trace"
	"reprise/trace/arrival"
)

// Write writes the model file: Parquet, see [modelRow] and [cellRow]. Metadata say what was
// fitted, the tier of the trace, how tuples were swapped and what that is worth.
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
	out.SetMetadata(keyKind, kindTuples)
	out.SetMetadata(keyKSwap, strconv.Itoa(m.kSwap))
	if m.kSwap > 1 {
		out.SetMetadata(keyWindow, strconv.Itoa(swapWindow))
		out.SetMetadata(keyJitter, strconv.FormatFloat(swapJitter, 'g', -1, 64))
	}
	out.SetMetadata(keyPrivacy, privacyNote)
	out.SetMetadata(keyRequests, strconv.Itoa(len(m.tuples)))
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
// [ErrNotModel]; one that is damaged, or whose rows no fit could give, is an
// error that names the row.
func ReadModel(r io.ReaderAt, size int64) (*Model, error) {
	if in, err := trace.NewRowsReader[cellRow](r, size); err == nil {
		return readCells(in)
	}
	in, err := trace.NewRowsReader[modelRow](r, size)
	if err != nil {
		return nil, ErrNotModel
	}
	if s, _ := in.Metadata(keySchema); s != modelSchema {
		return nil, ErrNotModel
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

// A modelReader builds a model from its rows.
type modelReader struct {
	m        *Model
	requests int64
	labels   numbering[label]
	ends     numbering[end]
	cascades [][]arrival.CascadeRow
}

func (b *modelReader) metadata(lookup func(string) (string, bool)) error {
	number := func(key string, least, most int64) (int64, error) {
		s, _ := lookup(key)
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("its metadata %s is not a number from %d to %d", key, least, most)
		}
		return n, nil
	}
	if kind, _ := lookup(keyKind); kind != kindTuples {
		return errors.New("it is not a model of kind " + kindTuples)
	}
	k, err := number(keyKSwap, 1, math.MaxInt32)
	if err != nil {
		return err
	}
	if b.requests, err = number(keyRequests, 1, math.MaxInt32); err != nil {
		return err
	}
	m := b.m
	if m.span, err = number(keySpan, 1, math.MaxInt64/2); err != nil {
		return err
	}
	m.kSwap = int(k)
	if _, ok := lookup(keyBlock); ok {
		n, err := number(keyBlock, 1, 1<<20)
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
	case r.Table == tableTuples && len(b.cascades) == 0:
		reason = b.tuple(r)
	case r.Table == tableArrivals:
		reason = b.arrival(r)
	default:
		reason = "its table is unknown, or out of order"
	}
	if reason != "" {
		return fmt.Errorf("row %d of the model: %s", i, reason)
	}
	return nil
}

func (b *modelReader) tuple(r *modelRow) string {
	if reason := r.check(b.m.meta.BlockSize); reason != "" {
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
	t := tuple{user: none, fresh: r.Fresh, tail: r.Tail,
		reuse: reuse{label: b.labels.numberOf(l), category: categoryOf(r.Category), hit: r.Hit, trunk: r.Trunk, distance: r.Distance,
			profile: [3]int64{r.Distance25, r.Distance50, r.Distance75},
			chain:   r.Chain, join: join(r.Join), back: r.Back, turn: r.Turn, waits: r.Waits},
		ending: ending{output: r.OutputTokens, end: b.ends.numberOf(end{r.Status, r.FinishReason})}}
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
	b.m.tuples = append(b.m.tuples, t)
	return ""
}

// check says what is wrong with a tuple.
func (r *modelRow) check(size int) string {
	length := int64(r.Hit) + int64(r.Fresh)
	c := categoryOf(r.Category)
	switch {
	case r.User != nil && (*r.User < 0 || *r.User >= maxIDs):
		return "its user is not between 0 and 2^40"
	case r.Hit < 0 || r.Trunk < 0 || r.Fresh < 0 || r.Tail < 0 || r.OutputTokens < 0 || r.Turn < 0 || r.Chain < 0 || r.Back < 0:
		return "a count is negative"
	case length > maxBlocks || length*int64(size) > math.MaxInt32-int64(size):
		return "its prompt is too long"
	case length > 0 && (r.Tail < 1 || int(r.Tail) > size):
		return "its last block does not fit the block size"
	case length == 0 && size > 0 && r.Tail > 0:
		return "it has tokens but no blocks"
	case c == uncategorised && (r.Category != "" || length > 0), c != uncategorised && length == 0:
		return "its category is missing or unknown"
	case (c == cold) != (length > 0 && r.Hit == 0), c == duplicate && r.Fresh > 0:
		return "its category does not fit its blocks"
	case r.Join < 0 || r.Join >= int32(joins) || join(r.Join) == byRecency && r.Back == 0:
		return "how it joins its session is unknown"
	case r.Status == trace.StatusFailed:
		return "it failed, so it is no load"
	case r.Temperature != nil && math.IsNaN(float64(*r.Temperature)):
		return "its temperature is not a number"
	}
	for _, d := range [...]int64{r.Distance, r.Distance25, r.Distance50, r.Distance75} {
		if (d > 0) != (r.Hit > 0) || d < 0 {
			return "its distances do not fit its known blocks"
		}
	}
	return ""
}

func (b *modelReader) arrival(r *modelRow) string {
	n := int32(len(b.cascades))
	if n == 0 || r.Client != n-1 {
		if r.Client != n || n >= maxClients+1 {
			return "its client is out of order"
		}
		c := client{user: none}
		if r.User != nil {
			c.user = *r.User
		}
		b.m.clients = append(b.m.clients, c)
		b.cascades = append(b.cascades, nil)
	}
	b.cascades[r.Client] = append(b.cascades[r.Client], arrival.CascadeRow{Kind: r.Part, Level: r.Level, Contrast: r.Contrast,
		Bin: r.Bin, Left: r.Left, Right: r.Right, Count: r.Count})
	return ""
}

// finish makes the cascades and checks what only the whole tells.
func (b *modelReader) finish() (*Model, error) {
	m := b.m
	if int64(len(m.tuples)) != b.requests || len(m.clients) == 0 {
		return nil, errors.New("the model is damaged: its number of rows contradicts its metadata")
	}
	m.labels, m.ends = b.labels.values, b.ends.values
	if len(m.labels) > math.MaxUint16 {
		return nil, errTooManyLabels
	}
	for i, rows := range b.cascades {
		c, err := arrival.NewCascade(rows)
		if err != nil {
			return nil, fmt.Errorf("arrivals of client %d: %w", i, err)
		}
		m.clients[i].arrivals = c
	}
	for _, q := range m.tupleQueues() {
		if len(q.tuples) == 0 {
			return nil, errors.New("the model has a client without requests")
		}
	}
	if m.digest() != m.meta.Digest {
		return nil, errors.New("the model is damaged: its rows do not match their digest")
	}
	m.finish()
	return m, nil
}
