package client

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/engine"
	"reprise/replay/result"
	"reprise/trace"
)

// A quirkRow is a quirk of a server and what this client must make of it. The
// table in docs/trust.md is made of these rows.
type quirkRow struct {
	quirk string // as a request asks for it; more than one where it takes others to show
	api   string // APIChat, or APICompletions
	opt   func(o *Options)
	does  string // what the client does
	want  string // the Result, as quirkSummary writes it
	at    string // its instants in virtual time, as quirkInstants writes them; empty where there is no virtual time
}

// Every row asks for 8 tokens, of a prompt of 12 (21 with the chat template).
// The Result of a request whose answer has no quirk that shows.
const (
	quirkPlain  = "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage length"
	quirkOnTime = "headers@20 event@20 first@20 content@20 last@27 done@27"
)

// Every row asks for 8 tokens. A row without words is one more case of a quirk
// that has them above or below.
var quirkRows = []quirkRow{
	{quirk: "refuse=1ns",
		does: "does not send it again; later requests fail as connect while the port is closed",
		want: "no status no event ERROR reset", at: ""},
	{quirk: "hang", opt: func(o *Options) { o.Timeout = 50 * time.Millisecond },
		does: "gives up at the time limit of a request",
		want: "no status no event ERROR timeout", at: "done@50"},
	{quirk: "slow-headers=2ms",
		does: "notes when the headers were whole; TTFT does not depend on them",
		want: quirkPlain, at: "headers@2 event@20 first@20 content@20 last@27 done@27"},
	{quirk: "early-headers",
		does: "notes headers and first token apart",
		want: quirkPlain, at: "headers@0 event@20 first@20 content@20 last@27 done@27"},
	{quirk: "late-headers",
		does: "notes headers and first token apart",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "close-keep-alive",
		does: "opens a connection for each request, so that none is lost; pooled, a request on a closed connection fails as reset and is not repeated",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "error=400",
		does: "classes it by its status",
		want: "400 no event ERROR bad_request", at: "headers@0 done@0"},
	{quirk: "error=401",
		does: "",
		want: "401 no event ERROR auth", at: "headers@0 done@0"},
	{quirk: "error=403",
		does: "",
		want: "403 no event ERROR auth", at: "headers@0 done@0"},
	{quirk: "error=404",
		does: "",
		want: "404 no event ERROR not_found", at: "headers@0 done@0"},
	{quirk: "error=408",
		does: "",
		want: "408 no event ERROR timeout", at: "headers@0 done@0"},
	{quirk: "error=413",
		does: "",
		want: "413 no event ERROR too_long", at: "headers@0 done@0"},
	{quirk: "error=422",
		does: "",
		want: "422 no event ERROR bad_request", at: "headers@0 done@0"},
	{quirk: "error=429",
		does: "",
		want: "429 no event ERROR rate_limited", at: "headers@0 done@0"},
	{quirk: "error=429,retry-after=7",
		does: "",
		want: "429 no event ERROR rate_limited odd retry_after:1", at: "headers@0 done@0"},
	{quirk: "error=500",
		does: "",
		want: "500 no event ERROR server_error", at: "headers@0 done@0"},
	{quirk: "error=502",
		does: "",
		want: "502 no event ERROR unavailable", at: "headers@0 done@0"},
	{quirk: "error=503",
		does: "",
		want: "503 no event ERROR unavailable", at: "headers@0 done@0"},
	{quirk: "error=503,retry-after=0",
		does: "",
		want: "503 no event ERROR unavailable odd retry_after:1", at: "headers@0 done@0"},
	{quirk: "error=504",
		does: "",
		want: "504 no event ERROR unavailable", at: "headers@0 done@0"},
	{quirk: "error=529",
		does: "",
		want: "529 no event ERROR unavailable", at: "headers@0 done@0"},
	{quirk: "error-code=string,error=400",
		does: "classes it by its status whatever the body; no text of it is kept",
		want: "400 no event ERROR bad_request", at: "headers@0 done@0"},
	{quirk: "error-code=null,error=400",
		does: "",
		want: "400 no event ERROR bad_request", at: "headers@0 done@0"},
	{quirk: "error-code=empty,error=500",
		does: "",
		want: "500 no event ERROR server_error", at: "headers@0 done@0"},
	{quirk: "redirect",
		does: "follows none, since each would add a round trip; classes it by its status",
		want: "307 no event ERROR redirect", at: "headers@0 done@0"},
	{quirk: "not-sse",
		does: "fails the request, and keeps its counts: no token has an instant",
		want: "200 no event input 28 cached 0 output 8 by usage length ERROR not_streamed", at: "headers@27 done@27"},
	{quirk: "not-sse", api: result.APICompletions,
		does: "",
		want: "200 no event input 6 cached 0 output 8 by usage length ERROR not_streamed", at: "headers@27 done@27"},
	{quirk: "not-sse,usage-missing",
		does: "",
		want: "200 no event length ERROR not_streamed", at: "headers@27 done@27"},
	{quirk: "compressed",
		does: "asks for no compression, and fails the request: a compressor holds tokens back",
		want: "200 no event ERROR compressed", at: "headers@20 done@20"},
	{quirk: "retry-after=7,error=429",
		does: "counts it, repeats nothing: a replay that waits would be another load",
		want: "429 no event ERROR rate_limited odd retry_after:1", at: "headers@0 done@0"},
	{quirk: "model-404", opt: func(o *Options) { o.Model = "other" },
		does: "classes it by its status",
		want: "404 no event ERROR not_found", at: "headers@0 done@0"},
	{quirk: "local-host-only", opt: func(o *Options) { o.Header.Set("Host", "example.com") },
		does: "classes it by its status",
		want: "403 no event ERROR auth", at: "headers@0 done@0"},
	{quirk: "bad-json-500",
		does: "sends no bad JSON",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "prompt-cut=5",
		does: "has the tokens that were taken beside those asked for in every result",
		want: "200 token 8 events gaps 7 input 5 cached 0 output 8 by usage length", at: quirkOnTime},
	{quirk: "more-output=3",
		does: "has the tokens that came beside those asked for in every result",
		want: "200 token 11 events gaps 10 input 28 cached 0 output 11 by usage length",
		at:   "headers@20 event@20 first@20 content@20 last@30 done@30"},
	{quirk: "no-ignore-eos",
		does: "has the tokens that came beside those asked for in every result",
		want: "200 token 5 events gaps 4 input 28 cached 0 output 5 by usage stop",
		at:   "headers@20 event@20 first@20 content@20 last@24 done@24"},
	{quirk: "role-first",
		does: "does not take the role for a token",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "role-every-delta",
		does: "ignores the role",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "null-content",
		does: "does not take it for a token",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "empty-deltas",
		does: "notes the first event, and counts tokens by content alone",
		want: "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage length",
		at:   "headers@0 event@0 first@20 content@20 last@27 done@27"},
	{quirk: "progress-events",
		does: "notes the first event, and counts tokens by content alone",
		want: "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage length",
		at:   "headers@0 event@0 first@20 content@20 last@27 done@27"},
	{quirk: "timings",
		does: "ignores them",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "multi-token-events",
		does: "counts the answer: gaps are between events; with running usage, each event has its tokens",
		want: "200 token 2 events gaps 1 input 28 cached 0 output 8 by usage length odd uncounted_events:1",
		at:   "headers@23 event@23 first@23 content@23 last@27 done@27"},
	{quirk: "multi-token-events", opt: func(o *Options) { o.ContinuousUsage = true },
		does: "",
		want: "200 token 2 events gaps 1 each [4 4] input 28 cached 0 output 8 by usage length",
		at:   "headers@23 event@23 first@23 content@23 last@27 done@27"},
	{quirk: "multi-token-events,usage-every-chunk",
		does: "",
		want: "200 token 2 events gaps 1 each [4 4] input 28 cached 0 output 8 by usage length",
		at:   "headers@23 event@23 first@23 content@23 last@27 done@27"},
	{quirk: "tokens-without-event=2",
		does: "takes the count of usage; last token is the last event with text",
		want: "200 token 6 events gaps 5 input 28 cached 0 output 8 by usage stop odd uncounted_events:1",
		at:   "headers@20 event@20 first@20 content@20 last@25 done@27"},
	{quirk: "reasoning-only",
		does: "takes reasoning for tokens, and notes the first content apart",
		want: quirkPlain, at: "headers@20 event@20 first@20 last@27 done@27"},
	{quirk: "reasoning-only=3",
		does: "",
		want: quirkPlain, at: "headers@20 event@20 first@20 content@23 last@27 done@27"},
	{quirk: "reasoning-field-name,reasoning-only",
		does: "takes both names",
		want: quirkPlain, at: "headers@20 event@20 first@20 last@27 done@27"},
	{quirk: "tool-calls",
		does: "takes pieces of tool calls for tokens",
		want: "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage tool_calls", at: quirkOnTime},
	{quirk: "choices",
		does: "takes tokens of every choice, adds up their usage, and counts the answer: gaps are between events of any choice",
		want: "200 token 16 events gaps 15 input 28 cached 0 output 16 by usage length odd several_choices:1",
		at:   quirkOnTime},
	{quirk: "same-id",
		does: "tells requests apart by their rows",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "per-choice-ids",
		does: "tells requests apart by their rows",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "chat-ids", api: result.APICompletions,
		does: "tells requests apart by their rows",
		want: "200 token 8 events gaps 7 input 6 cached 0 output 8 by usage length", at: quirkOnTime},
	{quirk: "usage-null",
		does: "takes the last count that is not zero",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "usage-zeros",
		does: "takes the last count that is not zero",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "usage-zeros=completions", api: result.APICompletions,
		does: "",
		want: "200 token 8 events gaps 7 input 6 cached 0 output 8 by usage length", at: quirkOnTime},
	{quirk: "usage-every-chunk",
		does: "takes the last count; gives each event its tokens",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "usage-on-finish",
		does: "takes usage from whatever chunk has it",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "usage-on-finish=completions", api: result.APICompletions,
		does: "",
		want: "200 token 8 events gaps 7 input 6 cached 0 output 8 by usage length", at: quirkOnTime},
	{quirk: "usage-missing",
		does: "counts the text by the tokenizer where it has one, else leaves the count null; counts the answer",
		want: "200 token 8 events gaps 7 length odd no_usage:1", at: quirkOnTime},
	{quirk: "usage-missing", opt: func(o *Options) { o.Count = func(text string) int { return len(strings.Fields(text)) } },
		does: "",
		want: "200 token 8 events gaps 7 output 8 by tokenizer length odd no_usage:1", at: quirkOnTime},
	{quirk: "no-cached-tokens",
		does: "leaves cached tokens null",
		want: "200 token 8 events gaps 7 input 28 output 8 by usage length", at: quirkOnTime},
	{quirk: "crlf",
		does: "takes all three line ends",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "cr",
		does: "takes all three line ends",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "no-space",
		does: "takes it",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "multi-line-data",
		does: "joins the lines",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "comments",
		does: "skips them, and counts the answer",
		want: "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage length odd keep_alives:1",
		at:   "headers@0 event@20 first@20 content@20 last@27 done@27"},
	{quirk: "pings",
		does: "skips them as it skips comments, and counts the answer",
		want: "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage length odd keep_alives:1",
		at:   "headers@0 event@20 first@20 content@20 last@27 done@27"},
	{quirk: "several-events-per-write=4",
		does: "gives events that came at once one instant, with gaps of zero",
		want: quirkPlain, at: "headers@23 event@23 first@23 content@23 last@27 done@27"},
	{quirk: "split-writes",
		does: "gives an event the instant of its last byte",
		want: quirkPlain, at: quirkOnTime},
	{quirk: "stall=30ms",
		does: "has it as a gap",
		want: quirkPlain, at: "headers@20 event@20 first@20 content@20 last@53 done@53"},
	{quirk: "error-mid-stream",
		does: "fails the request, and keeps the instants of the tokens that came",
		want: "200 token 4 events gaps 3 ERROR stream_error", at: "headers@20 event@20 first@20 content@20 last@23 done@23"},
	{quirk: "error-mid-stream=close",
		does: "",
		want: "200 token 4 events gaps 3 ERROR stream_error", at: "headers@20 event@20 first@20 content@20 last@23 done@23"},
	{quirk: "reset",
		does: "fails the request, and keeps the instants of the tokens that came",
		want: "200 token 4 events gaps 3 ERROR reset", at: "headers@20 event@20 first@20 content@20 last@23 done@23"},
	{quirk: "cut",
		does: "fails the request, and keeps the instants of the tokens that came",
		want: "200 token 4 events gaps 3 ERROR reset", at: "headers@20 event@20 first@20 content@20 last@23 done@23"},
	{quirk: "finish-reason=cache_threshold",
		does: "keeps those of a closed list, and calls others other",
		want: "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage other", at: quirkOnTime},
	{quirk: "no-finish-reason",
		does: "takes [DONE] for the end, and counts the answer",
		want: "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage odd no_finish_reason:1", at: quirkOnTime},
	{quirk: "no-finish-reason,no-done",
		does: "",
		want: "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage ERROR incomplete", at: quirkOnTime},
	{quirk: "no-done",
		does: "takes the finish reason for the end, and counts the answer",
		want: "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage length odd no_done:1", at: quirkOnTime},
	{quirk: "done-twice",
		does: "takes the first, and counts the answer",
		want: "200 token 8 events gaps 7 input 28 cached 0 output 8 by usage length odd done_again:1", at: quirkOnTime},
}

// quirkServer is the simulated endpoint behind a port of its own.
func quirkServer(t testing.TB, c engine.ServerConfig) *httptest.Server {
	t.Helper()
	c.FaultHeader = true
	s, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(s.Handler())
	srv.Listener = s.Gate(srv.Listener)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

// quirkConfig is an engine whose first token comes 20 ms after a request, and
// every other 1 ms later.
func quirkConfig() engine.ServerConfig {
	c := engine.DefaultServerConfig()
	c.Model, c.Engine.Costs = "m", engine.Costs{Request: 19e9, Step: 1e9}
	return c
}

// quirkRequest is sent in every row.
var quirkRequest = trace.Request{InputTokens: 3, OutputTokens: trace.Ptr[int32](8)}

func quirkOptions(row quirkRow, url string) Options {
	o := Options{URL: url, API: row.api, ForceOutput: true, Header: http.Header{}, Timeout: 20 * time.Second}
	o.Header.Set(engine.FaultHeader, row.quirk)
	if row.opt != nil {
		row.opt(&o)
	}
	return o
}

// quirkSummary writes all of a Result that does not depend on the clock.
func quirkSummary(r *result.Result, odd result.Odd) string {
	var b strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	if r.HTTPStatus == nil {
		put("no status")
	} else {
		put("%d", *r.HTTPStatus)
	}
	if r.SentNS == nil {
		put("not sent")
	}
	switch {
	case r.FirstEventNS == nil:
		put("no event")
	case r.FirstTokenNS == nil:
		put("event, no token")
	default:
		put("token")
	}
	if r.Events > 0 || len(r.GapsNS) > 0 {
		put("%d events gaps %d", r.Events, len(r.GapsNS))
	}
	if len(r.EventTokens) > 0 {
		put("each %d", r.EventTokens)
	}
	if r.Input != nil {
		put("input %d", *r.Input)
	}
	if r.Cached != nil {
		put("cached %d", *r.Cached)
	}
	if r.Output != nil {
		put("output %d by %s", *r.Output, r.OutputFrom)
	}
	if r.FinishReason != "" {
		put("%s", r.FinishReason)
	}
	if r.Error != "" {
		put("ERROR %s", r.Error)
	}
	if odd != (result.Odd{}) {
		text, _ := json.Marshal(odd)
		put("odd %s", strings.Trim(strings.ReplaceAll(string(text), `"`, ""), "{}"))
	}
	return b.String()[1:]
}

// quirkInstants writes the instants of a Result, in whole milliseconds of
// virtual time, where nothing takes time but what the server waits for.
func quirkInstants(r *result.Result) string {
	var b strings.Builder
	for _, c := range []struct {
		name string
		at   *int64
	}{{"headers", r.HeadersNS}, {"event", r.FirstEventNS}, {"first", r.FirstTokenNS}, {"content", r.FirstContentNS},
		{"last", r.LastTokenNS}, {"done", r.DoneNS}} {
		if c.at != nil {
			fmt.Fprintf(&b, " %s@%g", c.name, float64(*c.at)/1e6)
		}
	}
	return strings.TrimSpace(b.String())
}

// quirkTable is the table of docs/trust.md: the quirks that are tolerated and
// counted, and what the rows above hold of each. Quirks that end alike share a row.
func quirkTable(t *testing.T) string {
	var endings []string
	quirks := map[string][]string{}
	for _, q := range engine.Quirks() {
		var does string
		var results []string
		for _, row := range quirkRows {
			if name, _, _ := strings.Cut(strings.Split(row.quirk, ",")[0], "="); name != q.Name {
				continue
			}
			if row.does != "" {
				does = row.does
			}
			if _, odd, ok := strings.Cut(row.want, "odd "); ok {
				results = append(results, "`"+strings.TrimSuffix(odd, ":1")+"`")
			}
		}
		if does == "" {
			t.Errorf("no row says what the client does about %s", q.Name)
		}
		if slices.Sort(results); len(results) == 0 {
			continue
		}

		ending := does + " | " + strings.Join(slices.Compact(results), ", ")
		if quirks[ending] == nil {
			endings = append(endings, ending)
		}
		quirks[ending] = append(quirks[ending], "`"+q.Name+"`")
	}

	var b strings.Builder
	b.WriteString("| quirk | what the client does | counted as |\n|---|---|---|\n")
	for _, ending := range endings {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(quirks[ending], ", "), ending)
	}
	return b.String()
}

var updateQuirks = flag.Bool("update", false, "rewrite the table of quirks in docs/trust.md")

// The documentation says of each quirk what the rows above hold.
func TestQuirkTable(t *testing.T) {
	const path, begin, end = "../../docs/trust.md",
		"<!-- quirks: go test ./replay/client -run TestQuirkTable -update -->\n", "<!-- end of quirks -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("the table has no place")
	}
	table := quirkTable(t)
	if *updateQuirks {
		if err := os.WriteFile(path, []byte(before+begin+table+end+after), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if old != table {
		t.Errorf("docs/trust.md has another table of quirks; go test ./replay/client -run TestQuirkTable -update writes it")
	}
}

// reachable waits until a port that was closed for a moment is open again.
func reachable(t *testing.T, url string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func TestServerQuirks(t *testing.T) {
	for _, row := range quirkRows {
		t.Run(row.quirk+" "+row.api, func(t *testing.T) {
			srv := quirkServer(t, quirkConfig())
			h := endpoint(t, quirkOptions(row, srv.URL))
			r := fire(t, h, quirkRequest, 0)
			got := quirkSummary(&r, h.odd.counts())
			if got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
			inOrder(t, row.quirk, r.SentNS, r.HeadersNS, r.FirstEventNS, r.FirstTokenNS, r.LastTokenNS, r.DoneNS)
			if strings.HasPrefix(row.quirk, "refuse") {
				reachable(t, srv.URL)
				return // it takes a port
			}
			synctest.Test(t, func(t *testing.T) {
				c := quirkConfig()
				c.FaultHeader = true
				h, end := virtualEndpoint(t, c, quirkOptions(row, ""))
				defer end()
				r := fire(t, h, quirkRequest, 0)
				if again := quirkSummary(&r, h.odd.counts()); again != got {
					t.Errorf("in virtual time: %s", again)
				}
				if at := quirkInstants(&r); at != row.at {
					t.Errorf("got  %s\nwant %s", at, row.at)
				}
			})
		})
	}
}

// The servers that the endpoint imitates are replayed against without an error.
func TestImitatedServers(t *testing.T) {
	const sound, late = quirkPlain, quirkOnTime
	text := strings.Replace(sound, "input 28", "input 6", 1)
	early := strings.Replace(late, "headers@20", "headers@0", 1)
	for _, row := range []struct{ name, api, want, at string }{
		{"vllm", result.APIChat, sound, late},
		{"vllm", result.APICompletions, text, late},
		{"llm-d", result.APIChat, sound, late},
		{"llm-d", result.APICompletions, text, late},
		{"llama-server", result.APIChat, sound, early},
		{"llama-server", result.APICompletions, text, early},
		// It stops where it likes, and tells of no cached tokens.
		{"ollama", result.APIChat, "200 token 5 events gaps 4 input 28 output 5 by usage stop",
			"headers@20 event@20 first@20 content@20 last@24 done@24"},
		{"ollama", result.APICompletions, "200 token 3 events gaps 2 input 6 output 3 by usage stop",
			"headers@20 event@20 first@20 content@20 last@22 done@22"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := quirkConfig()
			c.Imitate = row.name
			h, end := virtualEndpoint(t, c, Options{API: row.api, ForceOutput: true})
			defer end()
			r := fire(t, h, quirkRequest, 0)
			if got, at := quirkSummary(&r, h.odd.counts()), quirkInstants(&r); got != row.want || at != row.at {
				t.Errorf("%s, %s:\ngot  %s, %s\nwant %s, %s", row.name, row.api, got, at, row.want, row.at)
			}
		})
	}
	if len(engine.Imitations()) != 4 {
		t.Error("an imitation lacks its rows")
	}
}
