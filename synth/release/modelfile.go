package release

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"reprise/trace"
)

// modelSchema names the row layout of model files, under reprise.schema.
const modelSchema = "release/1"

// ErrNotModel is the error of [Read] for a file that is no such model.
var ErrNotModel = errors.New("it has no reprise.schema = " + modelSchema + ", so it is not a model of sessions")

// A cellRow is one cell of a table, those of weight 0 left out. Rows are in order of
// tables and cells.
type cellRow struct {
	trace.Row `parquet:"-"`
	Table     string `parquet:"table,dict"`
	Given     int32  `parquet:"given"`
	Column    int32  `parquet:"column"`
	Weight    int64  `parquet:"weight"` // in 1/1024 of a unit
}

// publicFacts are what a model file says of its layout in its metadata.
type publicFacts struct {
	SpanNS  int64      `json:"span_ns"`
	Block   int        `json:"block_size"`
	Users   bool       `json:"users"`
	Later   bool       `json:"later_turns"`
	Sourced bool       `json:"source_sessions"`
	Depth   int        `json:"trunk_blocks"`
	MaxIn   int64      `json:"max_input"`
	MaxOut  int64      `json:"max_output"`
	Rate    int        `json:"rate_cells"`
	Trunks  [][2]int32 `json:"trunks"` // blocks, and the trunk that it extends
}

func (m *Model) facts() publicFacts {
	f := publicFacts{m.span, m.size, m.users, m.later, m.sourced, m.depth, m.maxIn, m.maxOut, m.rate, [][2]int32{}}
	for _, t := range m.trunks {
		f.Trunks = append(f.Trunks, [2]int32{int32(t.depth), t.parent})
	}
	return f
}

// layout checks the facts.
func (f *publicFacts) layout() (l layout, ok bool) {
	l = layout{span: f.SpanNS, size: f.Block, users: f.Users, later: f.Later, sourced: f.Sourced, depth: f.Depth,
		maxIn: f.MaxIn, maxOut: f.MaxOut, rate: f.Rate}
	ok = l.span >= 1e9 && l.span < 1<<62 && l.size >= 0 && l.size <= 1<<20 && l.depth >= 0 && l.depth <= maxTrunk &&
		l.maxIn >= 2 && l.maxIn <= 1<<24 && l.maxOut >= 2 && l.maxOut <= 1<<24 && l.rate >= 1 && l.rate <= 256 &&
		(len(f.Trunks) == 0 || l.depth > 0)
	for i, t := range f.Trunks {
		l.trunks = append(l.trunks, trunk{int(t[0]), t[1]})
		ok = ok && t[0] >= 1 && int(t[0]) <= l.depth && t[1] >= none && t[1] < int32(i)
		ok = ok && (t[1] == none || l.trunks[t[1]].depth < int(t[0]))
	}
	if ok {
		l.edges()
	}
	return l, ok
}

func (m *Model) cells() (rows []cellRow) {
	for t, cells := range m.weights {
		_, columns := m.drawn(t)
		for i, w := range cells {
			if w > 0 {
				rows = append(rows, cellRow{Table: tableNames[t], Given: int32(i / columns),
					Column: int32(i % columns), Weight: w})
			}
		}
	}
	return rows
}

// digest is the SHA-256 over all that a drawing depends on, and what the model says
// about its privacy.
func (m *Model) digest() string {
	h := sha256.New()
	facts, _ := json.Marshal(m.facts()) // of numbers, so there is no error
	fmt.Fprintf(h, "%s\n%s\n%q %q\n", modelSchema, facts, m.meta.Unit, m.meta.Card)
	for _, r := range m.cells() {
		fmt.Fprintf(h, "%s %d %d %d\n", r.Table, r.Given, r.Column, r.Weight)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

const keyLayout = "reprise.release_layout"

// Write writes the model file.
func (m *Model) Write(w io.Writer) error {
	out := trace.NewRowsWriter[cellRow](w, nil)
	if _, err := out.Write(m.cells()); err != nil {
		return err
	}
	facts, err := json.Marshal(m.facts())
	if err != nil {
		return err
	}
	out.SetMetadata(keyLayout, string(facts))
	out.SetMetadata("reprise.epsilon", strconv.FormatFloat(m.about.Budget.Epsilon, 'g', -1, 64))
	out.SetMetadata("reprise.delta", strconv.FormatFloat(m.about.Budget.Delta, 'g', -1, 64))
	meta := m.meta
	meta.Schema = modelSchema
	meta.Each(out.SetMetadata)
	return out.Close()
}

// Read reads what [Model.Write] wrote, and refuses what it could not have.
func Read(r io.ReaderAt, size int64) (*Model, error) {
	in, err := trace.NewRowsReader[cellRow](r, size)
	if err != nil {
		return nil, ErrNotModel // it has other columns, or is no Parquet file
	}
	look := func(key string) string { s, _ := in.Metadata("reprise." + key); return s }
	if look("schema") != modelSchema {
		return nil, ErrNotModel
	}
	facts, _ := in.Metadata(keyLayout)
	var f publicFacts
	if json.Unmarshal([]byte(facts), &f) != nil {
		return nil, errors.New("its layout is damaged")
	}
	l, ok := f.layout()
	if !ok {
		return nil, errors.New("its layout is out of bounds")
	}
	m := &Model{layout: l, meta: trace.Meta{BlockSize: l.size, Tokenizer: look("tokenizer"), Template: look("template"),
		SourceFormat: look("source_format"), Captures: look("capture_ids"),
		Tier: look("tier"), Unit: look("unit"), Capture: trace.RelativeCapture(0, time.Duration(l.span)),
		Card: look("card"), CardHash: look("card_sha256"), Digest: look("digest")}}
	sum := sha256.Sum256([]byte(m.meta.Card))
	var c cardOf
	if json.Unmarshal([]byte(m.meta.Card), &c) != nil || c.Tier != m.meta.Tier || !releases(m.meta.Tier) ||
		c.Sessions == nil || c.Sessions.Unit != m.meta.Unit ||
		!(c.Sessions.Budget.Epsilon > 0) || hex.EncodeToString(sum[:]) != m.meta.CardHash {
		return nil, errors.New("its metadata contradict its privacy card")
	}
	m.about = *c.Sessions
	for t := range tables {
		rows, columns := m.drawn(t)
		m.weights[t] = make([]int64, rows*columns)
	}
	last := -1
	err = trace.Each(in, func(i int64, r *cellRow) error {
		t := slices.Index(tableNames[:], r.Table)
		if t < 0 {
			return fmt.Errorf("row %d of the model: its table is unknown", i)
		}
		rows, columns := m.drawn(t)
		at := t<<32 | int(r.Given)*columns + int(r.Column)
		if r.Given < 0 || int(r.Given) >= rows || r.Column < 0 || int(r.Column) >= columns || at <= last ||
			r.Weight < 1 || r.Weight > maxWeight/int64(rows*columns) {
			return fmt.Errorf("row %d of the model: its cell or its weight is out of bounds, or out of order", i)
		}
		last = at
		m.weights[t][at&(1<<32-1)] = r.Weight
		return nil
	})
	if err != nil {
		return nil, err
	}
	if m.digest() != m.meta.Digest {
		return nil, errors.New("the model is damaged: its rows do not match their digest")
	}
	m.units = max(1, m.weights[ofSessions][0]/weightOne)
	return m, nil
}
