package synth

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"reprise/trace"
	"reprise/trace/longtest"
)

// written returns the bytes of a model's file.
func written(t testing.TB, m *Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(b []byte) (*Model, error) { return ReadModel(bytes.NewReader(b), int64(len(b))) }

// everyColumn is a trace of so many rows with every column in use.
func everyColumn(n int) []trace.Request {
	k := talk{block: 16, models: 2, sessions: true, users: 3, failed: true}
	rows := k.rows(1, n)
	r := rand.New(rand.NewPCG(4, 4))
	for i := range rows {
		q := &rows[i]
		q.Adapter, q.FinishReason = []string{"", "a"}[i%2], "stop"
		q.Class, q.Stream = trace.Ptr("batch"), trace.Ptr(i%3 == 0)
		q.Temperature = trace.Ptr(float32(i%2) / 3)
		q.MaxTokens, q.ReasoningTokens = trace.Ptr(*q.OutputTokens+int32(r.IntN(20))), trace.Ptr(*q.OutputTokens/2)
		q.ImageTokens, q.Images = trace.Ptr(int32(i%5)), trace.Ptr(int32(1))
		q.ToolNS, q.E2ENS = trace.Ptr(int64(i)), trace.Ptr(int64(5e8))
	}
	return rows
}

// fullModel is a model with every column in use.
func fullModel(t testing.TB) *Model {
	rows := everyColumn(2600)
	return fitted(t, rows, trace.Meta{BlockSize: 16, Tier: "internal", Tokenizer: "o200k_base", Card: "{}", SourceFormat: "test",
		Sessions: sessionsOfSource, Digest: "sha256:of the trace", Seed: "3"}, 10, 2)
}

func TestModelFileRoundTrip(t *testing.T) {
	longtest.Skip(t)
	for name, m := range map[string]*Model{
		"full":   fullModel(t),
		"plain":  fitted(t, talk{block: 16, models: 1}.rows(2, 50), trace.Meta{BlockSize: 16}, 1, 0),
		"blocks": fitted(t, []trace.Request{{InputTokens: 5}, {ArrivalNS: 1e9, InputTokens: 70}}, trace.Meta{}, 1, 0),
	} {
		got, err := read(written(t, m))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(got.places, m.places) || !reflect.DeepEqual(got.labels, m.labels) || !reflect.DeepEqual(got.ends, m.ends) {
			t.Errorf("%s: other places came back", name)
		}
		want := m.meta
		want.Sessions, want.Convention = "", "" // a workload's own
		if got.meta != want || got.kSwap != m.kSwap || got.span != m.span || got.sourced != m.sourced || got.swapped != m.swapped {
			t.Errorf("%s: %+v came back, want %+v", name, got.meta, want)
		}
		if a, b := rowDigest(generated(t, m, Options{Seed: 3})), rowDigest(generated(t, got, Options{Seed: 3})); a != b {
			t.Errorf("%s: the file makes other rows than the model", name)
		}
	}
}

func rowDigest(rows []trace.Request) string {
	d := trace.NewDigest()
	d.Add(rows)
	return d.Sum()
}

func TestModelFileSaysWhatItIs(t *testing.T) {
	longtest.Skip(t)
	b := written(t, fullModel(t))
	in, err := trace.NewRowsReader[modelRow](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"reprise.schema": "model/2", "reprise.model_kind": "places", "reprise.tier": "internal",
		"reprise.k_swap": "10", "reprise.swapped": "{", "reprise.swap_jitter": "0.05", "reprise.block_size": "16",
		"reprise.tokenizer": "o200k_base", "reprise.card": "{}", "reprise.fitted_requests": "", "reprise.span_ns": "", "reprise.digest": "sha256:"} {
		if got, ok := in.Metadata(key); !ok || !strings.HasPrefix(got, want) {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if note, _ := in.Metadata("reprise.privacy_note"); !strings.Contains(note, "Not differentially private") {
		t.Errorf("the note says %q", note)
	}
	if _, ok := in.Metadata("reprise.seed"); ok {
		t.Error("a model has a seed")
	}
}

// What is no model, or half of one, is an error.
func TestModelFileDamaged(t *testing.T) {
	if _, err := read([]byte("no parquet")); !errors.Is(err, ErrNotModel) {
		t.Errorf("the error is %v", err)
	}
	var other bytes.Buffer
	w := trace.NewRequestWriter(&other)
	if err := w.Close(trace.Meta{}); err != nil {
		t.Fatal(err)
	}
	if _, err := read(other.Bytes()); !errors.Is(err, ErrNotModel) {
		t.Errorf("a trace: the error is %v", err)
	}
	b := written(t, modelOf(t, []modelRow{templateRow(), openRow(), aRow()}))
	if _, err := read(b[:len(b)/2]); err == nil {
		t.Error("half a file is no error")
	}
}

// rewritten writes a model's file again with rows changed or, where keep says
// so, left out, and with other metadata.
func rewritten(t testing.TB, m *Model, keep func(i int, r *modelRow) bool, meta map[string]string) []byte {
	t.Helper()
	b := written(t, m)
	in, err := trace.NewRowsReader[modelRow](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := trace.NewRowsWriter[modelRow](&out, nil)
	err = trace.Each(in, func(i int64, r *modelRow) error {
		if keep == nil || keep(int(i), r) {
			_, err := w.Write([]modelRow{*r})
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{keySchema, keyKind, keyKSwap, keyRequests, keySpan, keyBlock, "reprise.digest"} {
		if v, ok := in.Metadata(key); ok {
			w.SetMetadata(key, v)
		}
	}
	for key, v := range meta {
		w.SetMetadata(key, v)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Whatever a file holds, reading it gives a model that generates, or an error.
func FuzzReadModel(f *testing.F) {
	m := fitted(f, talk{block: 16, models: 2, sessions: true}.rows(2, 40), trace.Meta{BlockSize: 16}, 2, 0)
	f.Add(written(f, m))
	f.Add(rewritten(f, m, func(i int, r *modelRow) bool { return i != 3 }, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := read(b)
		if err != nil {
			return
		}
		w, err := m.Generate(t.Context(), Options{Requests: 20})
		if err != nil {
			return
		}
		readAll(t, w.Reader())
	})
}

// Rows that pass every check make a model that generates, however odd they are.
func FuzzModelRows(f *testing.F) {
	m := fitted(f, talk{block: 16, models: 1}.rows(2, 12), trace.Meta{BlockSize: 16}, 1, 0)
	f.Add(int32(3), int32(2), int64(0), int32(5), uint8(1), int32(1), int32(7), int32(20), int32(9))
	f.Add(int32(1<<20), int32(0), int64(1), int32(16), uint8(3), int32(3), int32(900), int32(-4000), int32(2))
	f.Fuzz(func(t *testing.T, hit, fresh int32, parent int64, tail int32, builds uint8, how, up, growth, length int32) {
		r := modelRow{Hit: hit % 4096, Fresh: fresh % 4096, Parent: &parent, Tail: tail, ParentHit: up % 5000, ParentFull: length % 5000, ParentBlocks: length % 5001,
			Growth: growth % (1 << 16), Builds: classNames[int(builds)%len(classNames)], Join: how, Table: tablePlaces}
		if r.Builds == classNames[opens] {
			r.Parent, r.Trunk, r.Hit = nil, r.Hit, 0
			if r.Trunk > 0 {
				r.Template = trace.Ptr(int64(0))
			}
		}
		if join(how) == byPlace {
			r.After = &parent
		}
		b := modelReader{m: &Model{meta: m.meta, span: m.span, arrivals: m.arrivals, templates: m.templates}}
		for i := range m.places {
			old := m.row(&m.places[i])
			for _, up := range [...]*int64{old.Parent, old.After} {
				if up != nil {
					*up *= 2
				}
			}
			if reason := b.place(&old); reason != "" {
				t.Fatal(reason)
			}
			if reason := b.place(&r); reason != "" {
				return
			}
		}
		b.m.labels, b.m.ends = b.labels.values, b.ends.values
		b.m.finish()
		for _, o := range []Options{{}, {Requests: int64(5 * len(m.places))}} {
			if rows := generated(t, b.m, o); len(rows) != max(2*len(m.places), int(o.Requests)) {
				t.Fatalf("%d rows", len(rows))
			}
		}
	})
}
