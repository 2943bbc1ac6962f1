package synth

import (
	"bytes"
	"math"
	"reflect"
	"strconv"
	"testing"

	"reprise/trace"
)

// aRow is a row with a value in each column of a tuple.
func aRow() modelRow {
	return modelRow{Table: tableTuples, User: trace.Ptr(int64(3)), Model: "m", Adapter: "a", Kind: "chat", Class: trace.Ptr("batch"),
		Stream: trace.Ptr(true), Temperature: trace.Ptr(float32(0.5)), Category: trace.Continuation, Hit: 4, Trunk: 2, Distance: 40, Distance25: 11,
		Distance50: 22, Distance75: 33, Chain: 5, Join: int32(byRecency), Back: 6, Turn: 7, Waits: true, ThinkNS: trace.Ptr(int64(8)), ToolNS: trace.Ptr(int64(9)),
		Fresh: 10, Tail: 12, OutputTokens: 13, ReasoningTokens: trace.Ptr(int32(14)), ImageTokens: trace.Ptr(int32(15)), Images: trace.Ptr(int32(16)),
		MaxTokens: trace.Ptr(int32(17)), Status: "ok", FinishReason: "stop", CancelledNS: trace.Ptr(int64(18))}
}

// bareRow is a row with nothing but a length.
func bareRow() modelRow {
	return modelRow{Table: tableTuples, Category: trace.Cold, Fresh: 1, Tail: 16}
}

// modelOf makes a model of rows: those of tuples, and of the arrivals of so many
// users and of all others.
func modelOf(t testing.TB, rows []modelRow, users ...int64) *Model {
	t.Helper()
	b := modelReader{m: &Model{kSwap: 1, span: 1e9, meta: trace.Meta{BlockSize: 16}}, requests: int64(len(rows))}
	for i := range rows {
		if reason := b.tuple(&rows[i]); reason != "" {
			t.Fatal(reason)
		}
	}
	plain := fitted(t, []trace.Request{{InputTokens: 5}, {ArrivalNS: 1e9, InputTokens: 70}}, trace.Meta{}, 1, 0)
	for _, u := range append(users, none) {
		b.m.clients = append(b.m.clients, client{u, plain.clients[0].arrivals})
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

// Every column of a tuple comes back as it was written, and every one of the arrivals.
func TestModelRowsComeBack(t *testing.T) {
	still := aRow()
	still.Stream, still.ThinkNS, still.Waits = trace.Ptr(false), nil, false
	rows := []modelRow{aRow(), bareRow(), still}
	m := modelOf(t, rows, 3)
	got := rowsOf(t, m)
	for i, want := range rows {
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("row %d is %+v, want %+v", i, got[i], want)
		}
	}
	arrivals := got[len(rows):]
	half := len(arrivals) / 2
	for i, a := range m.clients[0].arrivals.Rows() {
		for c, user := range []*int64{trace.Ptr(int64(3)), nil} {
			want := modelRow{Table: tableArrivals, User: user, Client: int32(c), Part: a.Kind, Level: a.Level, Contrast: a.Contrast, Bin: a.Bin, Left: a.Left, Right: a.Right, Count: a.Count}
			if got := arrivals[c*half+i]; !reflect.DeepEqual(got, want) {
				t.Errorf("row %d of client %d is %+v, want %+v", i, c, got, want)
			}
		}
	}
	back, err := read(written(t, m))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back.tuples, m.tuples) || !reflect.DeepEqual(rowsOf(t, back), got) {
		t.Error("the file of a file is another")
	}
}

// The digest of a model covers every column, the block size and the span. Those of
// these two rows were written down, so that files of earlier builds still read.
func TestModelDigestCoversAll(t *testing.T) {
	m := modelOf(t, []modelRow{aRow(), bareRow()}, 3)
	const want = "sha256:22a52f90bfbd2878475c2103f985ab154ab63d914ef5dda24973dc398d912ae3"
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

// What is wrong with a tuple, at the bounds.
func TestModelTupleChecked(t *testing.T) {
	const count, tail, category, blocks, long, distance, user, how = "a count is negative", "its last block does not fit the block size", "its category is missing or unknown",
		"its category does not fit its blocks", "its prompt is too long", "its distances do not fit its known blocks", "its user is not between 0 and 2^40", "how it joins its session is unknown"
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
		{func(r *modelRow) { r.Trunk = -1 }, count},
		{func(r *modelRow) { r.Fresh = -1 }, count},
		{func(r *modelRow) { r.Tail = -1 }, count},
		{func(r *modelRow) { r.OutputTokens = -1 }, count},
		{func(r *modelRow) { r.Turn = -1 }, count},
		{func(r *modelRow) { r.Chain = -1 }, count},
		{func(r *modelRow) { r.Back = -1 }, count},
		{func(r *modelRow) { r.Trunk, r.OutputTokens, r.Turn, r.Chain = 0, 0, 0, 0 }, ""},
		{func(r *modelRow) { r.Fresh = maxBlocks - 4 }, ""},
		{func(r *modelRow) { r.Fresh = maxBlocks - 3 }, long},
		{func(r *modelRow) { r.Tail = 1 }, ""},
		{func(r *modelRow) { r.Tail = 0 }, tail},
		{func(r *modelRow) { r.Tail = 16 }, ""},
		{func(r *modelRow) { r.Tail = 17 }, tail},
		{func(r *modelRow) { *r = modelRow{Tail: 0} }, ""},
		{func(r *modelRow) { *r = modelRow{Tail: 1} }, "it has tokens but no blocks"},
		{func(r *modelRow) { *r = modelRow{Category: "warm"} }, category},
		{func(r *modelRow) { *r = modelRow{Category: trace.Cold} }, category},
		{func(r *modelRow) { r.Category = "" }, category},
		{func(r *modelRow) { r.Category = trace.Cold }, blocks},
		{func(r *modelRow) { r.Hit, r.Distance, r.Distance25, r.Distance50, r.Distance75 = 0, 0, 0, 0, 0 }, blocks},
		{func(r *modelRow) { r.Category = trace.Duplicate }, blocks},
		{func(r *modelRow) { r.Category, r.Fresh = trace.Duplicate, 0 }, ""},
		{func(r *modelRow) { r.Category = trace.Branch }, ""},
		{func(r *modelRow) { r.Join = -1 }, how},
		{func(r *modelRow) { r.Join = 0 }, ""},
		{func(r *modelRow) { r.Join = 4 }, how},
		{func(r *modelRow) { r.Back = 0 }, how},
		{func(r *modelRow) { r.Join, r.Back = int32(byTree), 0 }, ""},
		{func(r *modelRow) { r.Status = trace.StatusFailed }, "it failed, so it is no load"},
		{func(r *modelRow) { r.Temperature = trace.Ptr(float32(math.NaN())) }, "its temperature is not a number"},
		{func(r *modelRow) { r.Distance = 0 }, distance},
		{func(r *modelRow) { r.Distance25 = -1 }, distance},
		{func(r *modelRow) { r.Distance50 = 0 }, distance},
		{func(r *modelRow) { r.Distance75 = 0 }, distance},
		{func(r *modelRow) { r.Distance, r.Distance25, r.Distance50, r.Distance75 = 1, 1, 1, 1 }, ""},
		{func(r *modelRow) { *r = bareRow(); r.Distance = 1 }, distance},
		{func(r *modelRow) { *r = bareRow(); r.Distance75 = -1 }, distance},
	} {
		r := aRow()
		c.change(&r)
		if got := r.check(16); got != c.want {
			t.Errorf("%d: %q, want %q: %+v", i, got, c.want, r)
		}
	}
	// With longer blocks fewer fit the tokens of a request.
	for fresh, want := range map[int32]string{2046: "", 2047: long} {
		r := bareRow()
		if r.Fresh = fresh; r.check(1<<20) != want {
			t.Errorf("%d blocks of 2^20 tokens: %q, want %q", fresh, r.check(1<<20), want)
		}
	}
	if got := (&modelRow{Tail: 70}).check(0); got != "" {
		t.Errorf("tokens of a trace without blocks: %q", got)
	}
}

// What is wrong with a file, with the row that is.
func TestModelFileSaysWhatIsWrong(t *testing.T) {
	tuple, second := aRow(), bareRow()
	m := modelOf(t, []modelRow{tuple, second}, 3)
	whole := rowsOf(t, m)
	first := 2 // of the arrivals
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
		"nothing":            {nil, nil, ""},
		"a tuple less":       {func(i int, r *modelRow) bool { return i != 1 }, nil, missing},
		"no arrivals":        {func(i int, r *modelRow) bool { return i < first }, nil, missing},
		"a negative output":  {change(1, func(r *modelRow) { r.OutputTokens = -1 }), nil, "row 1 of the model: a count is negative"},
		"another table":      {change(1, func(r *modelRow) { r.Table = "" }), nil, "row 1 of the model: its table is unknown, or out of order"},
		"a tuple behind":     {change(first+1, func(r *modelRow) { *r = bareRow() }), nil, "row 3 of the model: its table is unknown, or out of order"},
		"a client too early": {change(first, func(r *modelRow) { r.Client = 1 }), nil, "row 2 of the model: its client is out of order"},
		"a negative client":  {change(first, func(r *modelRow) { r.Client = -1 }), nil, "row 2 of the model: its client is out of order"},
		"a client again":     {change(len(whole)-1, func(r *modelRow) { r.Client = 0 }), nil, "row " + strconv.Itoa(len(whole)-1) + " of the model: its client is out of order"},
		"an idle client":     {change(0, func(r *modelRow) { r.User = nil }), nil, "the model has a client without requests"},
		"the digest":         {change(0, func(r *modelRow) { r.Model = "other" }), nil, damaged},
		"k":                  {nil, map[string]string{keyKSwap: "0"}, "its metadata reprise.k_swap is not a number from 1 to 2147483647"},
		"k is great":         {nil, map[string]string{keyKSwap: "2147483648"}, "its metadata reprise.k_swap is not a number from 1 to 2147483647"},
		"k is no number":     {nil, map[string]string{keyKSwap: "two"}, "its metadata reprise.k_swap is not a number from 1 to 2147483647"},
		"another k":          {nil, map[string]string{keyKSwap: "2147483647"}, ""},
		"requests":           {nil, map[string]string{keyRequests: "0"}, "its metadata reprise.fitted_requests is not a number from 1 to 2147483647"},
		"more requests":      {nil, map[string]string{keyRequests: "3"}, missing},
		"the span":           {nil, map[string]string{keySpan: "0"}, "its metadata reprise.span_ns is not a number from 1 to 4611686018427387903"},
		"another span":       {nil, map[string]string{keySpan: "1"}, damaged},
		"the block size":     {nil, map[string]string{keyBlock: "1048577"}, "its metadata reprise.block_size is not a number from 1 to 1048576"},
		"a block size of 0":  {nil, map[string]string{keyBlock: "0"}, "its metadata reprise.block_size is not a number from 1 to 1048576"},
		"another block size": {nil, map[string]string{keyBlock: "17"}, damaged},
		"the kind":           {nil, map[string]string{keyKind: kindCells}, "it is not a model of kind reuse-tuples"},
		"the schema":         {nil, map[string]string{keySchema: "model/2"}, ErrNotModel.Error()},
	} {
		got := ""
		if _, err := read(rewritten(t, m, c.keep, c.meta)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// Up to 64 users have arrivals of their own.
	b := modelReader{m: &Model{}}
	for i := range int32(maxClients + 2) {
		want := ""
		if i > maxClients {
			want = "its client is out of order"
		}
		if got := b.arrival(&modelRow{Client: i, User: trace.Ptr(int64(i))}); got != want {
			t.Errorf("client %d: %q, want %q", i, got, want)
		}
	}
}
