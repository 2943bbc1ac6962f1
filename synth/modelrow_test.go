package synth

import (
	"bytes"
	"cmp"
	"math"
	"reflect"
	"testing"

	"reprise/trace"
)

// aRow is a row with a value in each column of a place that may have one, as far as they
// go together. It needs a row before it.
func aRow() modelRow {
	return modelRow{Table: tablePlaces, User: trace.Ptr(int64(3)), Model: "m", Adapter: "a", Kind: "chat", Class: trace.Ptr("batch"),
		Stream: trace.Ptr(true), Temperature: trace.Ptr(float32(0.5)), Builds: "branches", Parent: trace.Ptr(int64(0)), Hit: 4, ParentHit: 2, ParentFull: 7, ParentBlocks: 8,
		Join: int32(byPlace), After: trace.Ptr(int64(0)), Waits: true, ThinkNS: trace.Ptr(int64(8)), ToolNS: trace.Ptr(int64(9)),
		Fresh: 10, Tail: 12, OutputTokens: trace.Ptr[int32](13), ReasoningTokens: trace.Ptr(int32(14)), ImageTokens: trace.Ptr(int32(15)), Images: trace.Ptr(int32(16)),
		MaxTokens: trace.Ptr(int32(17)), Status: "ok", FinishReason: "stop", CancelledNS: trace.Ptr(int64(18))}
}

// bareRow is a row with nothing but a length.
func bareRow() modelRow {
	return modelRow{Table: tablePlaces, Builds: "opens", Fresh: 1, Tail: 16}
}

// templateRow is a row of a template that all populations share.
func templateRow() modelRow { return modelRow{Table: tableTemplates, Shared: true} }

// openRow is a row that begins a session behind a template.
func openRow() modelRow {
	return modelRow{Table: tablePlaces, Builds: "opens", Template: trace.Ptr(int64(0)), Trunk: 2, Fresh: 6, Tail: 3, Join: int32(begins)}
}

// nextRow is a row that continues the first.
func nextRow() modelRow {
	return modelRow{Table: tablePlaces, Builds: "continues", Parent: trace.Ptr(int64(0)), Hit: 7, ParentHit: 2, ParentFull: 7, ParentBlocks: 8, Growth: 20, Join: int32(byParent)}
}

// modelOf makes a model of rows of templates and places.
func modelOf(t testing.TB, rows []modelRow) *Model {
	t.Helper()
	plain := fitted(t, []trace.Request{{InputTokens: 5}, {ArrivalNS: 1e9, InputTokens: 70}}, trace.Meta{}, 1, 0)
	b := modelReader{m: &Model{kSwap: 1, span: plain.span, arrivals: plain.arrivals, meta: trace.Meta{BlockSize: 16}}}
	for i := range rows {
		if err := b.row(int64(i), &rows[i]); err != nil {
			t.Fatal(err)
		}
	}
	b.m.labels, b.m.ends = b.labels.values, b.ends.values
	b.m.finish()
	b.m.meta.Digest = b.m.digest()
	return b.m
}

// rowsOf lists the rows of a model's file.
func rowsOf(t testing.TB, m *Model) []modelRow {
	t.Helper()
	b := written(t, m)
	in, err := trace.NewRowsReader[modelRow](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var rows []modelRow
	if err := trace.Each(in, func(_ int64, r *modelRow) error {
		rows = append(rows, *r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return rows
}

// Every column of a place comes back as it was written, and every one of the arrivals.
func TestModelRowsComeBack(t *testing.T) {
	still := aRow()
	still.Stream, still.ThinkNS, still.Waits = trace.Ptr(false), nil, false
	rows := []modelRow{templateRow(), {Table: tableTemplates, Template: trace.Ptr(int64(0)), Trunk: 1}, openRow(), aRow(), nextRow(), bareRow(), still}
	m := modelOf(t, rows)
	got := rowsOf(t, m)
	for i, want := range rows {
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("row %d is %+v, want %+v", i, got[i], want)
		}
	}
	for i, a := range m.arrivals.Rows() {
		want := modelRow{Table: tableArrivals, Part: a.Kind, Level: a.Level, Contrast: a.Contrast, Bin: a.Bin, Left: a.Left, Right: a.Right, Count: a.Count}
		if got := got[len(rows)+i]; !reflect.DeepEqual(got, want) {
			t.Errorf("row %d of the arrivals is %+v, want %+v", i, got, want)
		}
	}
	back, err := read(written(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back.places, m.places) || !reflect.DeepEqual(back.templates, m.templates) || !reflect.DeepEqual(rowsOf(t, back), got) {
		t.Error("the file of a file is another")
	}
}

// The digest of a model covers every column, the block size and the span. That of
// these rows was written down, so that files of earlier builds still read.
func TestModelDigestCoversAll(t *testing.T) {
	known := []modelRow{templateRow(), openRow(), aRow(), nextRow()}
	for i := range known[1:] {
		i++
		known[i].OutputTokens = cmp.Or(known[i].OutputTokens, trace.Ptr[int32](0))
	}
	m := modelOf(t, known)
	const want = "sha256:2ea1072736d65e763171ceda23a205f8315d69a596388be136525a31c1c9c8b8"
	if got := m.digest(); got != want {
		t.Errorf("the digest is %s, want %s", got, want)
	}
	seen := map[string]string{m.digest(): "nothing"}
	look := func(what, digest string) {
		if old, ok := seen[digest]; ok {
			t.Errorf("the digest does not tell %s from %s", what, old)
		}
		seen[digest] = what
	}
	fields := reflect.TypeFor[modelRow]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if name == "Row" {
			continue
		}
		a, b := aRow(), aRow()
		a.GapNS, b.GapNS = trace.Ptr[int64](9), trace.Ptr[int64](9)
		v := reflect.ValueOf(&b).Elem().Field(i)
		optional := v.Kind() == reflect.Pointer
		if optional {
			v.Set(reflect.New(v.Type().Elem()))
			v = v.Elem()
		}
		switch old := reflect.ValueOf(&a).Elem().Field(i); v.Kind() {
		case reflect.String:
			v.SetString("other " + name)
		case reflect.Bool:
			v.SetBool(optional == false && !old.Bool())
		case reflect.Float32:
			v.SetFloat(0.25)
		default:
			v.SetInt(100 + int64(i))
		}
		look(name, string(b.canonical(nil)))
		if optional {
			v := reflect.ValueOf(&b).Elem().Field(i)
			v.Set(reflect.Zero(v.Type()))
			look("no "+name, string(b.canonical(nil)))
		}
	}
	m.span++
	look("the span", m.digest())
	m.meta.BlockSize++
	look("the block size", m.digest())
}

// What is wrong with a place, at the bounds.
func TestModelPlaceChecked(t *testing.T) {
	const count, tail, builds, parent, blocks, long, user, how = "a count is negative", "its last block does not fit the block size", "how it builds on its parent is unknown",
		"its parent is not a place before it", "its blocks do not fit how it builds on its parent", "its prompt is too long", "its user is not between 0 and 2^40", "how it joins its session is unknown"
	const old, follows = "it follows a prefix that the model does not name: fit the trace again with reprise synth fit", "it does not follow its template"
	for i, c := range []struct {
		change func(r *modelRow)
		want   string
	}{
		{func(r *modelRow) {}, ""},
		{func(r *modelRow) { r.User = trace.Ptr(int64(-1)) }, user},
		{func(r *modelRow) { r.User = trace.Ptr(int64(0)) }, ""},
		{func(r *modelRow) { r.User = trace.Ptr(int64(maxIDs - 1)) }, ""},
		{func(r *modelRow) { r.User = trace.Ptr(int64(maxIDs)) }, user},
		{func(r *modelRow) { r.Hit = -1 }, count},
		{func(r *modelRow) { r.ParentHit = -1 }, count},
		{func(r *modelRow) { r.ParentFull = -1 }, count},
		{func(r *modelRow) { r.ParentBlocks = -1 }, count},
		{func(r *modelRow) { r.Trunk = -1 }, count},
		{func(r *modelRow) { r.Fresh = -1 }, count},
		{func(r *modelRow) { r.Tail = -1 }, count},
		{func(r *modelRow) { r.OutputTokens = trace.Ptr[int32](-1) }, count},
		{func(r *modelRow) {
			r.ParentHit, r.ParentFull, r.ParentBlocks, r.OutputTokens = 0, 0, 0, trace.Ptr[int32](0)
		}, ""},
		{func(r *modelRow) { r.Builds = "" }, builds},
		{func(r *modelRow) { r.Builds = "copies" }, builds},
		{func(r *modelRow) { r.Parent = nil }, parent},
		{func(r *modelRow) { r.Parent = trace.Ptr(int64(-1)) }, parent},
		{func(r *modelRow) { r.Parent = trace.Ptr(int64(2)) }, parent},
		{func(r *modelRow) { r.Parent = trace.Ptr(int64(1)) }, ""},
		{func(r *modelRow) { *r = openRow(); r.Parent = trace.Ptr(int64(1)) }, parent},
		{func(r *modelRow) { *r = openRow(); r.Hit = 1 }, blocks},
		{func(r *modelRow) { *r = openRow(); r.ParentBlocks = 1 }, blocks},
		{func(r *modelRow) { r.Hit = 0 }, blocks},
		{func(r *modelRow) { r.Trunk = 1 }, blocks},
		{func(r *modelRow) { r.Fresh = 0 }, blocks},
		{func(r *modelRow) { *r = nextRow(); r.Fresh = 1 }, blocks},
		{func(r *modelRow) { *r = nextRow(); r.Tail = 1 }, blocks},
		{func(r *modelRow) { *r = nextRow(); r.Builds = "edits" }, ""},
		{func(r *modelRow) { *r = nextRow(); r.Builds, r.Growth = "repeats", 0 }, ""},
		{func(r *modelRow) { *r = nextRow(); r.Builds = "repeats" }, long},
		{func(r *modelRow) { *r = openRow() }, ""},
		{func(r *modelRow) { *r = openRow(); r.Template = nil }, old},
		{func(r *modelRow) { *r = openRow(); r.Template = trace.Ptr(int64(-1)) }, follows},
		{func(r *modelRow) { *r = openRow(); r.Template = trace.Ptr(int64(1)) }, follows},
		{func(r *modelRow) { *r = openRow(); r.Template, r.Trunk = trace.Ptr(int64(1)), 3 }, ""},
		{func(r *modelRow) { *r = openRow(); r.Template = trace.Ptr(int64(2)) }, follows},
		{func(r *modelRow) { r.Growth = 1 }, long},
		{func(r *modelRow) { *r = nextRow(); r.Growth = -maxTokens / 2 }, ""},
		{func(r *modelRow) { *r = nextRow(); r.Growth = -maxTokens/2 - 1 }, long},
		{func(r *modelRow) { r.Fresh = maxBlocks - 4 }, ""},
		{func(r *modelRow) { r.Fresh = maxBlocks - 3 }, long},
		{func(r *modelRow) { r.Tail = 1 }, ""},
		{func(r *modelRow) { r.Tail = 0 }, tail},
		{func(r *modelRow) { r.Tail = 16 }, ""},
		{func(r *modelRow) { r.Tail = 17 }, tail},
		{func(r *modelRow) { *r = modelRow{Builds: "opens", Tail: 0} }, ""},
		{func(r *modelRow) { *r = modelRow{Builds: "opens", Tail: 1} }, "it has tokens but no blocks"},
		{func(r *modelRow) { r.Join = -1 }, how},
		{func(r *modelRow) { r.Join = 4 }, how},
		{func(r *modelRow) { r.Join = 0 }, how},
		{func(r *modelRow) { r.Join, r.After = 0, nil }, ""},
		{func(r *modelRow) { r.After = nil }, how},
		{func(r *modelRow) { r.After = trace.Ptr(int64(-1)) }, how},
		{func(r *modelRow) { r.After = trace.Ptr(int64(2)) }, how},
		{func(r *modelRow) { r.Join, r.After = int32(byParent), nil }, ""},
		{func(r *modelRow) { *r = openRow(); r.Join = int32(byParent) }, how},
		{func(r *modelRow) { r.Status = trace.StatusFailed }, "it failed, so it is no load"},
		{func(r *modelRow) { r.Temperature = trace.Ptr(float32(math.NaN())) }, "its temperature is not a number"},
	} {
		r := aRow()
		c.change(&r)
		if got := r.check(16, 2, []template{{up: none}, {from: 2}}); got != c.want {
			t.Errorf("%d: %q, want %q: %+v", i, got, c.want, r)
		}
	}
	// With longer blocks fewer fit the tokens of a request.
	for fresh, want := range map[int32]string{2045: "", 2046: long} {
		r := bareRow()
		if r.Fresh = fresh; r.check(1<<20, 0, nil) != want {
			t.Errorf("%d blocks of 2^20 tokens: %q, want %q", fresh, r.check(1<<20, 0, nil), want)
		}
	}
	if got := (&modelRow{Builds: "opens", Tail: 70}).check(0, 0, nil); got != "" {
		t.Errorf("tokens of a trace without blocks: %q", got)
	}
	next := nextRow()
	if got := next.check(0, 1, nil); got != blocks {
		t.Errorf("a link in a trace without blocks: %q", got)
	}
}

// What is wrong with a file, with the row that is.
func TestModelFileSaysWhatIsWrong(t *testing.T) {
	m := modelOf(t, []modelRow{templateRow(), openRow(), aRow()})
	first := 3 // of the arrivals
	change := func(at int, f func(r *modelRow)) func(i int, r *modelRow) bool {
		return func(i int, r *modelRow) bool {
			if i == at {
				f(r)
			}
			return true
		}
	}
	const missing = "the model is damaged: its number of rows contradicts its metadata"
	const damaged = "the model is damaged: its rows do not match their digest"
	for name, c := range map[string]struct {
		keep func(i int, r *modelRow) bool
		meta map[string]string
		want string
	}{
		"nothing":             {nil, nil, ""},
		"a place less":        {func(i int, r *modelRow) bool { return i != 2 }, nil, missing},
		"no arrivals":         {func(i int, r *modelRow) bool { return i < first }, nil, missing},
		"a negative output":   {change(2, func(r *modelRow) { r.OutputTokens = trace.Ptr[int32](-1) }), nil, "row 2 of the model: a count is negative"},
		"another table":       {change(2, func(r *modelRow) { r.Table = "" }), nil, "row 2 of the model: its table is unknown, or out of order"},
		"a place behind":      {change(first+1, func(r *modelRow) { *r = bareRow() }), nil, "row 4 of the model: its table is unknown, or out of order"},
		"a template behind":   {change(2, func(r *modelRow) { *r = templateRow() }), nil, "row 2 of the model: its table is unknown, or out of order"},
		"a template on none":  {change(0, func(r *modelRow) { r.Trunk = 1 }), nil, "row 0 of the model: it does not go on where a template is"},
		"a template on later": {change(0, func(r *modelRow) { r.Template = trace.Ptr(int64(0)) }), nil, "row 0 of the model: it goes on from no template before it"},
		"a parent behind":     {change(2, func(r *modelRow) { r.Parent = trace.Ptr(int64(1)) }), nil, "row 2 of the model: its parent is not a place before it"},
		"an arrival less":     {func(i int, r *modelRow) bool { return i != first }, nil, "arrivals: cascade: want a head row and coarse rows first"},
		"the digest":          {change(1, func(r *modelRow) { r.Model = "other" }), nil, damaged},
		"k":                   {nil, map[string]string{keyKSwap: "0"}, "its metadata reprise.k_swap is not a number from 1 to 2147483647"},
		"k is great":          {nil, map[string]string{keyKSwap: "2147483648"}, "its metadata reprise.k_swap is not a number from 1 to 2147483647"},
		"k is no number":      {nil, map[string]string{keyKSwap: "two"}, "its metadata reprise.k_swap is not a number from 1 to 2147483647"},
		"another k":           {nil, map[string]string{keyKSwap: "2147483647"}, ""},
		"requests":            {nil, map[string]string{keyRequests: "0"}, "its metadata reprise.fitted_requests is not a number from 1 to 2147483647"},
		"more requests":       {nil, map[string]string{keyRequests: "3"}, missing},
		"the span":            {nil, map[string]string{keySpan: "0"}, "its metadata reprise.span_ns is not a number from 1 to 4611686018427387903"},
		"another span":        {nil, map[string]string{keySpan: "1"}, "the model is damaged: its arrivals have another span"},
		"the block size":      {nil, map[string]string{keyBlock: "1048577"}, "its metadata reprise.block_size is not a number from 1 to 1048576"},
		"a block size of 0":   {nil, map[string]string{keyBlock: "0"}, "its metadata reprise.block_size is not a number from 1 to 1048576"},
		"another block size":  {nil, map[string]string{keyBlock: "17"}, damaged},
		"the kind":            {nil, map[string]string{keyKind: kindCells}, "it is not a model of kind places"},
		"the schema":          {nil, map[string]string{keySchema: "model/3"}, ErrNotModel.Error()},
		"an earlier schema":   {nil, map[string]string{keySchema: "model/1"}, errOldModel.Error()},
		"a swap": {nil, map[string]string{keySwapped: "much"}, "its metadata reprise.swapped do not " +
			"describe a swap"},
	} {
		got := ""
		if _, err := read(rewritten(t, m, c.keep, c.meta)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
