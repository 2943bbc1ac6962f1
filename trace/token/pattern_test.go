package token

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dlclark/regexp2"
)

// TestSplitters compares every splitter with its pattern, run by a regular expression engine.
func TestSplitters(t *testing.T) {
	rnd := rand.New(rand.NewPCG(31, 32))
	alphabet := []rune("aabcdeEFGsSmMtTdDrReElLvV''''      \n\n\r\t0123./,!\"-_$\u0301\u0902éÉǅʰª中文ひカ한İ\u00a0\u3000١½\u2028\u0085\u0007\u0378😀\u200d\ufe0f\ufffd、龦〿㄀")
	table := classes()
	for pattern, split := range splitters {
		re := regexp2.MustCompile(pattern, regexp2.None)
		for range 3000 {
			s := make([]rune, 1+rnd.IntN(40))
			for i := range s {
				s[i] = alphabet[rnd.IntN(len(alphabet))]
			}
			var got, want []int
			for i := 0; i < len(string(s)); got = append(got, i) {
				i = split(table, string(s), i)
			}
			at := 0
			for m, err := re.FindRunesMatch(s); m != nil; m, err = re.FindNextMatch(m) {
				if err != nil {
					t.Fatal(err)
				}
				if m.Index > at {
					want = append(want, len(string(s[:m.Index])))
				}
				at = m.Index + m.Length
				want = append(want, len(string(s[:at])))
			}
			if at < len(s) {
				want = append(want, len(string(s)))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %+q: pieces end at %v, want %v", pattern, string(s), got, want)
			}
		}
	}
}

func TestCheckPattern(t *testing.T) {
	for _, good := range []string{
		`\s?[A-Za-zµÀ-ÖØ-ö]+`, `\s+$`, `[^\r\n\p{L}]?(?i:a|b)(?!\S)`, `a(?=b)|(?<=c)d|(?<!e)f|(?>g)`, `\[[\[\]]+`, `(?i)abc`, `\u0041{1,3}?`,
		`[^-]`, `\p{Lu}\P{N}`, `(a|b)*`,
	} {
		if err := checkPattern(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
		if _, err := newStep(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		`[^(\s|[.,!])]+`, `[a&&b]`, `[]a]`, `[^]a]`, `[[:alpha:]]`, `\h`, `\X`, `\R`, `\Kx`, `\A`, `\z`, `\w`, `\b`, `\1`, `\x41`, `(?m)a`,
		`a(?i)b`, `(?<n>a)`, `(?#c)`, `^a`, `a{,3}`, `a\`,
	} {
		if checkPattern(bad) == nil {
			t.Errorf("%s passes", bad)
		}
	}
	for _, bad := range []string{`a++`, `a*+`, `a?+`, `a{1,2}+`, `(`, `[a`, `\p{Nothing}`} {
		if _, err := newStep(bad); err == nil {
			t.Errorf("%s passes", bad)
		}
	}
}

// FuzzNewStep gives the engine patterns that it may not expect.
func FuzzNewStep(f *testing.F) {
	for pattern := range splitters {
		f.Add(pattern)
	}
	f.Add(`\p{^L}[a-\d]{2,1}(?<=(?i)x)`)
	f.Add("a|b\r\n")
	e := mustOpen(f, "r50k_base")
	f.Fuzz(func(t *testing.T, pattern string) {
		s, err := newStep(pattern)
		if err != nil || len(pattern) > 40 {
			return
		}
		const text = "ab 1é\n  x"
		ids := e.appendSteps(nil, new(state), text, []step{s})
		if back, err := e.AppendText(nil, ids); err != nil || string(back) != text {
			t.Errorf("the pieces come back as %q, %v", back, err)
		}
	})
}
