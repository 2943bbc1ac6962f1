package prompt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"reprise/trace"
	"reprise/trace/token"
)

// spoilt is a vocabulary of which one word is not one token behind a space.
func spoilt(w *token.Words) *token.Words {
	bad := *w
	bad.Text = slices.Clone(w.Text)
	bad.Text[7] = "xqzjkvw"
	return &bad
}

// verify makes the prompt of every row, as text and as token ids, encodes the
// text with the encoding that p's words are from, and compares: a prompt must
// have exactly [Prompter.Count] tokens, and those of [Prompter.Tokens]. A row
// that p refuses is an error that names it, counted from 0.
func verify(rows trace.Reader[trace.Request], p *Prompter, e *token.Encoding) (Verified, error) {
	var v Verified
	var text []byte
	var ids, again []uint32
	err := trace.Each(rows, func(row int64, r *trace.Request) (err error) {
		if text, err = p.Prompt(r, text[:0]); err == nil {
			ids, err = p.Tokens(r, ids[:0])
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
		again = e.Append(again[:0], string(text))
		v.add(len(ids), len(again) == p.Count(r) && slices.Equal(again, ids))
		return nil
	})
	return v, err
}

func TestVerifyCountsMismatches(t *testing.T) {
	e := mustEncoding(t, "o200k_base")
	rows := logUniform(rand.New(rand.NewPCG(1, 2)), 200, 3000, 16)
	for _, c := range []struct {
		words *token.Words
		bad   bool
	}{{e.Words(), false}, {spoilt(e.Words()), true}} {
		p, err := New(c.words, 1, 16, WithTemplate(4, 0))
		if err != nil {
			t.Fatal(err)
		}
		want := Verified{}
		for i := range rows {
			text, err := p.Prompt(&rows[i], nil)
			if err != nil {
				t.Fatal(err)
			}
			want.add(p.Count(&rows[i]), !strings.Contains(string(text), "xqzjkvw"))
		}
		got, err := verify(&trace.SliceReader[trace.Request]{Rows: rows}, p, e)
		if err != nil || got != want || (got.Mismatches > 0) != c.bad {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	_, err := verify(cloned([]trace.Request{{InputTokens: 3}, {InputTokens: -3}}), newTestPrompter(t, "o200k_base", 16), e)
	if err == nil || !strings.Contains(err.Error(), "row 1:") {
		t.Errorf("got %v, want an error at row 1", err)
	}
}

// A Checker gives the prompts of its Prompter and finds what verify finds; so few
// prompts all have room in its queue.
func TestChecker(t *testing.T) {
	e := mustEncoding(t, "o200k_base")
	rows := logUniform(rand.New(rand.NewPCG(3, 4)), checkQueue/2, 5000, 16)
	for _, words := range []*token.Words{e.Words(), spoilt(e.Words())} {
		p, err := New(words, 1, 16)
		if err != nil {
			t.Fatal(err)
		}
		all, err := verify(&trace.SliceReader[trace.Request]{Rows: rows}, p, e)
		if err != nil {
			t.Fatal(err)
		}
		c := NewChecker(p, e)
		var group sync.WaitGroup
		for g := range 2 {
			group.Go(func() {
				for i := g; i < len(rows); i += 2 {
					text, err := c.Prompt(&rows[i], []byte("kept "))
					want, err2 := p.Prompt(&rows[i], []byte("kept "))
					ids, err3 := c.Tokens(&rows[i], []uint32{9})
					if err != nil || err2 != nil || err3 != nil || string(text) != string(want) || len(ids) != 1+p.Count(&rows[i]) {
						t.Errorf("row %d: the prompt differs: %v, %v, %v", i, err, err2, err3)
					}
				}
			})
		}
		group.Wait()
		v := c.Close()
		// The ids are right even where the text is not.
		if v.Prompts != int64(2*len(rows)) || v.Skipped != 0 || v.Mismatches != all.Mismatches {
			t.Errorf("got %+v of %d prompts, where all of the text is %+v", v, 2*len(rows), all)
		}
		if bad := words != e.Words(); bad != (all.Mismatches > 0) {
			t.Errorf("a bad word: %v, but %d mismatches", bad, all.Mismatches)
		}
	}
}

// What cannot be looked at in time is left out: the queue is bounded.
func TestCheckerSkips(t *testing.T) {
	c := &Checker{Prompter: newTestPrompter(t, "o200k_base", 16), queue: make(chan check, checkQueue), done: make(chan struct{})}
	r := &trace.Request{InputTokens: 5}
	for range checkQueue + 10 {
		if _, err := c.Prompt(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.encoding = mustEncoding(t, "o200k_base")
	go c.encodeQueued()
	if v := c.Close(); v.Prompts != checkQueue || v.Skipped != 10 || v.Tokens != 5*checkQueue || v.Mismatches != 0 {
		t.Errorf("%+v", v)
	}
	c = &Checker{Prompter: c.Prompter, bytes: checkBytes, waiting: 1}
	if c.admit(1) || !(&Checker{}).admit(2*checkBytes) {
		t.Error("the bytes of the queue are not bounded, or a large prompt is never checked")
	}
}
