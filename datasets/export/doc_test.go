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

When no format fits, ~reprise import FILE~ lists the fields that it found and ends with a
command to paste. ~import --inspect FILE~ shows the same for any log; ~--json~ makes it
JSON. No text is printed: only numbers, dates and lengths.

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
A path is a column name, or keys and list positions such as ~usage.prompt_tokens~ and
~choices[0].text~. ~a|b~ takes the first that a record has. One flag may hold several pairs,
separated by commas.

- **CSV.** Delimiter (comma, semicolon, tab or ~|~), quotes, decimal commas and UTF-16 are
  detected and printed; ~--delimiter~ sets another delimiter.
- **Dates.** ISO 8601, ~02.01.2026 15:04:05~, ~11/23/2026 09:00:01 AM~ and the like, and
  numbers since 1970 in s, ms, µs or ns are detected and printed. If no date shows whether
  the day or the month comes first, the import stops and asks. ~--time-format~ sets a layout,
  in strptime's notation (~'%d.%m.%y %H:%M'~) or Go's; ~--time-unit~ the unit of numbers;
  ~--tz~ the zone of times without one.
- **Bad records** are counted, located and left out, up to ~--max-bad~.
`

// lengthsPage says where the lengths of a record with text and usage come from.
// In it ~ stands for a backtick.
const lengthsPage = `
## Text and usage

When a record has both the prompt's text and the server's token counts (usage),
~input_tokens~ is counted from the text, with ~--tokenizer~ and ~--template~, so that it
agrees with the prefix blocks; ~output_tokens~ comes from usage. Exceptions:

| text of the prompt | with usage | without usage |
|---|---|---|
| a whole message is a redaction marker: ~[REDACTED]~, ~<redacted>~, ~***~, a hash, ~{"length":9}~, ~content was removed by policy~ | length from usage, no blocks | all messages are: a bad record; some are: the text that is left |
| empty, without images or tool calls | length from usage, no blocks | a bad record |
| counts less than a tenth of usage | length from usage, no blocks | – |
| any other, and ~--map~ names ~input_tokens~ | the mapped length; the text's blocks if their number fits it, else none | the length of the text |

The first three apply to answers too, after reasoning tokens are taken off usage. A redacted
answer without usage has 0 output tokens; the import counts these. A failed call with a
redacted prompt is left out and is not a bad record. Hashes and lengths in tool messages are
tool results, not markers.

The import warns of all this, and ~--json~ counts it in ~lengths_of_source~. Rows without
blocks are left out of hit ratios.
`

// readTables are the fields that are read of each format. Formats that read the same
// fields have one table.
func readTables() string {
	var b strings.Builder
	b.WriteString(`
## What is read of each

Only the fields below are read, into these columns of trace/1. All others are removed before
a record is decoded, and counted: see [privacy](privacy.md#the-card). ` + "`[]`" + ` stands for the
members of a list. *Text* is counted into lengths and hashed into block ids under a key; the
text itself is not kept. ` + "`jsonl`, `csv` and `parquet`" + ` read the fields that ` + "`--map`" + ` names.
`)
	tables := map[string]string{} // the format that has each table
	for _, f := range datasets.Formats() {
		fields, _ := datasets.ReadFields(f.Name, nil)
		if len(fields) == 0 {
			continue
		}
		var rows strings.Builder
		for _, r := range fields {
			how := r.How
			if strings.HasPrefix(how, "tokenised") {
				how = "text"
			}
			fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", strings.Join(r.Paths, "`, `"), strings.Join(r.Columns, ", "), how)
		}
		fmt.Fprintf(&b, "\n### %s\n\n", f.Name)
		if first, ok := tables[rows.String()]; ok {
			fmt.Fprintf(&b, "The same fields as [%s](#%s).\n", first, first)
			continue
		}
		tables[rows.String()] = f.Name
		b.WriteString("| field | columns | note |\n|---|---|---|\n" + rows.String())
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

Made from the code; do not edit. To make it again:

    go test ./datasets/export -run TestFormatsDoc -update

## What can be read

The format is recognised by its content; ` + "`--format`" + ` names it. One record of each:

| format | what it is | example |
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

` + "`reprise export TRACE --to FORMAT`" + ` writes a trace for another tool. Every format keeps
arrivals and lengths unless the table says otherwise; the command counts and prints what a
file loses. Rows that failed or were cancelled are written too.

| format | what it is | needs | what it loses |
|---|---|---|---|
`)
	for _, out := range Formats() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", out.Name, cell(out.About), needs(out), cell(strings.Join(out.Loses, "; ")))
	}
	b.WriteString("\nA line of each, and how to give the file to the other tool:\n")
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
