package audit

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/token"
)

// traffic makes chats of users over a few system prompts, in order of time and with
// different times each.
func traffic(seed uint64, users, n int) []trace.Entry {
	rng := rand.New(rand.NewPCG(seed, 7))
	say := func(words int) trace.Text {
		var b strings.Builder
		for range words {
			b.WriteString([]string{"red ", "blue ", "tree ", "house ", "seven ", "walks "}[rng.IntN(6)])
		}
		return trace.NewText(b.String())
	}
	systems := []trace.Text{say(60), say(80)}
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	talks := map[string][]trace.Message{}
	var out []trace.Entry
	for range n {
		at = at.Add(time.Duration(1 + rng.Int64N(3e9)))
		user := rng.IntN(users)
		session := fmt.Sprintf("s-%d-%d", user, rng.IntN(3))
		talk := talks[session]
		if len(talk) == 0 || len(talk) > 8 {
			talk = []trace.Message{{Role: trace.System, Content: systems[rng.IntN(len(systems))]}}
		}
		talk = append(slices.Clone(talk), trace.Message{Role: trace.User, Content: say(5 + rng.IntN(40))})
		reply := say(3 + rng.IntN(30))
		out = append(out, trace.Entry{Time: at, User: trace.NewText(fmt.Sprintf("user-%d@example", user)), Session: trace.NewText(session), Messages: talk,
			Reply: &reply, Model: trace.NewText([]string{"acme-large", "acme-small"}[rng.IntN(2)]), Class: trace.NewText("gold"), Kind: "chat", Status: trace.StatusOK})
		talks[session] = append(talk, trace.Message{Role: trace.Assistant, Content: reply})
	}
	return out
}

type entryReader struct{ left []trace.Entry }

func (r *entryReader) Read(batch []trace.Entry) (int, error) {
	n := copy(batch, r.left)
	if r.left = r.left[n:]; len(r.left) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// logOf is a log of entries.
func logOf(t testing.TB, entries []trace.Entry) *Log {
	tok, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	return &Log{Policy: anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16, Tokenizer: tok, Workers: 2},
		Open: func() (*Opened, error) {
			return &Opened{Entries: &entryReader{entries}, Close: func() error { return nil }, Meta: metaOf}, nil
		}}
}

func metaOf(c anonymize.Card) (m trace.Meta, err error) {
	m = trace.Meta{BlockSize: c.BlockSize, Convention: trace.PartialTail, Tokenizer: c.Tokenizer, Sessions: "source", Tier: c.Tier, Unit: c.Unit,
		SourceFormat: "openai", TimeUnit: "s"}
	m.Card, m.CardHash, err = c.JSON()
	return m, err
}

// A bug is what a test plants.
type bug struct {
	name string
	rows func(entries []trace.Entry, rows []trace.Request) // of tier internal, row by entry
	meta func(entries []trace.Entry, c *anonymize.Card)
}

// write imports entries with the bug in it.
func (b *bug) write(ctx context.Context, p anonymize.Policy, entries []trace.Entry,
	dst trace.Writer[trace.Request]) (anonymize.Card, error) {
	var rows trace.SliceWriter[trace.Request]
	card, err := anonymize.Run(ctx, p, &entryReader{entries}, &copies{&rows})
	if err != nil {
		return card, err
	}
	if b.rows != nil {
		b.rows(entries, rows.Rows)
	}
	if b.meta != nil {
		b.meta(entries, &card)
	}
	_, err = dst.Write(rows.Rows)
	return card, err
}

// copies keeps rows whose lists the writer uses again.
type copies struct {
	dst trace.Writer[trace.Request]
}

func (c *copies) Write(rows []trace.Request) (int, error) {
	rows = slices.Clone(rows)
	for i := range rows {
		r := &rows[i]
		r.Blocks, r.OutputBlocks, r.Parents = slices.Clone(r.Blocks), slices.Clone(r.OutputBlocks), slices.Clone(r.Parents)
	}
	return c.dst.Write(rows)
}

// caseOf makes an output of tier internal by an import with a bug, and the case against it.
func caseOf(t testing.TB, b bug, entries []trace.Entry) *Case {
	t.Helper()
	c := &Case{Log: logOf(t, entries), Seed: 5}
	file := filepath.Join(t.TempDir(), "internal.parquet")
	err := trace.Create(file, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		card, err := b.write(t.Context(), c.Log.Policy, entries, dst)
		if err != nil {
			return trace.Meta{}, err
		}
		return metaOf(card)
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Output, err = OpenOutput(file); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); c.Output.Close() })
	return c
}

// found runs checks and gives what they found, by name.
func found(t testing.TB, c *Case, only ...string) map[string]Finding {
	t.Helper()
	r, err := Run(t.Context(), c, only)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Finding{}
	for _, f := range r.Findings {
		out[f.Check] = f
	}
	return out
}

// unkeyed are the ids that hashes without a key would have.
func unkeyed(e *trace.Entry, n int) []uint64 {
	var all []byte
	for _, m := range e.Messages {
		all = append(all, m.Content.Reveal()...)
	}
	var out []uint64
	for i := range n {
		sum := sha256.Sum256(append(all, byte(i)))
		out = append(out, binary.BigEndian.Uint64(sum[:8]))
	}
	return out
}
