package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
	"reprise/trace/doc"
)

// A written is what a command says of the rows that it wrote to a file, in a line or as
// JSON.
type written struct {
	File         string   `json:"file"`
	Partitions   int      `json:"partitions,omitempty"` // of a folder
	Format       string   `json:"format,omitempty"`     // that of another tool
	Tier         string   `json:"tier"`
	Requests     int64    `json:"requests"`
	Of           *int64   `json:"of_requests,omitempty"` // that there were
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	DurationS    float64  `json:"duration_s"` // from the first arrival to the last
	Notes        []string `json:"notes"`
	Use          string   `json:"use,omitempty"` // a command line that reads the file

	firstNS, lastNS int64
	toCome          int64 // requests, of a folder of partitions
}

// A tally counts rows on their way into a file.
type tally struct {
	trace.Writer[trace.Request]
	to *written
}

// Write implements trace.Writer.
func (t tally) Write(rows []trace.Request) (int, error) {
	for i := range rows {
		r := &rows[i]
		if t.to.Requests == 0 {
			t.to.firstNS = r.ArrivalNS
		}
		t.to.Requests++
		t.to.lastNS = r.ArrivalNS
		t.to.InputTokens += int64(r.InputTokens)
		t.to.OutputTokens += int64(r.OutputOr(0))
	}
	return t.Writer.Write(rows)
}

// writeTallied writes a trace, and then says what is in it.
func writeTallied(cmd *cobra.Command, path string, w *written,
	rows func(trace.Writer[trace.Request]) (trace.Meta, error)) error {
	if err := jsonOrFile(cmd, path); err != nil {
		return err
	}
	tallied := func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		meta, err := rows(tally{dst, w})
		w.Tier = meta.Tier
		return meta, err
	}
	var err error
	if w.Partitions > 0 {
		err = trace.CreatePartitioned(path, w.Partitions, w.toCome, tallied)
	} else {
		err = cli.WriteTrace(cmd, path, tallied)
	}
	if err != nil {
		return err
	}
	return w.say(cmd, path)
}

// say prints what was written to path: as JSON on stdout with --json, else on stderr.
func (w *written) say(cmd *cobra.Command, path string) error {
	w.File, w.DurationS = path, float64(w.lastNS-w.firstNS)/1e9
	if cli.On(cmd, "json") {
		if w.Notes == nil {
			w.Notes = []string{}
		}
		return cli.WriteJSON(cmd.OutOrStdout(), w)
	}
	requests := doc.Many(w.Requests, "request")
	if w.Of != nil {
		requests = fmt.Sprintf("%s of %s", doc.Count(w.Requests), doc.Many(*w.Of, "request"))
	}
	answer := fmt.Sprintf("%s: %s in %s s, %s input and %s output tokens", outputName(path), requests,
		doc.Number(w.DurationS), doc.Count(w.InputTokens), doc.Count(w.OutputTokens))
	if w.Partitions > 0 {
		answer += ", in " + doc.Many(int64(w.Partitions), "partition")
	}
	messages := []string{answer}
	if w.Tier != "" {
		messages = append(messages, trace.TierWords(w.Tier))
	}
	for _, n := range w.Notes {
		messages = append(messages, "note: "+n)
	}
	if w.Use != "" {
		messages = append(messages, "use:  "+w.Use)
	}
	cli.Answer(cmd, "--json prints them", messages...)
	return nil
}

// jsonOrFile refuses --json beside a file that goes to stdout.
func jsonOrFile(cmd *cobra.Command, path string) error {
	if cli.On(cmd, "json") && path == cli.Standard {
		return cli.Usagef("--json and -o - both write to stdout")
	}
	return nil
}

// outputName is how a message names what -o says.
func outputName(path string) string {
	if path == cli.Standard || path == "" {
		return "stdout"
	}
	return path
}

// randomID is a name that nothing else has, of 32 hexadecimal digits.
func randomID() string {
	id := make([]byte, 16)
	rand.Read(id)
	return hex.EncodeToString(id)
}
