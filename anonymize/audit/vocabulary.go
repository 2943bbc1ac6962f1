package audit

import (
	"context"
	_ "embed"
	"io"
	"strings"
	"sync"
	"time"

	"reprise/anonymize"
	"reprise/anonymize/dp"
	"reprise/datasets"
	"reprise/synth/release"
	"reprise/trace"
	"reprise/trace/profile"
	"reprise/trace/token"
	"reprise/trace/usage"
)

// createdBy is the created_by field of every Parquet file that Reprise writes.
const createdBy = "reprise version 1(build trace)"

// ownWords are words of metadata that other packages write. What is missing here
// shows as a string that is not our own: a test holds the list against all kinds
// of outputs.
//
//go:embed words.txt
var ownWords string

// A vocabulary is the words that the tool writes by itself.
type vocabulary map[string]bool

// ownVocabulary is made for the first output that is judged, and is the same for all: it must not be changed.
var ownVocabulary = sync.OnceValues(func() (vocabulary, error) { return newVocabulary(context.Background()) })

// newVocabulary takes the words of this tool's own lists, and those of the cards
// that it writes: it makes one of each kind of a few rows made up.
func newVocabulary(ctx context.Context) (vocabulary, error) {
	v := vocabulary{}
	v.add(ownWords)
	for _, list := range [][]string{trace.AllCategories(), profile.Metrics(), token.Names(), token.TemplateNames()} {
		v.add(strings.Join(list, " "))
	}
	for _, f := range datasets.Formats() {
		v.add(f.Name)
	}
	for _, one := range usage.EveryFinding.All() { // of counts in results that cannot be
		v.add(one.Key())
	}
	cards, err := ownCards(ctx)
	v.add(strings.Join(cards, " "))
	return v, err
}

func (v vocabulary) add(text string) {
	for w := range words(text) {
		v[w] = true
	}
}

// has reports whether all words of s are the tool's own. What is neither letter
// nor digit, and figures, are no words, nor are words of one or two letters.
func (v vocabulary) has(s string) bool {
	for w := range words(s) {
		if len(w) > 2 && !v[w] {
			return false
		}
	}
	return true
}

// words gives the runs of letters of a text, in lower case. Bytes beyond ASCII
// count as letters: there are few that the tool writes.
func words(s string) func(yield func(string) bool) {
	return strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return r < 0x80 && (r < 'a' || r > 'z') })
}

// ownCards makes a card of every kind that package anonymize writes.
func ownCards(ctx context.Context) ([]string, error) {
	var out []string
	add := func(c anonymize.Card) error {
		text, _, err := c.JSON()
		out = append(out, text)
		return err
	}
	tok, err := token.Open("o200k_base")
	if err != nil {
		return nil, err
	}
	text := anonymize.Policy{Tier: anonymize.Internal, BlockSize: 16, Tokenizer: tok, Workers: 1,
		Raw: io.Discard, KTemplate: 2, Confined: &anonymize.Confinement{Network: "seccomp", Files: "landlock abi",
			CoreDumps: "off"}}
	entries := &fewEntries{text: true}
	var rows trace.SliceWriter[trace.Request]
	card, err := anonymize.Run(ctx, text, entries, &rows)
	if err != nil {
		return nil, err
	}
	card.SourceFields = &anonymize.SourceFields{Format: "jsonl", Kinds: map[string]int{}, More: true}
	for _, target := range datasets.Targets() { // and formats are words already
		card.SourceFields.Mapped = append(card.SourceFields.Mapped, target[0])
	}
	for _, kind := range datasets.FieldKinds() {
		card.SourceFields.Kinds[kind] = 1
	}
	if err := add(card); err != nil {
		return nil, err
	}
	for _, of := range []struct{ unit, sessions string }{{anonymize.UnitUser, "source"},
		{anonymize.UnitSession, "source"}, {anonymize.UnitSession, "inferred"}, {anonymize.UnitRequest, "inferred"}} {
		meta := trace.Meta{BlockSize: 16, Sessions: of.sessions, Capture: trace.RelativeCapture(0, time.Minute)}
		m, _, err := release.Fit(ctx, (&fewEntries{}).rows(), meta, release.Options{Unit: of.unit, Unchecked: true})
		if err != nil {
			return nil, err
		}
		s := m.Statement()
		s.Ledger = &dp.Total{}
		for _, tier := range []string{anonymize.Partner, anonymize.Public} {
			if err := add(anonymize.SessionsCard(s, trace.Meta{Tier: tier, Keys: "0,ephemeral"})); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// fewEntries are a few made-up requests.
type fewEntries struct {
	text bool
	done bool
}

const few = 4

func (f *fewEntries) Read(batch []trace.Entry) (int, error) {
	if f.done || len(batch) < few {
		return 0, io.EOF
	}
	f.done = true
	for i := range few {
		batch[i] = trace.Entry{Time: time.Unix(int64(i), 0),
			Messages: []trace.Message{{Role: trace.User, Content: trace.NewText("hello")}}}
	}
	return few, nil
}

// rows are such requests as rows; one of them names nobody, and one is a next turn.
func (f *fewEntries) rows() trace.Reader[trace.Request] {
	var rows []trace.Request
	for i := range int64(few) {
		r := trace.Request{ArrivalNS: i * int64(time.Second), InputTokens: 10, OutputTokens: trace.Ptr[int32](10),
			Blocks: []uint64{uint64(i)}, Kind: "chat", Status: trace.StatusOK}
		if i > 0 {
			r.User, r.Session = trace.Ptr(i), trace.Ptr(i)
		}
		rows = append(rows, r)
	}
	next := rows[few-1]
	next.ArrivalNS += int64(time.Second)
	rows = append(rows, next)
	return &trace.SliceReader[trace.Request]{Rows: rows}
}
