package client

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"reprise/replay"
	"reprise/replay/result"
	"reprise/trace"
)

func TestExtraFile(t *testing.T) {
	file := `{"row":0,"header":{"x-a":"1"}}
{"row":3,"body":{"priority":2,"top_p":0.5}}
{"row":4}
{"row":7,"header":{"X-B":"2"},"body":null}
`
	if n, err := CheckExtras(strings.NewReader(file), "e.jsonl", 8); n != 4 || err != nil {
		t.Fatalf("%d lines, %v", n, err)
	}
	f := NewExtraFile(iotest.OneByteReader(strings.NewReader(file)), "e.jsonl")
	for _, c := range []struct {
		row        int64
		name, want string // of a header
		priority   string
	}{{0, "X-A", "1", ""}, {1, "X-A", "", ""}, {4, "X-A", "", ""}, {3, "X-A", "", "2"}, {3, "X-A", "", ""}, {7, "X-B", "2", ""}, {100, "X-B", "", ""}, {2, "X-B", "", ""}} {
		e, err := f.At(c.row)
		priority, _ := e.Body.Get("priority")
		if err != nil || e.Header.Get(c.name) != c.want || string(priority) != c.priority {
			t.Errorf("row %d: %+v, %v", c.row, e, err)
		}
	}
}

func TestExtraFileFaults(t *testing.T) {
	for file, want := range map[string]string{
		"{\"row\":0}\n{\"row\":0}":                          "e:2:1: rows must be sorted",
		"{\"row\":5}\n{\"row\":2}":                          "e:2:1: rows must be sorted",
		`{"row":9}`:                                         "e:1:1: the workload has 9 rows",
		`{"row":-1}`:                                        "e:1:1: row must be",
		`{"header":{}}`:                                     "e:1:1: row must be",
		"{\"row\":1}\n\n{\"row\":2}":                        "e:2:1: the line ends before",
		`{"row":"SECRET"}`:                                  "e:1:15: want {",
		`{"row":1,"header":{"a":1}}`:                        "e:1:",
		`{"row":1,"SECRET":2}`:                              "e:1:",
		`{"row":1,"body":[]}`:                               "e:1:1: extra request fields: must be a JSON object",
		`{"row":1,"body":{"prompt":"SECRET"}}`:              `e:1:1: extra request fields: "prompt" is set`,
		`{"row":1} {"row":2}`:                               "e:1:10: more than one",
		`{"row":1,"header":{"a b":"SECRET"}}`:               "e:1:1: a header that HTTP",
		`{"row":1,"header":{"a":"SECRET\n"}}`:               "e:1:1: a header that HTTP",
		`{"row":1,`:                                         "e:1:",
		`{"row":1]`:                                         "e:1:9: not valid JSON",
		"{\"row\":1}\n" + strings.Repeat("x", maxExtraLine): "e:2:1: the line is too long",
	} {
		_, err := CheckExtras(strings.NewReader(file), "e", 9)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%.40s: %v, want %s", file, err, want)
		}
	}
	if _, err := CheckExtras(iotest.ErrReader(io.ErrNoProgress), "e", 9); err == nil {
		t.Error("a reader's error is lost")
	}
}

// A row's extras reach its request, and a fault in the file spoils the rows from there.
func TestRowExtrasAreSent(t *testing.T) {
	var bodies []string
	var heads []http.Header
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies, heads = append(bodies, string(b)), append(heads, r.Header)
		stream(tok, stop, done)(w, r)
	})
	h := endpoint(t, Options{URL: url, Rows: NewExtraFile(strings.NewReader(`{"row":1,"header":{"x-request-id":"own"},"body":{"priority":7}}`+"\nx"), "e.jsonl")})
	rows := []trace.Request{reachOne, reachOne, reachOne}
	var out trace.SliceWriter[result.Result]
	run, err := (&replay.Runner{Prompter: words{}, Endpoint: h, Options: replay.Options{Concurrency: 1}}).Run(t.Context(), reader(rows), &out)
	if err != nil || len(bodies) != 2 || run.Unprepared != 1 || !strings.HasPrefix(run.Unready, "e.jsonl:2:1: ") {
		t.Fatalf("%d bodies, run %+v, %v", len(bodies), run, err)
	}
	if strings.Contains(bodies[0], "priority") || !strings.Contains(bodies[1], `"priority":7`) || heads[1].Get("X-Request-Id") != "own" || heads[0].Get("X-Request-Id") == "own" {
		t.Errorf("%v\n%v", bodies, heads)
	}
}

// FuzzExtraFile: rows come sorted, and nothing panics or goes on for ever.
func FuzzExtraFile(f *testing.F) {
	f.Add([]byte(`{"row":0,"header":{"a":"b"},"body":{"x":[1]}}` + "\n" + `{"row":2}`))
	f.Add([]byte(`{"row":1e3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x := NewExtraFile(strings.NewReader(string(data)), "e")
		last := int64(-1)
		for {
			row, extra, err := x.readLine()
			if err != nil {
				break
			}
			for name, values := range extra.Header {
				if !validHeader(name, values[0]) {
					t.Fatalf("header %q", name)
				}
			}
			if row <= last {
				t.Fatalf("row %d after %d", row, last)
			}
			last = row
		}
	})
}
