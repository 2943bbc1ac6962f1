package replay

import (
	"strings"
	"testing"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/token"
)

// BenchmarkThreadedTurn takes the reply of 300 tokens to a turn, and makes the
// prompt of the next: 20,000 tokens, in a session of fifty turns.
func BenchmarkThreadedTurn(b *testing.B) {
	tok, err := token.Open("o200k_base")
	if err != nil {
		b.Fatal(err)
	}
	const turns = 50
	turnRows := make([]Turn, turns+2)
	for i := range turnRows[1:] {
		turnRows[i+1].Parents = []int64{int64(i)}
	}
	l, err := ReadLineage(&trace.SliceReader[Turn]{Rows: turnRows})
	if err != nil {
		b.Fatal(err)
	}
	reply := strings.Repeat(" a reply of many words, as a model writes them.", 27)
	n := int32(len(tok.Append(nil, reply)))
	result := &result.Result{Output: &n, OutputFrom: result.FromUsage}
	t := newThreads(&Threading{Encode: tok.Append}, l.following, spelling{})
	var buf []byte
	turn := func(i int) {
		row := &trace.Request{InputTokens: int32(400 * (i + 1)), OutputTokens: trace.Ptr(n), Blocks: make([]uint64, 400*turns)}
		if i > 0 {
			row.Parents = []int64{int64(i - 1)}
		}
		t.startTurn(int64(i), row)
		buf, err = t.Prompt(row, buf[:0])
		if _, h := t.finishTurn(err); h != nil {
			h.reply.Set([]byte(reply), nil, nil)
			h.findTokens(&Threading{Encode: tok.Append, Decode: tok.AppendText}, result)
			t.setReply(int64(i), h)
		}
	}
	for i := range turns {
		turn(i)
	}
	last := t.rows[turns-1]
	b.ReportAllocs()
	for b.Loop() {
		h := &threadReply{seam: " word"}
		h.reply.Set([]byte(reply), nil, nil)
		h.findTokens(&Threading{Encode: tok.Append, Decode: tok.AppendText}, result)
		buf = buf[:0]
		for _, th := range last.chain() {
			buf = append(append(buf, th.own.text...), th.reply.text...)
		}
	}
	b.ReportMetric(float64(len(buf)), "prompt-bytes")
}
