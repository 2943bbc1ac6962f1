package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/profile"
	"reprise/trace/textpage"
	"reprise/trace/token"
)

// A countJSON is an [anonymize.ModelCount] as --json prints it.
type countJSON struct {
	Model      string   `json:"model"`
	Others     bool     `json:"others,omitempty"`
	Template   string   `json:"template,omitempty"`
	Requests   int64    `json:"requests"`
	Counted    int64    `json:"input_tokens_by_text"`
	Source     int64    `json:"input_tokens_of_source"`
	Difference *float64 `json:"difference_percent"`
	Apart      bool     `json:"above_1_percent"`
}

// maxSaid is how many models are said one by one.
const maxSaid = 20

// countWords say, for each model, how the count of the text compares with that
// of the source.
func countWords(card anonymize.Card) (out []string) {
	apart := false
	for i, m := range card.Totals.Models {
		if i == maxSaid {
			out = append(out, fmt.Sprintf("%d more models: --json lists them", len(card.Totals.Models)-maxSaid))
			break
		}
		name := m.Model
		switch {
		case m.Others:
			name = "all other models"
		case name == "":
			name = "requests without a model"
		}
		if m.Template != "" {
			name += ", template " + m.Template
		}
		difference := "the source says 0"
		if p, ok := m.Percent(); ok {
			difference = signedPercent(p / 100)
		}
		line := fmt.Sprintf("%s: text counts %s input tokens in %s, the source %s (%s)", name, doc.Count(m.Counted),
			doc.Many(m.Requests, "request"), doc.Count(m.Source), difference)
		if m.Apart() {
			apart = true
			line = "warning: " + line
		}
		out = append(out, line)
	}
	if apart {
		out = append(out, fmt.Sprintf("counts differ by more than %g %%: pass the server's tokenizer "+
			"(--tokenizer) and chat template (--template auto, or its file); a server may add to the prompt too",
			anonymize.Warn))
	}
	return out
}

// signedPercent prints a change as a share in percent.
func signedPercent(share float64) string {
	if share > 0 {
		return "+" + doc.Percent(share)
	}
	return doc.Percent(share)
}

// coarse is how many blocks a prompt has to have on average for what is lost of the last shared one to be little.
const coarse = 4

// sourceNotes say which fields of a source are in no column, what it does not tell, what
// to do about that, and what of the counts is an estimate.
func sourceNotes(info datasets.Info, card anonymize.Card, p anonymize.Policy) (notes []string) {
	t := card.Totals
	switch {
	case len(info.Unread) > 0:
		notes = append(notes, unread(info, t.Users > 0))
	case info.Fields != nil && info.Fields.Dropped > 0:
		notes = append(notes, (*anonymize.SourceFields)(info.Fields).Words())
	}
	if t.Blocks == 0 {
		notes = append(notes, "no prefix blocks and no text: reuse is unknown, not 0, and a replay shares nothing; a "+
			"log with prompts or with block hashes has it")
	}
	mean := t.InputTokens / max(t.Requests, 1)
	if t.Sources.FromText > 0 && card.BlockSize > profile.DefaultServerBlock && mean < coarse*int64(card.BlockSize) {
		notes = append(notes, fmt.Sprintf("prompts have %s tokens on average and blocks %s: prompts that share less "+
			"than a block share nothing, so reuse looks smaller than a server's. --block-size %d is a server's block",
			doc.Count(mean), doc.Count(int64(card.BlockSize)), profile.DefaultServerBlock))
	}
	if t.Users == 0 {
		notes = append(notes, "no user ids found, so per-user privacy is unavailable: log an end-user id with each "+
			"request to have it")
	}
	if t.Sessions == 0 && t.Blocks == 0 {
		notes = append(notes, "no sessions: turns of one conversation are not linked; log a conversation id "+
			"to have them")
	} else if t.Sessions == 0 && t.Inferred.Sessions == 0 {
		notes = append(notes, "no sessions: the blocks do not show which requests are turns of one conversation; log "+
			"a conversation id to have them")
	} else if t.Sessions == 0 {
		notes = append(notes, "no session ids: "+t.Inferred.Words(t.Requests-t.Failed)+
			", and think times are unknown; log a conversation id to have both")
	}
	if t.Unchained > 0 {
		notes = append(notes, fmt.Sprintf("%d requests go on from answers beyond the first 1,048,576, and have no "+
			"session: import the log in parts", t.Unchained))
	}
	for _, name := range slices.Sorted(maps.Keys(card.Totals.Templates)) {
		template, err := token.OpenTemplate(name)
		switch n := card.Totals.Templates[name]; {
		case err != nil: // of a file: it cannot be told
		case name == "none" && card.Template == "auto":
			notes = append(notes, fmt.Sprintf("%d requests name no model whose chat template is built in, and were "+
				"counted without one: give it with --template", n))
		case template.Foreign(p.Tokenizer):
			notes = append(notes, fmt.Sprintf("the tokenizer %s lacks special tokens of the template %s, so it is "+
				"not its models' own: each counts as one token, and the lengths of %d requests are estimates",
				card.Tokenizer, name, n))
		}
	}
	if n := card.Totals.Refused; n > 0 {
		notes = append(notes, fmt.Sprintf("%d requests whose conversation the template refuses, as a server with it "+
			"would: they were counted without it", n))
	}
	return notes
}

// A gapsJSON is [anonymize.Gaps] as --json prints it.
type gapsJSON struct {
	Requests int64 `json:"requests"`
	Marker   int64 `json:"redaction_marker"`
	Empty    int64 `json:"empty"`
	Short    int64 `json:"below_half"`
	Unnamed  int64 `json:"one_text_with_other_counts"`
}

func newGapsJSON(g anonymize.Gaps) gapsJSON {
	return gapsJSON{g.Total(), g.Marker, g.Empty, g.Short, g.Unnamed}
}

// gapWarnings tell for how many requests the counts of the source stand in for those
// of the text, and which requests the figures of reuse then cover.
func gapWarnings(t anonymize.Totals) []string {
	var out []string
	warn := func(n int64, format string, args ...any) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%d of %d requests ", n, t.Requests)+fmt.Sprintf(format, args...))
		}
	}
	all := t.InputGaps.Total()
	warn(all, "have the input length that the source counts, since their text differs from the text that was sent "+
		"(%s): no prefix blocks are made of it", gapWords(t.InputGaps))
	switch {
	case t.Sources.Estimated > 0:
		warn(t.Sources.Estimated, "have prefix blocks that are inferred from cached tokens, sessions and tools: hit "+
			"ratios are estimates, and profile prints beside them what the server measured, if it did")
	case all == t.Requests && all > 0:
		out = append(out, "no request is left whose prefix reuse is known: hit ratios are unknown, not 0")
	case all > 0:
		out = append(out, fmt.Sprintf("hit ratios are of the other %d requests", t.Requests-all))
	}
	warn(t.OutputGaps.Total(), "have no blocks of their output, since the source's answer differs from the answer "+
		"that was sent (%s): their output length is the one that the source counts", gapWords(t.OutputGaps))
	warn(t.UnknownOutputs, "have no output length: name its field with --map output_tokens=FIELD, or give replay "+
		"--output-tokens")
	warn(t.MessageHashes, "have hashes in place of messages: which prompts share a beginning is exact, and for how "+
		"many tokens is an estimate")
	warn(t.PartlyRedacted, "have redacted messages and no count of their tokens: their lengths are of the text that "+
		"is left, and their blocks may be equal where the prompts were not")
	return out
}

// sourceWords say of how many requests the lengths and the blocks are made of what.
func sourceWords(t anonymize.Totals) string {
	s := t.Sources
	list := func(of ...any) string {
		var words []string
		for i := 0; i < len(of); i += 2 {
			if n := of[i+1].(int64); n > 0 {
				words = append(words, fmt.Sprintf("%s %s", of[i], doc.Count(n)))
			}
		}
		return strings.Join(words, ", ")
	}
	says := "lengths: " + list("usage", s.Usage, "text", s.Text) + "; reuse: " +
		list("text", s.FromText, "hashes", s.FromHashes, "inferred", s.Estimated, "unknown",
			t.Requests-s.FromText-s.FromHashes-s.Estimated)
	if t.Users > 0 {
		says += "; users: " + doc.Count(int64(t.Users))
	}
	return says
}

// gapWords list why the text is not what was sent.
func gapWords(g anonymize.Gaps) string {
	var words []string
	for _, w := range []struct {
		n    int64
		what string
	}{{g.Marker, "a redaction marker"}, {g.Empty, "empty"}, {g.Short, "the text counts below half"},
		{g.Unnamed, "one text with other counts"}} {
		if w.n > 0 {
			words = append(words, fmt.Sprintf("%s: %d", w.what, w.n))
		}
	}
	return strings.Join(words, "; ")
}

// say tells what was imported, and released: to stdout as JSON, or to stderr for people.
func (f *importFlags) say(cmd *cobra.Command, info datasets.Info, card anonymize.Card, p anonymize.Policy,
	timing string, released ...string) error {
	t := card.Totals
	if f.tier.Drawn() {
		info.Unread = nil // what is said of a release goes where it goes
	}
	notes := slices.Concat(info.Notes, sourceNotes(info, card, p))
	warnings := gapWarnings(t)
	if n := len(info.LeftOut); n > 0 {
		var names []string
		for _, file := range info.LeftOut[:min(n, 5)] {
			names = append(names, filepath.Base(file))
		}
		says := doc.Many(int64(n), "file") + " of no known format left out: " + strings.Join(names, ", ")
		if n > len(names) {
			says += fmt.Sprintf(" and %d more", n-len(names))
		}
		warnings = append([]string{says}, warnings...)
	}
	if cli.On(cmd, "json") {
		notes = append(notes, warnings...)
		counts := make([]countJSON, len(t.Models))
		for i, m := range t.Models {
			counts[i] = countJSON{Model: m.Model, Others: m.Others, Template: m.Template, Requests: m.Requests,
				Counted: m.Counted, Source: m.Source, Apart: m.Apart()}
			if p, ok := m.Percent(); ok {
				counts[i].Difference = &p
			}
		}
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"format": info.Format, "time_unit": told(info.TimeUnit),
			"timing":  told(timing),
			"records": info.Records, "bad_records": info.Bad, "notes": notes, "requests": t.Requests,
			"failed":       t.Failed,
			"input_tokens": t.InputTokens, "output_tokens": t.KnownOutput(), "distinct_blocks": told(t.Blocks),
			"sessions": told(t.Sessions), "users": told(t.Users), "spill_bytes": t.SpillBytes,
			"tier": anonymize.Internal, "trace_tier": f.tier.Tier,
			"tokenizer": told(card.Tokenizer), "template": told(card.Template),
			"refused_by_template": t.Refused, "counts": counts,
			"sources": map[string]int64{"length_usage": t.Sources.Usage, "length_text": t.Sources.Text,
				"reuse_text":   t.Sources.FromText,
				"reuse_hashes": t.Sources.FromHashes, "reuse_inferred": t.Sources.Estimated},
			"prefix_breakers": card.Breakers, "lengths_of_source": map[string]any{"input": newGapsJSON(t.InputGaps),
				"output": newGapsJSON(t.OutputGaps)},
			"unknown_outputs": t.UnknownOutputs, "redacted_in_part": t.PartlyRedacted,
			"messages_by_hash": t.MessageHashes})
	}
	cli.Answer(cmd, "--details prints them", append(released, f.answer(info, card, timing, warnings, notes)...)...)
	return nil
}

// answer is what was imported, for people.
func (f *importFlags) answer(info datasets.Info, card anonymize.Card, timing string,
	warnings, notes []string) (out []string) {
	t := card.Totals
	blocks := "no blocks"
	if t.Blocks > 0 {
		blocks = fmt.Sprintf("%s of %d tokens", doc.Many(int64(t.Blocks), "distinct block"), card.BlockSize)
		if info.HasText {
			blocks += " in prompts and answers"
		}
	}
	failed := ""
	if t.Failed > 0 {
		failed = fmt.Sprintf(" (%s failed)", doc.Count(t.Failed))
	}
	times := "times in the source: " + info.TimeUnit
	if timing != "" {
		times = "times " + timing
	}
	name := outputName(f.out)
	if f.tier.Drawn() {
		name = "imported"
	}
	lengths := doc.Count(t.InputTokens) + " input tokens, output lengths unknown"
	if n := t.KnownOutput(); n != nil {
		lengths = fmt.Sprintf("%s input and %s output tokens", doc.Count(t.InputTokens), doc.Count(*n))
	}
	out = append(out, fmt.Sprintf("%s: %s%s, %s, %s", name, doc.Many(t.Requests, "request"), failed, lengths, blocks),
		fmt.Sprintf("source: %s, %s; %s", info.Format, doc.Many(info.Records, "record"), times), sourceWords(t))
	switch f.tier.Tier {
	case anonymize.Raw:
		out = append(out, fmt.Sprintf("tier raw: %s keeps the text as it was, for replay --verbatim; do not share it "+
			"outside your organisation", rawName(f.out)))
		fallthrough
	case anonymize.Internal:
		out = append(out, trace.TierWords(card.Tier))
	}
	if says := captureWords(f.Capture.Declared); says != "" {
		out = append(out, says)
	}
	if f.Capture.Declared.Relative {
		out = append(out, "note: the window counts from the zero of the source's own clock: where somebody moved "+
			"that to the first request, it is one person's still, and no release of tier partner or public hides it")
	}
	for _, w := range warnings {
		out = append(out, "warning: "+w)
	}
	out = append(out, countWords(card)...)
	if info.Bad > 0 {
		out = append(out, skipped(info))
	}
	for _, n := range slices.Concat(notes, card.Breakers.Notes()) {
		out = append(out, "note: "+n)
	}
	if t.SpillBytes > 0 {
		out = append(out, fmt.Sprintf("%d MB went through private spill files, which are gone",
			(t.SpillBytes+1<<20-1)>>20))
	}
	return out
}

// unread names fields of a source that are in no column, for its owner.
func unread(info datasets.Info, users bool) string {
	const most = 12
	says := "source fields that were not read: " +
		strings.Join(info.Unread[:min(len(info.Unread), most)], ", ")
	if n := info.Fields.Dropped - min(len(info.Unread), most); n > 0 {
		says += fmt.Sprintf(" and %d more, which import --inspect lists", n)
	}
	target := "user"
	if users {
		target = "class"
	}
	if _, adds := datasets.ReadFields(info.Format, []string{target}); adds {
		says += "; --map takes one in, such as --map " + target + "=" + info.Unread[0]
	}
	return textpage.Plain(says)
}

// skipped says which records were bad.
func skipped(info datasets.Info) string {
	says := doc.Many(info.Bad, "bad record") + " skipped, the first of them:"
	if info.Bad == 1 {
		says = "1 bad record skipped:"
	}
	for _, b := range info.FirstBad {
		says += fmt.Sprintf("\n- %v", b)
	}
	return says
}

// told is a value for JSON, or null where the source does not tell: 0 users or
// blocks are none that it names, not none that there were.
func told[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
