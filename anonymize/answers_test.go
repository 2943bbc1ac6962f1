package anonymize_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reprise/trace"
)

// chained gives entries the ids of their answers in place of a session: each goes on from
// the one before it.
func chained(name string, turns []trace.Entry) []trace.Entry {
	for i := range turns {
		e := &turns[i]
		e.Session, e.Turn, e.Parents, e.Response = trace.Text{}, nil, nil, trace.NewText(fmt.Sprint(name, i))
		if i > 0 {
			e.Previous = turns[i-1].Response
		}
	}
	return turns
}

// Requests that go on from earlier answers are one session with the first of them, in
// whatever order they stand, and beside sessions with names. An answer that nothing goes on
// from is none.
func TestAnswerChains(t *testing.T) {
	var src []trace.Entry
	for i := range 4 {
		src = append(src, chained(fmt.Sprint("chain ", i, " "), chat(fmt.Sprint("topic ", i), "u", 100*i, 5, 0))...)
	}
	fork := chained("fork ", chat("topic 0", "u", 60_000, 1, 0))
	fork[0].Previous = trace.NewText("chain 0 1")
	late := chained("late ", chat("topic late", "u", 70_000, 2, 0))[1:] // its first answer is not in the log
	alone := chained("alone ", chat("topic alone", "u", 80_000, 1, 0))
	src = append(append(append(src, fork...), late...), alone...)
	src = append(src, chat("with a name", "u", 90_000, 2, 0)...)
	for i := range src {
		src[i].Parents, src[i].Turn = nil, nil
	}
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1))
		if seed > 0 {
			random.Shuffle(len(src), func(i, j int) { src[i], src[j] = src[j], src[i] })
		}
		rows, card := run(t, policy(t), src)
		sessions := map[string]int{}
		var got []string
		for _, r := range rows {
			name := "none"
			if r.Session != nil {
				name = fmt.Sprint(*r.Session)
			}
			sessions[name]++
			got = append(got, name)
		}
		want := strings.Fields("0 1 2 3  0 1 2 3  0 1 2 3  0 1 2 3  0 1 2 3  0 4 none 5 5")
		if !slices.Equal(got, want) || card.Totals.Sessions != 6 || card.Totals.Inferred.Sessions != 0 {
			t.Errorf("seed %d: sessions %v, want %v; %d of them, inferred %+v", seed, got, want, card.Totals.Sessions, card.Totals.Inferred)
		}
	}
}

// The reuse of a chain whose text is hidden is inferred from the growth of its session.
func TestAnswerChainsInfer(t *testing.T) {
	var src []trace.Entry
	for i := range 10 {
		src = append(src, chained(fmt.Sprint("chain ", i, " "), chat(fmt.Sprint("topic ", i), "u", 100*i, 20, 0))...)
	}
	rows, _ := run(t, policy(t), src)
	bare, _ := hidden(rows, 16, 5) // a cache of a fifth
	unlinked := slices.Clone(bare)
	for i := range bare {
		bare[i].Session, bare[i].Turn = trace.Text{}, nil
		unlinked[i].Session, unlinked[i].Turn = trace.Text{}, nil
	}
	// The rows are by arrival, as the entries are when sorted by it.
	slices.SortStableFunc(src, func(a, b trace.Entry) int { return a.Time.Compare(b.Time) })
	for i := range bare {
		bare[i].Response, bare[i].Previous = src[i].Response, src[i].Previous
	}
	exact := hitRatio(rows, 16)
	inferred, _ := run(t, policy(t), bare)
	without, _ := run(t, policy(t), unlinked)
	t.Logf("hit ratio %.3f exact, %.3f inferred with chains, %.3f without", exact, hitRatio(inferred, 16), hitRatio(without, 16))
	if got := hitRatio(inferred, 16); got < exact-0.02 || got > exact+0.02 {
		t.Errorf("hit ratio %.3f, exact %.3f", got, exact)
	}
	if hitRatio(without, 16) > exact-0.1 {
		t.Error("chains tell nothing")
	}
}
