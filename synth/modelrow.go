package synth

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"

	"reprise/trace"
)

// Tables of a model file, in their order.
const (
	tableTuples   = "tuple"
	tableArrivals = "arrival"
)

// A modelRow is one row of schema model/1. One Parquet file holds two tables:
// the tuples of the fitted requests in their order, and after them the rows of
// each client's cascade of arrivals. Columns of the other table are zero or
// null.
type modelRow struct {
	trace.Row `parquet:"-"`
	Table     string `parquet:"table,dict"`
	User      *int64 `parquet:"user,optional"` // of the tuple, or of the client; null is all other users

	Model       string   `parquet:"model,optional,dict"`
	Adapter     string   `parquet:"adapter,optional,dict"`
	Kind        string   `parquet:"kind,optional,dict"`
	Class       *string  `parquet:"class,optional,dict"`
	Stream      *bool    `parquet:"stream,optional"`
	Temperature *float32 `parquet:"temperature,optional"`

	Category   string `parquet:"category,optional,dict"`
	Hit        int32  `parquet:"hit_blocks"`
	Trunk      int32  `parquet:"trunk_blocks"` // leading blocks that most requests of the domain carry, too
	Distance   int64  `parquet:"distance"`     // LRU stack distance in blocks of the deepest hit block
	Distance25 int64  `parquet:"distance_25"`
	Distance50 int64  `parquet:"distance_50"`
	Distance75 int64  `parquet:"distance_75"`
	Chain      int32  `parquet:"chain"` // requests that it builds on, one on the other; with sessions, turns up to the one that it extends
	Join       int32  `parquet:"join"`  // 0 no session, 1 a new one, 2 that of the request it extends, 3 by back
	Back       int64  `parquet:"back"`  // sessions active since, itself included
	Turn       int32  `parquet:"turn"`
	Waits      bool   `parquet:"waits"` // it was sent after another was done
	ThinkNS    *int64 `parquet:"think_ns,optional"`
	ToolNS     *int64 `parquet:"tool_ns,optional"`

	Fresh int32 `parquet:"fresh_blocks"`
	Tail  int32 `parquet:"tail_tokens"` // in the last block; all of the input without blocks

	OutputTokens    int32  `parquet:"output_tokens"`
	ReasoningTokens *int32 `parquet:"reasoning_tokens,optional"`
	ImageTokens     *int32 `parquet:"image_tokens,optional"`
	Images          *int32 `parquet:"images,optional"`
	MaxTokens       *int32 `parquet:"max_tokens,optional"`
	Status          string `parquet:"status,optional,dict"`
	FinishReason    string `parquet:"finish_reason,optional,dict"`
	CancelledNS     *int64 `parquet:"cancelled_ns,optional"` // from arrival to the end of a cancelled request

	Client   int32 `parquet:"client"` // the rest is a row of its cascade
	Part     int64 `parquet:"cascade_kind"`
	Level    int64 `parquet:"cascade_level"`
	Contrast int64 `parquet:"cascade_contrast"`
	Bin      int64 `parquet:"cascade_bin"`
	Left     int64 `parquet:"cascade_left"`
	Right    int64 `parquet:"cascade_right"`
	Count    int64 `parquet:"cascade_count"`
}

// row is the row of tuple t.
func (m *Model) row(t *tuple) modelRow {
	l, e := &m.labels[t.label], &m.ends[t.end]
	r := modelRow{Table: tableTuples, Model: l.model, Adapter: l.adapter, Kind: l.kind,
		Category: t.category.String(), Hit: t.hit, Trunk: t.trunk, Distance: t.distance,
		Distance25: t.profile[0], Distance50: t.profile[1], Distance75: t.profile[2],
		Chain: t.chain, Join: int32(t.join), Back: t.back, Turn: t.turn, Waits: t.waits, Fresh: t.fresh, Tail: t.tail,
		OutputTokens: t.output, Status: e.status, FinishReason: e.finish}
	if t.user != none {
		r.User = trace.Ptr(t.user)
	}
	if l.hasClass {
		r.Class = &l.class
	}
	if l.stream != none {
		r.Stream = trace.Ptr(l.stream == 1)
	}
	if l.hasTemperature {
		r.Temperature = &l.temperature
	}
	if p := t.pause; p != nil {
		r.ThinkNS, r.ToolNS = p.think, p.tool
	}
	if x := t.extra; x != nil {
		r.ReasoningTokens, r.ImageTokens, r.Images, r.MaxTokens = x.reasoning, x.imageTokens, x.images, x.maxTokens
		r.CancelledNS = x.cancelledAt
	}
	return r
}

// eachRow calls f with every row of the model file.
func (m *Model) eachRow(f func(*modelRow) error) error {
	for i := range m.tuples {
		r := m.row(&m.tuples[i])
		if err := f(&r); err != nil {
			return err
		}
	}
	for i, c := range m.clients {
		for _, a := range c.arrivals.Rows() {
			r := modelRow{Table: tableArrivals, Client: int32(i), Part: a.Kind, Level: a.Level, Contrast: a.Contrast,
				Bin: a.Bin, Left: a.Left, Right: a.Right, Count: a.Count}
			if c.user != none {
				r.User = trace.Ptr(c.user)
			}
			if err := f(&r); err != nil {
				return err
			}
		}
	}
	return nil
}

// digest is the SHA-256 over all that a workload depends on: the rows, the
// block size and the span. Fields come in the order of the columns: numbers as
// varints, strings after their length, optional ones after a byte.
func (m *Model) digest() string {
	h := sha256.New()
	h.Write([]byte(modelSchema + "\n"))
	b := binary.AppendVarint(nil, int64(m.meta.BlockSize))
	b = binary.AppendVarint(b, m.span)
	_ = m.eachRow(func(r *modelRow) error { // f gives no error, so there is none
		h.Write(r.canonical(b))
		b = b[:0]
		return nil
	})
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func (r *modelRow) canonical(b []byte) []byte {
	str := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	num := func(n int64) { b = binary.AppendVarint(b, n) }
	bit := func(set bool) {
		if set {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	opt := func(p *int64) {
		if bit(p != nil); p != nil {
			num(*p)
		}
	}
	opt32 := func(p *int32) {
		if bit(p != nil); p != nil {
			num(int64(*p))
		}
	}
	str(r.Table)
	opt(r.User)
	str(r.Model)
	str(r.Adapter)
	str(r.Kind)
	if bit(r.Class != nil); r.Class != nil {
		str(*r.Class)
	}
	if bit(r.Stream != nil); r.Stream != nil {
		bit(*r.Stream)
	}
	if bit(r.Temperature != nil); r.Temperature != nil {
		num(int64(math.Float32bits(*r.Temperature)))
	}
	str(r.Category)
	for _, n := range [...]int64{int64(r.Hit), int64(r.Trunk), r.Distance, r.Distance25, r.Distance50, r.Distance75, int64(r.Chain), int64(r.Join), r.Back, int64(r.Turn)} {
		num(n)
	}
	bit(r.Waits)
	opt(r.ThinkNS)
	opt(r.ToolNS)
	num(int64(r.Fresh))
	num(int64(r.Tail))
	num(int64(r.OutputTokens))
	for _, p := range [...]*int32{r.ReasoningTokens, r.ImageTokens, r.Images, r.MaxTokens} {
		opt32(p)
	}
	str(r.Status)
	str(r.FinishReason)
	opt(r.CancelledNS)
	for _, n := range [...]int64{int64(r.Client), r.Part, r.Level, r.Contrast, r.Bin, r.Left, r.Right, r.Count} {
		num(n)
	}
	return b
}
