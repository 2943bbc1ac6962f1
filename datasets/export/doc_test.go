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

A log need not be unpacked: gzip and zstd, and lines that docker (~json-file~), the CRI, a shipper, CloudWatch, Loki's logcli or
a logger's prefix surround, are read as what the program wrote, with the time outside where it has none.
NaN and Infinity are null. A text log without requests is refused, with what makes the server log them.

When no format fits, ~reprise import FILE~ lists the fields that it found and ends with a
command to paste. ~import --inspect FILE~ shows the same for any log; ~--json~ makes it
JSON. No text is printed: only numbers, dates and lengths. The command is tried on the
first 1,000 requests: their times and tokens are shown, or why it would fail.

~~~
$ reprise import requests.csv
reprise: requests.csv:1:1: unrecognised format
Fields of all 3 records:
  Datum           always  date, 2026-11-03 09:00 to 2026-11-04 18:30
  Eingabe-Tokens  always  whole number, 12 to 1234
  Ausgabe-Tokens  always  whole number, 3 to 56
All 3 requests, 2026-11-03 09:00:01 to 2026-11-04 18:30:00 UTC:
  1,345 input tokens by usage
  66 output tokens
To import it:
  reprise import requests.csv --map time=Datum \
    --map input_tokens=Eingabe-Tokens --map output_tokens=Ausgabe-Tokens \
    -o requests.parquet
~~~

An import names unread fields, but for a release. ~--map user=metadata.team~ adds any to openai-log, mooncake and formats
declared below; user, model, adapter, class or replica to most.

| ~--map~ target | what it is |
|---|---|
TARGETS
A path is a column name, or keys and list positions such as ~usage.prompt_tokens~ and
~choices[0].text~. ~a|b~ takes the first that a record has. Counts may be sums: ~input_tokens=usage.input_tokens+usage.cache_read_input_tokens~.
So may a day and a time of day: ~time=Date+Time~. One flag may hold several pairs
with commas between. A path leads into JSON in a string:
~usage.prompt_tokens~ is in the column ~usage~.

- **CSV.** Delimiter (comma, semicolon, tab or ~|~), quotes (doubled, or with a backslash
  before them), decimal commas, thousands, UTF-8, UTF-16 and Latin-1 are detected. So are
  ~sep=;~, comments and a title above the header, and line ends; ~--delimiter~ sets another. Without a
  header the columns are named by position: ~--map time=1,input_tokens=3~.
- **Decimals and thousands.** ~1.200~ is 1200 where other numbers have a decimal comma, and
  1.2 where they have a decimal point. If no number decides, the import stops and asks for
  ~--decimal point~ or ~--decimal comma~.
- **Other tables.** Parquet, Arrow IPC and Feather are read as they are. Spreadsheets (XLSX,
  XLS, ODS) are refused with a command that makes them CSV.
- **Dates.** ISO 8601 in all its forms, ~02.01.2026 15:04:05~, ~11/23/2026 09:00:01 AM~,
  those of SQL, HTTP, mail, web servers and Unix, and numbers since 1970 in s, ms, µs or ns
  are detected and printed. If no date shows whether
  the day or the month comes first, the import stops and asks. With a window of two dates
  (~--capture-begin~, ~--capture-end~) each date is read by itself, in the order that is in the
  window; where both are, the record is bad. ~--time-format~ sets a layout,
  in strptime's notation (~'%d.%m.%y %H:%M'~) or Go's; ~--time-unit~ the unit of numbers;
  ~--tz~ the zone of times without one. Spreadsheets' days since 1899 are read as dates. Epochs
  that a 32-bit float rounded, and a mapped time that goes up and down like a duration, are
  refused; ~--time-unit~ says that they are meant.
- **Bad records** are counted, located and left out, up to ~--max-bad~.

## A format of your own

What ~--map~ cannot say, a file can: ~import --inspect LOG -o mine.yaml~ writes one to begin with, and
~import LOG --format mine.yaml~ reads by it.

~~~yaml
about: our gateway
keys: [batch]                  # paths of every record, which tell its files from others; lacks: keys of none
calls: batch.items             # a list in a record that holds the calls, or lists[].of[].lists; record.PATH leads out
unpack: [answer]               # strings that hold JSON
map:                           # targets of --map, and written_tokens and total_tokens
  time: at
  model: what.model | model    # the first that a record has
  session: conv
  e2e_ms: took
usage: answer.usage            # an object with the counts of any provider
counts: exclusive              # cached tokens stand beside the input; inclusive: within it; relayed: each record tells
time_is: end                   # of the call; start is the default
time_unit: ms                  # of numbers that do not show it
drop:                          # also only, failed, and refuse, which stops the import
  - {path: cached, values: true, why: answers of our own cache were left out}
~~~

~times: {start: A, first_token: B, end: C}~ gives latencies by times. ~spans: {trace: A, span: B, parent: C}~ names the ids of
spans: a call that was exported twice is read once. ~values~ are separated by spaces; ~*~ is any but 0, false and
none. ~required: [input_tokens]~ lists targets of every record: one without is bad, and counts are taken as they stand.
~request: A~ and ~response: B~ name the bodies of a call, JSON or JSON in a string: the map leads into them.
The trace names the
format ~format-file~, since a file's name may be a secret, and its card the targets.

## Block ids of a source

An id of a prefix block is a hash of the block and of all before it. Whatever the format, ids that cannot be such hashes are found in one pass:

| ids | what is done |
|---|---|
| the end of a prompt, which fills its block in part, has the id of a full block or of an end with other tokens | each such end is taken as a block of its own, and counted. No cache of whole blocks could share it |
| full blocks only: none has an id for the rest | the rest of each prompt is shared with nothing, and counted |
| more or fewer than the tokens need, or now one and now the other | bad records (~bailian~, ~baseten~ and ~weka~, where that happens, say what they do) |
| of places: the n-th block has the same id in all prompts, of whatever length | refused, exit code 2: each prompt would be the begin of every longer one |

Ids are watched in up to 20 MB; beyond 262,144 distinct ones by a sample, so that counts are estimates.

## Folders

Files of one format become one trace. Files of
no known format are left out, and a warning counts and names them. A file that is named like
the logs but is damaged or lacks its header stops the import, since its requests would be missing; so does JSON that ~--map~ could read. Files of several formats are not
joined, since their clocks and what identifies a session differ: the import stops with a
command line for each format. ~--format~ reads the files of one format and counts the
others. Folders below are read where agents keep their sessions in them.
`

// lengthsPage says where the lengths of a record with text and usage come from.
// In it ~ stands for a backtick.
const lengthsPage = `
## Text and usage

Where a record has the server's count of its tokens (usage), that is the length of the
prompt and of the answer. The text tells only what prompts share: its prefix blocks are
fitted to the length by the ratio between the two counts that the first records of a
model show, or by as many tokens before each message where these explain the difference to
the token; with a declared capture window as they are, since nothing is learnt across users then. What is still missing is filled up with the beginning of the answer, which the
next turn has there; what is too much is cut off. Without usage the length is the count of the text,
by ~--tokenizer~ and ~--template~.

Providers differ in what a count holds: Anthropic counts cached tokens beside the input, Gemini
its thoughts and xAI its reasoning beside the output, others within. Each record decides for
itself, and for no other: by its total, by a part that is more than its whole, or else by the
provider's names for the counts. Where nothing in it shows that cached tokens stand beside the
input, they are taken as part of it. What was added, what was taken so, and what does not add up
is printed with the number of records; ~--cached-in-input yes~ or ~no~ settles it for all
records of tools that pass on either, and for ~--map~. Where text has a count
of zero, its length is that of the text.

One call is one request: spans that are exported twice, layers around a call and agents that sum their calls are left out.

Of texts that are not what was sent the length alone is taken: redacted prompts look equal, and
would share a false prefix.

| text of the prompt | with usage | without usage |
|---|---|---|
| a whole message is a redaction marker: ~[REDACTED]~, ~<redacted>~, ~***~, ~{"length":9}~, ~content was removed by policy~; or all messages have one hash | length of usage, no blocks | all messages are: a bad record; some are: as the text that is left |
| a marker has the hash of each message, with its length or without: ~[REDACTED_TEXT len=345 sha=0a1b2c3d]~, ~{"sha256":"0a1b…"}~, a bare SHA-256 | length of usage; messages of a role with the same hash are the same in the blocks | as above |
| nothing or a marker stands in place of the list of messages: ~[]~, ~{}~, ~"[REDACTED]"~ | length of usage, no blocks | a bad record |
| empty, without calls of tools, and usage counts tokens | length of usage, no blocks | a bad record |
| counts below half of usage, or below a tenth of a prompt of less than 256 tokens; 64 tokens of template are left aside | length of usage, no blocks | – |
| one short text in a fifth of the records or more, with other usage each time | length of usage, no blocks | – |
| any other | length of usage, with the blocks of the text | as the text |

Where all prompts of a model together have 20 % more or less than the text, beside what a
template may add (64 tokens a prompt and 16 a message), neither a template nor a
tokenizer explains it. The import then says so for each such model and stops, until
~--lengths usage~ or ~--lengths text~ says which to trust. It stops as well where more
than 1 % of the requests hold one short text with other usage each time. With a declared capture
window neither stops it, and no text is told from others: usage counts. A length that
~--map input_tokens=~ names counts always.

Where messages are known by their hashes, which prompts begin alike is exact and how long
the common part is, an estimate: from the lengths of the messages, scaled to usage, or from
their number. What all prompts of a model have beside their messages, such as tools, is
taken as the same. The column ~reuse_source~ is ~hashes~.

The markers, empty and short texts hold for the answer too, of whose usage reasoning tokens are
taken off first. A redacted answer without usage has 0 output tokens, and the import
says how many have. A call that failed has no usage: where its prompt is redacted it
is left out, and is no bad record. Hashes and lengths in messages of tools are their
results, and no markers.

The import warns of all this, and ~--json~ counts it in ~lengths_of_source~.

## Agents and tools in Langfuse traces

A downloaded trace, or one from the API with its observations, tells what each call waited for:

- Observations of types ~AGENT~ and ~CHAIN~ are agents, and the trace is one. A generation waits for the one of its agent
  that ended last before it began, and for the last of each agent below that ended since.
- Observations of type ~TOOL~, and those named ~execute_tool~, are tool time where they lie between
  two generations of their agent. The rest of the gap is think time: the client's own, and tools under other names.

In exports of observations one by one, the requests of a trace are one session, without these links.

## Requests that go on from an answer

A request of the Responses API with ~previous_response_id~ holds only what is new: the server
puts the earlier prompts and answers before it. ~api-log~ links such requests by the ids of
answers, and so does any format with ~--map response_id=…~ and ~--map
previous_response_id=…~:

- All requests of a chain are one session, the first included, in whatever order the log has
  them. A request waits for the one whose answer it goes on from, and what it adds tells
  whether a tool or a person took the time between. Up to 1,048,576 answers are told apart, in
  50 bytes each; the import says how many requests are beyond that.
- Its prompt is put together of the records before it, without their ~instructions~. The texts of
  the latest chains are held for this, 64 MiB of them. Where the earlier answer is not in the
  log before it, or has no text, the lengths of the request are those of its usage, and its
  reuse is inferred from the growth of the session, as below.

## Reuse without text

When a source has neither text nor block hashes, import infers prefix blocks, if at least half
of its requests report their cached tokens or still have their tools. The column
~reuse_source~ then is ~inferred~. Four things are used:

- **The trunk.** When the first turns of three sessions or more report the same number of
  cached tokens, these are a prefix that sessions of this model share.
- **Its name.** Requests begin alike if they have the same tools and system prompt, where these
  are not redacted, the same hash of a system prompt, or the same ~prompt_cache_key~ or
  ~system_prompt_id~ (~--map prefix_key=~ names another field). They share the fewest cached
  tokens above 0 that one of their first turns reports, and at least the tools that are there,
  with the system prompt. Requests with different names share nothing, nor do those with
  different ~cache_salt~. A name that only one session has is not used.
- **The session.** A turn that is at least as long as the turn before it and its answer
  begins with both. A shorter one was compacted or is another agent's: it keeps the trunk, or
  what the server found. A call that waited for sub-agents goes on from its own conversation.
- **The cached tokens** are a lower bound: each prompt shares at least as much with an
  earlier one.

Lengths, times and the order of turns stay exact. Which blocks are shared is an estimate:
what sessions have in common beyond the trunk, such as documents, is unknown. A hit is
rounded down to whole blocks, so use ~--block-size 128~ for short prompts.

~profile~ prints reuse as a range, beside what the server found:

~~~
Estimated     87.7 % to 90.4 % of prompt tokens in 10 requests; the server found
              94.2 %, 6.51 % of it from before the trace
~~~

The least is what the server found of earlier requests of the trace: that was shared for
certain. The most is what a cache without limit would find of the inferred blocks, outputs
too. A server may have found more than either: the first requests of a log find what was
cached before it began.

On traffic whose blocks are known the hit ratio is inferred to within 0.01, and the LRU curve to 0.006
([evidence](evidence/inferred-reuse.md)). Names matter where agents with different tools and system prompts report equal cached tokens:
without one the curve can be 0.35 off.
`

func formatsPage() string {
	var b strings.Builder
	b.WriteString(`# Formats

Made from the code; do not edit. To make it again:

    go test ./datasets/export -run TestFormatsDoc -update

## What can be read

The format is recognised by its content; ` + "`--format`" + ` names it. A reader that was made from documentation
says so at import. Only fields that a format names are read: all others are removed before a record is decoded, and counted
([privacy](privacy.md#the-card)). Formats that are a mapping are files, with a record of each:
[datasets/formats](../datasets/formats).

| format | what it is | tried on |
|---|---|---|
`)
	for _, f := range datasets.Formats() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, cell(f.About), cell(f.Tried))
	}
	var targets strings.Builder
	for _, t := range datasets.Targets() {
		fmt.Fprintf(&targets, "| `%s` | %s |\n", t[0], cell(t[1]))
	}
	b.WriteString(strings.Replace(strings.ReplaceAll(ownLogPage, "~", "`"), "TARGETS", targets.String(), 1))
	b.WriteString(strings.ReplaceAll(lengthsPage, "~", "`"))
	b.WriteString(`
## What can be written

` + "`reprise export TRACE --to FORMAT`" + ` writes a trace for another tool. Every format keeps
arrivals and lengths unless the table says otherwise. Rows that failed or were cancelled are written too. The command counts what a
file loses, and prints how to give it to the other tool, so that this leaves
results behind that ` + "`reprise report` [reads](formats-of-results.md#results-of-other-tools)" + `. ` + "`make test-peers`" + `
runs each as it is printed, with the tools' current releases, and holds times, lengths and counts against the trace.

| format | what it is | needs | what it loses | tried with |
|---|---|---|---|---|
`)
	for _, out := range Formats() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", out.Name, cell(out.About), needs(out), cell(strings.Join(out.Loses, "; ")), cell(out.Tried))
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
	if out.NameEnd != "" {
		n = append(n, "a file name that ends in "+out.NameEnd)
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
