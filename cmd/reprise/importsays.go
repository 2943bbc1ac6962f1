package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/datasets"
	"reprise/trace/page"
)

// say tells what was imported, and released: to stdout as JSON, or to stderr for people.
func (f *importFlags) say(cmd *cobra.Command, info datasets.Info, card anonymize.Card, p anonymize.Policy, timing string, released ...string) error {
	t := card.Totals
	notes := slices.Concat(info.Notes, sourceNotes(info, card, p))
	warnings := gapWarnings(t)
	if n := len(info.LeftOut); n > 0 {
		var names []string
		for _, file := range info.LeftOut[:min(n, 5)] {
			names = append(names, filepath.Base(file))
		}
		says := page.Many(int64(n), "file") + " of no known format left out: " + strings.Join(names, ", ")
		if n > len(names) {
			says += fmt.Sprintf(" and %d more", n-len(names))
		}
		warnings = append([]string{says}, warnings...)
	}
	if f.asJSON {
		notes = append(notes, warnings...)
		counts := make([]countJSON, len(t.Models))
		for i, m := range t.Models {
			counts[i] = countJSON{Model: m.Model, Others: m.Others, Template: m.Template, Requests: m.Requests, Counted: m.Counted, Source: m.Source, Apart: m.Apart()}
			if p, ok := m.Percent(); ok {
				counts[i].Difference = &p
			}
		}
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"format": info.Format, "time_unit": told(info.TimeUnit), "timing": told(timing),
			"records": info.Records, "bad_records": info.Bad, "notes": notes, "requests": t.Requests, "failed": t.Failed,
			"input_tokens": t.InputTokens, "output_tokens": t.OutputTokens, "distinct_blocks": told(t.Blocks),
			"sessions": told(t.Sessions), "users": told(t.Users), "spill_bytes": t.SpillBytes, "tier": anonymize.Internal, "trace_tier": f.tier.Tier,
			"tokenizer": told(card.Tokenizer), "template": told(card.Template), "refused_by_template": t.Refused, "counts": counts,
			"sources": map[string]int64{"length_usage": t.Sources.Usage, "length_text": t.Sources.Text, "reuse_text": t.Sources.FromText,
				"reuse_hashes": t.Sources.FromHashes, "reuse_inferred": t.Sources.Estimated},
			"prefix_breakers": card.Breakers, "lengths_of_source": map[string]any{"input": newGapsJSON(t.InputGaps), "output": newGapsJSON(t.OutputGaps)},
			"unknown_outputs": t.UnknownOutputs, "redacted_in_part": t.PartlyRedacted, "messages_by_hash": t.MessageHashes})
	}
	cli.Answer(cmd, "--details prints them", append(released, f.answer(info, card, timing, warnings, notes)...)...)
	return nil
}

// answer is what was imported, for people.
func (f *importFlags) answer(info datasets.Info, card anonymize.Card, timing string, warnings, notes []string) (out []string) {
	t := card.Totals
	blocks := "no blocks"
	if t.Blocks > 0 {
		blocks = fmt.Sprintf("%s of %d tokens", page.Many(int64(t.Blocks), "distinct block"), card.BlockSize)
	}
	failed := ""
	if t.Failed > 0 {
		failed = fmt.Sprintf(" (%s failed)", page.Count(t.Failed))
	}
	times := "times in the source: " + info.TimeUnit
	if timing != "" {
		times = "times " + timing
	}
	name := outputName(f.out)
	if f.tier.Drawn() {
		name = "imported"
	}
	out = append(out, fmt.Sprintf("%s: %s%s, %s input and %s output tokens, %s", name, page.Many(t.Requests, "request"), failed, page.Count(t.InputTokens), page.Count(t.OutputTokens), blocks),
		fmt.Sprintf("source: %s, %s; %s", info.Format, page.Many(info.Records, "record"), times), sourceWords(t))
	switch f.tier.Tier {
	case anonymize.Raw:
		out = append(out, fmt.Sprintf("tier raw: %s keeps the text as it was, for replay --verbatim; do not share it outside your organisation", rawName(f.out)))
		fallthrough
	case anonymize.Internal:
		out = append(out, fmt.Sprintf("tier %s: pseudonymous, for use inside your organisation", card.Tier))
	}
	if says := captureWords(f.capture.Declared); says != "" {
		out = append(out, says)
	}
	if f.capture.Declared.Relative {
		out = append(out, "note: the window counts from the zero of the source's own clock: where somebody moved that to the first request, it is one person's still, and no release of tier partner or public hides it")
	}
	for _, w := range warnings {
		out = append(out, "warning: "+w)
	}
	out = append(out, countWords(card)...)
	if info.Bad > 0 {
		bad := page.Many(info.Bad, "bad record") + " skipped, the first of them:"
		if info.Bad == 1 {
			bad = "1 bad record skipped:"
		}
		for _, b := range info.FirstBad {
			bad += fmt.Sprintf("\n- %v", b)
		}
		out = append(out, bad)
	}
	for _, n := range slices.Concat(notes, card.Breakers.Notes()) {
		out = append(out, "note: "+n)
	}
	if t.SpillBytes > 0 {
		out = append(out, fmt.Sprintf("%d MB went through private spill files, which are gone", (t.SpillBytes+1<<20-1)>>20))
	}
	return out
}

// told is a value for JSON, or null where the source does not tell: 0 users or
// blocks are none that it names, not none that there were.
func told[T comparable](v T) *T {
	if v == *new(T) {
		return nil
	}
	return &v
}
