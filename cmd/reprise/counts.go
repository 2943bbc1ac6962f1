package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"reprise/anonymize"
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

func countsJSON(models []anonymize.ModelCount) []countJSON {
	out := make([]countJSON, len(models))
	for i, m := range models {
		out[i] = countJSON{Model: m.Model, Others: m.Others, Template: m.Template, Requests: m.Requests, Counted: m.Counted, Source: m.Source, Apart: m.Apart()}
		if p, ok := m.Percent(); ok {
			out[i].Difference = &p
		}
	}
	return out
}

// maxSaid is how many models are said one by one.
const maxSaid = 20

// sayCounts says, for each model, how the count of the text compares with that
// of the source.
func sayCounts(cmd *cobra.Command, card anonymize.Card) {
	apart := false
	for i, m := range card.Totals.Models {
		if i == maxSaid {
			notef(cmd, "%d more models: --json lists them", len(card.Totals.Models)-maxSaid)
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
			difference = fmt.Sprintf("%+.2f %%", p)
		}
		line := fmt.Sprintf("%s: text counts %d input tokens in %d requests, the source %d (%s)", name, m.Counted, m.Requests, m.Source, difference)
		if m.Apart() {
			apart = true
			line = "warning: " + line
		}
		notef(cmd, "%s", line)
	}
	if apart {
		notef(cmd, "counts are more than %g %% apart: the server has another tokenizer (--tokenizer) or chat template (--template auto, or its file), or adds to the prompt", anonymize.Warn)
	}
}

// templateNotes say what of the counts is an estimate.
func templateNotes(card anonymize.Card, p anonymize.Policy) []string {
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(card.Totals.Templates)) {
		t, err := token.OpenTemplate(name)
		switch n := card.Totals.Templates[name]; {
		case err != nil: // of a file: it cannot be told
		case name == "none" && card.Template == "auto":
			notes = append(notes, fmt.Sprintf("%d requests name no model whose chat template is built in, and were counted without one: give it with --template", n))
		case t.Foreign(p.Tokenizer):
			notes = append(notes, fmt.Sprintf("the tokenizer %s lacks special tokens of the template %s, so it is not that of its models: each counts as one token, and the lengths of %d requests are estimates", card.Tokenizer, name, n))
		}
	}
	if n := card.Totals.Refused; n > 0 {
		notes = append(notes, fmt.Sprintf("%d requests whose conversation the template refuses, as a server with it would: they were counted without it", n))
	}
	return notes
}
