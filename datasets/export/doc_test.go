package export

import (
	"flag"
	"fmt"
	"os"
	"reprise/datasets"
	"strings"
	"testing"
)

var updateDoc = flag.Bool("update", false, "rewrite docs/formats.md")

const formatsDoc = "../../docs/formats.md"

// The page of formats is made from the code.
func TestFormatsDoc(t *testing.T) {
	want := formatsPage()
	if *updateDoc {
		if err := os.WriteFile(formatsDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(formatsDoc)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/formats.md is not what the code says: go test ./datasets/export -run TestFormatsDoc -update")
	}
}

// ownLogPage says how a log of no known format is imported. In it ~ stands for a backtick.
const ownLogPage = `
## Your own log

~reprise import FILE~ of a log that no format fits lists the fields that it found and
ends with a command to paste. ~import --inspect FILE~ shows the same for any log, and
~--json~ makes it JSON. Neither prints text: of the values only numbers, dates and
lengths are shown.

~~~
$ reprise import requests.csv
reprise: requests.csv:1:1: unrecognised format
Fields of all 3 records:
  Datum           always  date, 2026-11-03 09:00 to 2026-11-04 18:30
  Eingabe-Tokens  always  whole number, 12 to 1234
  Ausgabe-Tokens  always  whole number, 3 to 56
To import it:
  reprise import requests.csv --map time=Datum \
    --map input_tokens=Eingabe-Tokens --map output_tokens=Ausgabe-Tokens \
    -o requests.parquet
~~~

| ~--map~ target | what it is |
|---|---|
TARGETS
A path is the name of a column, or dotted keys and places in lists such as
~usage.prompt_tokens~ and ~choices[0].text~. With ~a|b~ the first that a record has
counts. Several pairs may stand in one flag, with commas between them.

- **CSV.** The delimiter (comma, semicolon, tab or ~|~), the quotes, decimal commas and
  UTF-16 are recognised and stated; ~--delimiter~ names another one.
- **Dates.** ISO 8601, ~02.01.2026 15:04:05~, ~11/23/2026 09:00:01 AM~ and the like, and
  numbers since 1970 in s, ms, µs or ns are recognised and stated. Where no date shows
  whether the day or the month comes first, the import stops and asks.
  ~--time-format~ names a layout, by strptime (~'%d.%m.%y %H:%M'~) or as in Go;
  ~--time-unit~ names the unit of numbers; ~--tz~ the zone of times without one.
- **Bad records** are counted, located and left out, up to ~--max-bad~.
`

// lengthsPage says where the lengths of a record with text and usage come from.
// In it ~ stands for a backtick.
const lengthsPage = `
## Text and usage

Where a record has the text of its prompt and the server's count of its tokens
(usage), ~input_tokens~ is the count of the text, by ~--tokenizer~ and ~--template~,
so that it agrees with the prefix blocks, and ~output_tokens~ is that of usage. The
length is another where the text cannot be what was sent, and where ~--map~ names it:

| text of the prompt | with usage | without usage |
|---|---|---|
| a whole message is a redaction marker: ~[REDACTED]~, ~<redacted>~, ~***~, a hash, ~{"length":9}~, ~content was removed by policy~ | length of usage, no blocks | all messages are: a bad record; some are: as the text that is left |
| empty, without images or calls of tools | length of usage, no blocks | a bad record |
| counts below a tenth of usage | length of usage, no blocks | – |
| any other, and ~--map~ names ~input_tokens~ | length that ~--map~ names; the blocks of the text where that has as many of them, else none | as the text |

The first three rules hold for the answer too, of whose usage reasoning tokens are
taken off first. A redacted answer without usage has 0 output tokens, and the import
says how many have. A call that failed has no usage: where its prompt is redacted it
is left out, and is no bad record. Hashes and lengths in messages of tools are their
results, and no markers.

The import warns of all this, and ~--json~ counts it in ~lengths_of_source~. Rows
without blocks take no part in hit ratios, which are of the other rows.
`

// readTables are the fields that are read of each format.
func readTables() string {
	var b strings.Builder
	b.WriteString(`
## What is read of each

These fields, and the columns of trace/1 that they feed; ` + "`[]`" + ` stands for the
members of a list. What is not named here is taken out of a record before it is
decoded, and counted: see [privacy](privacy.md#the-card). ` + "`jsonl`, `csv` and `parquet`" + `
are read by the fields that ` + "`--map`" + ` names.
`)
	for _, f := range datasets.Formats() {
		fields, _ := datasets.ReadFields(f.Name, nil)
		if len(fields) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| field | columns | what becomes of it |\n|---|---|---|\n", f.Name)
		for _, r := range fields {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.Join(r.Paths, "`, `"), strings.Join(r.Columns, ", "), r.How)
		}
	}
	return b.String()
}

// triedPage says which readers were tried on real files.
func triedPage() string {
	var b strings.Builder
	b.WriteString(`
These readers were tried on real files that are not part of the project. Where they are at
hand, a test compares the totals with those of a script in another language:

| format | tried on |
|---|---|
`)
	for _, f := range datasets.Formats() {
		if f.Tried != "" {
			fmt.Fprintf(&b, "| `%s` | %s |\n", f.Name, cell(f.Tried))
		}
	}
	return b.String()
}

func formatsPage() string {
	var b strings.Builder
	b.WriteString(`# Formats

This page is made from the code; do not edit it. To make it anew:

    go test ./datasets/export -run TestFormatsDoc -update

## What can be read

The format is recognised by content, or named with ` + "`--format`" + `. Of each, one record:

| format | what it is | a record |
|---|---|---|
`)
	for _, f := range datasets.Formats() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, cell(f.About), code(f.Example))
	}
	b.WriteString(triedPage())
	var targets strings.Builder
	for _, t := range datasets.Targets() {
		fmt.Fprintf(&targets, "| `%s` | %s |\n", t[0], cell(t[1]))
	}
	b.WriteString(strings.Replace(strings.ReplaceAll(ownLogPage, "~", "`"), "TARGETS", targets.String(), 1))
	b.WriteString(strings.ReplaceAll(lengthsPage, "~", "`"))
	b.WriteString(readTables())
	b.WriteString(`
## What can be written

` + "`reprise export TRACE --to FORMAT`" + ` writes a trace for another tool. Every
format keeps arrivals and lengths unless it says otherwise below; what a file
does not tell of the trace at hand is counted and said by the command. Rows that
failed or were cancelled are written too.

| format | what it is | needs | what it cannot say |
|---|---|---|---|
`)
	for _, out := range Formats() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", out.Name, cell(out.About), needs(out), cell(strings.Join(out.Loses, "; ")))
	}
	b.WriteString("\nHow each is spelled, and how the tool that reads it is told of it:\n")
	for _, out := range Formats() {
		fmt.Fprintf(&b, "\n### %s\n\n```\n%s%s\n```\n", out.Name, out.top, out.Example)
		if out.Use != "" {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", out.Use)
		}
	}
	return b.String()
}

func needs(out Format) string {
	var n []string
	if out.NeedsBlocks {
		n = append(n, "block ids")
	}
	if out.NeedsPrompts {
		n = append(n, "a tokenizer, for prompts")
	}
	if out.HeaderExt != "" {
		n = append(n, "a second file, ."+out.HeaderExt)
	}
	return strings.Join(n, ", ")
}

// cell makes text fit for a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", "<br>").Replace(text)
}

// code makes an example fit for a table: between backticks nothing but the bar
// needs to be escaped.
func code(example string) string {
	if example == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(example), "\n")
	for i, line := range lines {
		fence := "`"
		if strings.Contains(line, "`") {
			fence = "``"
		}
		lines[i] = fence + strings.ReplaceAll(line, "|", `\|`) + fence
	}
	return strings.Join(lines, "<br>")
}
