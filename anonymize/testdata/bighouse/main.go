// Command bighouse writes a large made-up trace of tier internal, to measure
// reprise anonymize with: users with sessions of some four turns that go on from
// each other. It is not part of the tests:
//
//	go run ./anonymize/testdata/bighouse -rows 2000000 -blocks 24 -o house.parquet
//	/usr/bin/time -v reprise anonymize house.parquet -o partner.parquet
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

func main() {
	rows := flag.Int("rows", 2_000_000, "how many")
	blocks := flag.Int("blocks", 24, "of 16 tokens in a prompt, on average; 0 for a trace without")
	path := flag.String("o", "house.parquet", "trace to write")
	flag.Parse()
	h := house{rng: rand.New(rand.NewPCG(1, 1)), blocks: *blocks}
	err := trace.Create(*path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		return trace.Meta{Tier: anonymize.Internal, Sessions: "source", BlockSize: 16 * min(*blocks, 1),
			Capture: trace.RelativeCapture(0, time.Duration(*rows)*60*time.Millisecond+time.Minute)}, h.write(w, int64(*rows))
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bighouse:", err)
		os.Exit(1)
	}
}

type house struct {
	rng    *rand.Rand
	blocks int
	live   []talk
	next   uint64 // block
	talks  int64
}

// A talk is a session that may go on.
type talk struct {
	user, session int64
	turn          int32
	last          int64 // row
	blocks        []uint64
}

func (h *house) write(w trace.Writer[trace.Request], rows int64) error {
	h.live = make([]talk, 2000)
	batch := make([]trace.Request, 1)
	at := int64(0)
	for row := range rows {
		at += int64(h.rng.ExpFloat64() * 5e7)
		t := &h.live[h.rng.IntN(len(h.live))]
		if t.blocks == nil && t.turn == 0 || h.rng.IntN(4) == 0 {
			*t = talk{user: h.rng.Int64N(1 + rows/40), session: h.talks}
			h.talks++
		}
		batch[0] = h.row(t, row, at)
		if _, err := w.Write(batch); err != nil {
			return err
		}
	}
	return nil
}

// row is the next turn of a talk: half of a prompt is what was said before.
func (h *house) row(t *talk, row, at int64) trace.Request {
	r := trace.Request{ArrivalNS: at, User: trace.Ptr(t.user), Session: trace.Ptr(t.session), Turn: trace.Ptr(t.turn), Model: "model-0", Kind: "chat",
		Status: trace.StatusOK, OutputTokens: int32(math.Exp(4.5 + h.rng.NormFloat64()))}
	if t.turn > 0 {
		r.Parents, r.ThinkNS = []int64{t.last}, trace.Ptr(int64(math.Exp(23+h.rng.NormFloat64())))
	}
	t.turn++
	t.last = row
	if h.blocks == 0 {
		r.InputTokens = int32(math.Exp(6 + h.rng.NormFloat64()))
		return r
	}
	n := 1 + h.rng.IntN(2*h.blocks)
	keep := min(len(t.blocks), n*2/3)
	r.Blocks = append(r.Blocks, t.blocks[:keep]...)
	for len(r.Blocks) < n {
		r.Blocks = append(r.Blocks, h.next)
		h.next++
	}
	t.blocks = r.Blocks
	r.InputTokens = int32(16*n - h.rng.IntN(16))
	return r
}
