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
	tableTemplates = "template"
	tablePlaces    = "place"
	tableArrivals  = "arrival"
)

// A modelRow is one row of schema model/2. One Parquet file holds three tables: the
// templates, the places of the fitted requests in their order, and the rows of the cascade
// of arrivals. Columns of the other tables are zero or null. Templates and places are numbered from 0.
type modelRow struct {
	trace.Row `parquet:"-"`
	Table     string `parquet:"table,dict"`
	User      *int64 `parquet:"user,optional"`

	Model       string   `parquet:"model,optional,dict"`
	Adapter     string   `parquet:"adapter,optional,dict"`
	Kind        string   `parquet:"kind,optional,dict"`
	Class       *string  `parquet:"class,optional,dict"`
	Stream      *bool    `parquet:"stream,optional"`
	Temperature *float32 `parquet:"temperature,optional"`

	// how it builds on its parent: opens, continues, edits, branches or repeats
	Builds string `parquet:"builds,optional,dict"`
	Parent *int64 `parquet:"parent,optional"` // the place whose prompt it builds on; null for opens
	Hit    int32  `parquet:"hit_blocks"`      // leading blocks that it has of the parent's
	// when it was fitted, the parent's own blocks began behind this one,
	ParentHit    int32 `parquet:"parent_hit_blocks"`
	ParentFull   int32 `parquet:"parent_full_blocks"` // the last full one was this,
	ParentBlocks int32 `parquet:"parent_blocks"`      // and these were all
	// of opens: the template that it follows; of a template: the one that it goes on from
	Template *int64 `parquet:"template,optional"`
	// of opens: leading blocks on the template; of a template: it goes on behind so many
	Trunk  int32 `parquet:"trunk_blocks"`
	Shared bool  `parquet:"shared"`       // of a template: all users have it
	Cut    bool  `parquet:"cut"`          // of a template: a sample of trees has a part of those that follow it
	Fresh  int32 `parquet:"fresh_blocks"` // of opens and branches: blocks behind those
	// of opens and branches: tokens in the last block; all of the input without blocks
	Tail   int32 `parquet:"tail_tokens"`
	Growth int32 `parquet:"growth_tokens"` // of continues and edits: tokens more than the parent has

	Join    int32  `parquet:"join"`            // 0 no session, 1 a new one, 2 that of the parent, 3 that of After
	After   *int64 `parquet:"after,optional"`  // place
	Waits   bool   `parquet:"waits"`           // it was sent after another was done
	GapNS   *int64 `parquet:"gap_ns,optional"` // since the place before
	ThinkNS *int64 `parquet:"think_ns,optional"`
	ToolNS  *int64 `parquet:"tool_ns,optional"`

	OutputTokens    *int32 `parquet:"output_tokens,optional"` // nil where the trace does not tell it
	ReasoningTokens *int32 `parquet:"reasoning_tokens,optional"`
	ImageTokens     *int32 `parquet:"image_tokens,optional"`
	Images          *int32 `parquet:"images,optional"`
	MaxTokens       *int32 `parquet:"max_tokens,optional"`
	Status          string `parquet:"status,optional,dict"`
	FinishReason    string `parquet:"finish_reason,optional,dict"`
	CancelledNS     *int64 `parquet:"cancelled_ns,optional"` // from arrival to the end of a cancelled request

	Part     int64 `parquet:"cascade_kind"` // the rest is a row of the cascade
	Level    int64 `parquet:"cascade_level"`
	Contrast int64 `parquet:"cascade_contrast"`
	Bin      int64 `parquet:"cascade_bin"`
	Left     int64 `parquet:"cascade_left"`
	Right    int64 `parquet:"cascade_right"`
	Count    int64 `parquet:"cascade_count"`
}

// AddedColumns implements [trace.Grown].
func (modelRow) AddedColumns() []string { return []string{"gap_ns", "cut"} }

var classNames = [classes]string{"opens", "continues", "edits", "branches", "repeats"}

// row is the row of a place.
func (m *Model) row(t *place) modelRow {
	l, e := &m.labels[t.label], &m.ends[t.end]
	r := modelRow{Table: tablePlaces, Model: l.model, Adapter: l.adapter, Kind: l.kind,
		Builds: classNames[t.class], Parent: placeNumber(t.parent), Hit: t.hit, ParentHit: t.parentHit,
		ParentFull: t.parentFull, ParentBlocks: t.parentLength,
		Template: placeNumber(t.template), Trunk: t.trunk, Fresh: t.fresh, Tail: t.tail, Growth: t.growth,
		Join: int32(t.join), After: placeNumber(t.after), Waits: t.waits,
		Status: e.status, FinishReason: e.finish}
	if t.output != none {
		r.OutputTokens = trace.Ptr(t.output)
	}
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

func placeNumber(p int32) *int64 {
	if p == none {
		return nil
	}
	return trace.Ptr(int64(p))
}

// eachRow calls f with every row of the model file.
func (m *Model) eachRow(f func(*modelRow) error) error {
	for _, t := range m.templates {
		if err := f(&modelRow{Table: tableTemplates, Template: placeNumber(t.up), Trunk: t.from, Shared: t.shared,
			Cut: t.cut}); err != nil {
			return err
		}
	}
	for i := range m.places {
		r := m.row(&m.places[i])
		if m.gaps != nil {
			r.GapNS = &m.gaps[i]
		}
		if err := f(&r); err != nil {
			return err
		}
	}
	for _, a := range m.arrivals.Rows() {
		r := modelRow{Table: tableArrivals, Part: a.Kind, Level: a.Level, Contrast: a.Contrast,
			Bin: a.Bin, Left: a.Left, Right: a.Right, Count: a.Count}
		if err := f(&r); err != nil {
			return err
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
	if s := m.sampled; s != nil {
		b = binary.AppendVarint(binary.AppendVarint(b, s.OneIn), s.Requests)
	}
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
	str(r.Builds)
	opt(r.Parent)
	for _, n := range [...]int32{r.Hit, r.ParentHit, r.ParentFull, r.ParentBlocks, r.Trunk, r.Fresh, r.Tail,
		r.Growth, r.Join} {
		num(int64(n))
	}
	if r.Template != nil || r.Shared || r.Table == tableTemplates {
		// models without templates keep the digests that they had
		opt(r.Template)
		bit(r.Shared)
	}
	if r.Cut { // models without them keep the digests that they had
		b = append(b, 2)
	}
	opt(r.After)
	bit(r.Waits)
	if r.GapNS != nil { // models without gaps keep the digests that they had
		b = append(b, 2)
		num(*r.GapNS)
	}
	opt(r.ThinkNS)
	opt(r.ToolNS)
	switch { // models of known lengths keep the digests that they had when the column was never empty
	case r.OutputTokens != nil:
		num(int64(*r.OutputTokens))
	case r.Table != tablePlaces: // which have no lengths
		num(0)
	default:
		num(-1)
	}
	for _, p := range [...]*int32{r.ReasoningTokens, r.ImageTokens, r.Images, r.MaxTokens} {
		opt32(p)
	}
	str(r.Status)
	str(r.FinishReason)
	opt(r.CancelledNS)
	for _, n := range [...]int64{r.Part, r.Level, r.Contrast, r.Bin, r.Left, r.Right, r.Count} {
		num(n)
	}
	return b
}
