package synth

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Of prompts on one template those stay near to the one before them that grow by a few tokens, and none where lengths
// are drawn by chance, or where one length is as near to any.
func TestNearInLength(t *testing.T) {
	const k, prompts = 10, 400
	r := rand.New(rand.NewPCG(1, 1))
	for name, c := range map[string]struct {
		length func(i int, before int32) int32
		near   bool
	}{
		"a text that is typed": {func(i int, before int32) int32 {
			if i%20 == 0 {
				return 500 + r.Int32N(4000)
			}
			return before + 1 + r.Int32N(5)
		}, true},
		"by chance":  {func(int, int32) int32 { return 500 + r.Int32N(4000) }, false},
		"one length": {func(int, int32) int32 { return 700 }, false},
	} {
		s := aSwapper(k, 0)
		s.templates = []template{{up: none}}
		before := int32(700)
		for i := range prompts {
			before = c.length(i, before)
			opened := place{template: 0, link: link{class: opens, parent: none}, seat: seat{after: none}}
			opened.tail = before
			s.places, s.times = append(s.places, opened), append(s.times, int64(i)*1e9+r.Int64N(1e9))
			s.shapes = append(s.shapes, shape{tokens: before, tail: before})
		}
		s.findNear()
		near := 0
		for i, up := range s.near {
			if up == none {
				continue
			}
			if near++; int(up) != i-1 {
				t.Fatalf("%s: prompt %d is near to %d", name, i, up)
			}
		}
		if c.near && near < prompts*9/10 || !c.near && near > prompts/20 {
			t.Errorf("%s: %d of %d prompts are near to the one before", name, near, prompts)
		}
	}
}

// A head moves as far as what it builds on, or is near to, if that came not long before.
func TestMovesWith(t *testing.T) {
	const k = 1
	places := make([]place, 30)
	near := slices.Repeat([]int32{none}, len(places))
	for i := range places {
		places[i] = place{template: none, link: link{parent: none}, seat: seat{after: none}}
	}
	places[3].parent, places[5].parent, near[6], places[29].parent = 0, 4, 5, 2
	follows := slices.Repeat([]int32{none}, len(places))
	follows[4] = 3 // of the burst of 3, which moves with 0
	heads, _ := groupHeads(places, nil, follows, make([]int64, len(places)), k)
	with := movesWith(places, follows, near, heads, k)
	for head, i := range heads {
		want := i
		switch i {
		case 3, 5, 6:
			want = 0
		}
		if heads[with[head]] != want {
			t.Errorf("place %d moves with %d, want %d", i, heads[with[head]], want)
		}
	}
}

// Outputs on templates with verdicts are of another kind than those with answers, of which one is a little longer.
func TestUsualOutputs(t *testing.T) {
	s := aSwapper(10, 16)
	s.templates = []template{{up: none}, {up: none}, {up: none}, {up: none}}
	for i := range int32(80) {
		p := place{template: i % 4, link: link{class: opens, parent: none}, seat: seat{after: none}}
		p.output = [...]int32{2, 300, 360, 3}[i%4]
		s.places = append(s.places, p)
	}
	s.places = append(s.places, place{template: none, link: link{class: continues, parent: 1}, seat: seat{after: none}})
	kinds := (&swapping{swapper: s, places: s.places, templates: s.templates}).usualOutputs()
	if a := kinds[:4]; a[0] != a[3] || a[1] != a[2] || a[0] == a[1] || kinds[80] != kinds[1] {
		t.Errorf("kinds %v of verdicts, answers, answers, verdicts; what follows an answer has %d", a, kinds[80])
	}
}

// A prompt that many send comes soon after itself by chance: only one that is sent a few times follows.
func TestCommonPromptsDoNotFollow(t *testing.T) {
	const k = 10
	var places []place
	last := int32(none)
	for i := range int32(600) { // each fourth is the same line, and each 150th sends the one before it again
		p := place{template: none, link: link{class: opens, parent: none}, seat: seat{after: none}}
		switch {
		case i%150 == 149:
			p.class, p.parent = repeats, i-2
		case i%4 == 0:
			if last != none {
				p.class, p.parent = repeats, last
			}
			last = i
		}
		places = append(places, p)
	}
	times, r := make([]int64, len(places)), rand.New(rand.NewPCG(1, 1))
	for i := range times {
		times[i] = int64(i)*1e9 + r.Int64N(1e9)
	}
	for i, up := range followed(places, nil, times, k) {
		if want := i%150 == 149; (up != none) != want {
			t.Fatalf("place %d follows %d", i, up)
		}
	}
}

// A pause that k or more have is exchanged with none but its like.
func TestCommonGapsStay(t *testing.T) {
	const k = 10
	var gaps []int64
	for i := range 48 {
		gaps = append(gaps, [...]int64{3e9, 4e9, 3e9, 3_300_000_000 + int64(i)*1e6}[i%4])
	}
	from, _ := gapsExchanged(gaps, k, rand.New(rand.NewPCG(1, 1)))
	for i, j := range from {
		if (gaps[i] == 3e9) != (gaps[j] == 3e9) {
			t.Errorf("the gap of %d ns is one of %d ns", gaps[i], gaps[j])
		}
	}
}
