package trace_test

import (
	"math/rand/v2"
	"testing"

	"reprise/trace"
)

// randomRows makes n rows in order of arrival with every optional column set
// in some rows and null in others.
func randomRows(r *rand.Rand, n int) []trace.Request {
	rows := make([]trace.Request, n)
	at := int64(0)
	maybe := func() bool { return r.IntN(2) == 0 }
	for i := range rows {
		at += int64(r.IntN(3)) * int64(r.IntN(1e9))
		q := trace.Request{ArrivalNS: at, InputTokens: int32(r.IntN(5000)), OutputTokens: trace.Ptr(int32(r.IntN(500))),
			Kind: "chat", Status: trace.StatusOK, Category: trace.Cold}
		for b := 0; b < int(q.InputTokens+511)/512; b++ {
			q.Blocks = append(q.Blocks, uint64(r.IntN(1000)))
		}
		if i > 0 && maybe() {
			q.Parents = []int64{int64(r.IntN(i))}
		}
		if maybe() {
			q.Session, q.Turn, q.ThinkNS = trace.Ptr(int64(r.IntN(50))), trace.Ptr(int32(r.IntN(9))), trace.Ptr(r.Int64N(1e10))
			q.Model, q.Class, q.Temperature, q.Stream = "model-0", trace.Ptr(""), trace.Ptr(float32(0.7)), trace.Ptr(maybe())
		}
		if maybe() {
			q.OutputBlocks = []uint64{uint64(r.IntN(1000))}
			q.User, q.CachedTokens, q.E2ENS = trace.Ptr(int64(r.IntN(5))), trace.Ptr(int32(0)), trace.Ptr(int64(0))
		}
		rows[i] = q
	}
	return rows
}

func digest(rows []trace.Request) string {
	d := trace.NewDigest()
	d.Add(rows)
	return d.Sum()
}

func readAll(t *testing.T, src trace.Reader[trace.Request]) []trace.Request {
	t.Helper()
	var out []trace.Request
	err := trace.Each(src, func(_ int64, r *trace.Request) error {
		out = append(out, *r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
