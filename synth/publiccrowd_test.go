package synth

import (
	"math"
	"math/rand/v2"
	"slices"

	"reprise/trace"
)

// aCrowd makes a trace of users who come back: each has sessions of some turns,
// which begin with one of three templates or with none, over so many hours. Input
// and output lengths are lognormal. At most one session of a user in ten is
// longer than eight turns.
type aCrowd struct {
	users int
	hours int64
	size  int // of a block; 0 for no blocks
}

func (k aCrowd) rows(seed uint64) []trace.Request {
	rng := rand.New(rand.NewPCG(seed, 77))
	next := uint64(0)
	fresh := func(n int) []uint64 {
		out := make([]uint64, n)
		for i := range out {
			out[i] = next
			next++
		}
		return out
	}
	templates := [][]uint64{fresh(2), fresh(4), fresh(11)}
	var rows []trace.Request
	var session int64
	for user := range int64(k.users) {
		for range 1 + rng.IntN(2) {
			at := int64(rng.Float64() * float64(k.hours) * 3600e9)
			prompt := []uint64{}
			if x := rng.IntN(5); x < 4 {
				prompt = slices.Clone(templates[min(x, 2)])
			}
			tokens := len(prompt) * k.size
			for turn := range int32(1 + min(rng.IntN(4), rng.IntN(30))) {
				in := tokens + int(math.Exp(6+0.8*rng.NormFloat64()))
				in = min(in, 60000)
				r := trace.Request{ArrivalNS: at, InputTokens: int32(in), OutputTokens: 1 + int32(min(8000, math.Exp(5.4+0.9*rng.NormFloat64()))),
					User: trace.Ptr(user), Session: trace.Ptr(session), Turn: trace.Ptr(turn), Status: trace.StatusOK}
				if k.size > 0 {
					full := in / k.size
					if n := full - len(prompt); n > 0 {
						prompt = append(prompt, fresh(n)...)
					}
					r.Blocks = slices.Clone(prompt[:min(full, len(prompt))])
					if in%k.size > 0 {
						r.Blocks = append(r.Blocks, fresh(1)...)
					}
				}
				if turn > 0 {
					r.ThinkNS = trace.Ptr(int64(1e9 + rng.ExpFloat64()*20e9))
				}
				rows = append(rows, r)
				tokens = in + int(r.OutputTokens)
				at += int64(30e9 + rng.ExpFloat64()*90e9)
			}
			session++
		}
	}
	slices.SortStableFunc(rows, func(a, b trace.Request) int { return int(min(max(a.ArrivalNS-b.ArrivalNS, -1), 1)) })
	return rows
}
