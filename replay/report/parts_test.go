package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// partsRun went to two servers, was retried, and says who answered.
func partsRun() (result.Run, []result.Result) {
	run := result.Run{
		Routing:     result.Routing{Endpoints: []string{"http://b", "http://a"}, Balance: "round-robin"},
		Source:      result.Source{ServerBlock: 16},
		Transport:   result.Transport{TLSUnverified: true, Served: []result.Served{{Header: "X-Pod", Values: []string{"p0", "p1\x1b[31m"}}}, Sampling: map[string]json.RawMessage{"top_p": json.RawMessage("0.9"), "temperature": json.RawMessage(`"workload"`)}},
		Determinism: &result.Determinism{Rows: 10, Compared: 9, Differed: 3},
	}
	var results []result.Result
	for i := range int64(40) {
		r := answer(i, i, 0, 10+90*(i%2), 200)
		r.Endpoint, r.Attempts = trace.Ptr(int32(i%2)), 1
		r.Known, r.Input, r.WantInput = trace.Ptr(int32(0)), trace.Ptr(int32(100)), 100
		r.Served = []int32{int32(i%4)/3 - int32(i%8)/7*2} // 0 mostly, sometimes 1, −1
		if i%10 == 0 {
			r.Attempts, r.RetryAfterNS = 3, trace.Ptr(int64(1e9))
		}
		results = append(results, r)
	}
	results = append(results, failure(40, 40, "rate_limited"))
	results[40].Attempts, results[40].RetryAfterNS, results[40].Endpoint = 3, trace.Ptr(int64(1e9)), trace.Ptr(int32(0))
	return run, results
}

func TestParts(t *testing.T) {
	run, results := partsRun()
	s := summarise(t, run, Options{}, results...)
	if len(s.ByEndpoint) != 2 || s.ByEndpoint[0].Name != "http://b" || s.ByEndpoint[0].Rows != 21 || s.ByEndpoint[0].Succeeded != 20 ||
		*s.ByEndpoint[0].TTFTP50 != 10 || *s.ByEndpoint[1].TTFTP50 != 100 {
		t.Errorf("by endpoint: %+v", s.ByEndpoint)
	}
	if want := (Retries{Retried: 5, Succeeded: 4, Attempts: 10, AskedLater: 5}); s.Retries == nil || !reflect.DeepEqual(*s.Retries, want) {
		t.Errorf("retries %+v", s.Retries)
	}
	rows := map[string]int64{}
	for _, v := range s.ByHeader[0].Values {
		rows[v.Name] = v.Rows
	}
	if want := map[string]int64{"p0": 30, "p1\x1b[31m": 5}; !reflect.DeepEqual(rows, want) || s.ByHeader[0].Absent != 5 {
		t.Errorf("by header: %v, %d without", rows, s.ByHeader[0].Absent)
	}
	var text bytes.Buffer
	if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"By endpoint", "By X-Pod", "p1?[31m", "5 requests", "10 further attempts", "certificate was not checked", "2 servers", "3 differ", "9 requests sent twice"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	holdWidth(t, text.String())
	if facts := load(&s).Facts; !slices.Contains(facts, doc.Fact{Label: "Sampling", Value: "temperature workload, top_p 0.9"}) {
		t.Errorf("no such sampling in %v", facts)
	}
	// With one server and nothing tried again there is nothing to tell.
	one := answer(0, 0, 0, 10, 20)
	one.Endpoint, one.Attempts = trace.Ptr(int32(0)), 1
	if s := summarise(t, result.Run{Routing: result.Routing{Endpoints: []string{"http://b"}}}, Options{}, one); s.ByEndpoint != nil || s.Retries != nil || s.ByHeader != nil {
		t.Errorf("%+v, %+v, %+v", s.ByEndpoint, s.Retries, s.ByHeader)
	}
}

// A header with many values has the most frequent ones shown, and a result whose
// dictionary was lost still counts.
func TestManyValues(t *testing.T) {
	var results []result.Result
	for i := range int64(3000) {
		r := answer(i, i, 0, 10, 20)
		r.Served = []int32{int32(min(i, 2999))}
		results = append(results, r)
	}
	var values []string
	for i := range 10 {
		values = append(values, fmt.Sprint("v", i))
	}
	s := summarise(t, result.Run{Transport: result.Transport{Served: []result.Served{{Header: "X", Values: values}}}}, Options{}, results...)
	h := s.ByHeader[0]
	total := int64(0)
	for _, v := range h.Values {
		total += v.Rows
	}
	if len(h.Values) != shownValues+1 || total != 3000 || h.Values[0].Rows != 3000-maxGroups {
		t.Errorf("%d values, %d rows, first %+v", len(h.Values), total, h.Values[0])
	}
}

// An embedding ends with its answer, and has no first token to be late with.
func TestEmbeddingLatency(t *testing.T) {
	r := answer(0, 0, 5, 10, 20)
	r.API, r.Events, r.GapsNS = result.APIEmbeddings, 0, nil
	r.FirstTokenNS, r.FirstContentNS, r.LastTokenNS = nil, nil, nil
	done := *r.SentNS + 30*msNS
	r.DoneNS = &done
	s := summarise(t, result.Run{}, Options{SLO: SLO{TTFT: trace.Ptr(time.Millisecond), E2E: trace.Ptr(40 * time.Millisecond)}}, r)
	if e := s.Latency.FromSent.E2E; e.Count != 1 || *e.Mean != 30 || s.Latency.FromSent.TTFT.Count != 0 || s.Goodput.FromSent.Requests != 1 {
		t.Errorf("%+v, goodput %+v", e, s.Goodput)
	}
}

// Servers that cut prompts or do not keep to max_tokens are told on.
func TestSilentServers(t *testing.T) {
	for _, c := range []struct {
		input, wantInput, output, wantOutput int32
		cut, longer                          bool
	}{
		{1000, 1000, 5, 5, false, false}, {990, 1000, 5, 5, false, false}, {500, 1000, 5, 5, true, false}, {10, 20, 5, 5, false, false},
		{1000, 1000, 6, 5, false, true}, {1000, 1000, 1, 0, false, false}, {1000, 1000, 2, 0, false, true},
	} {
		r := answer(0, 0, 0, 10, 20)
		r.WantInput, r.Input, r.WantOutput, r.Output, r.OutputFrom = c.wantInput, &c.input, trace.Ptr(c.wantOutput), &c.output, result.FromUsage
		codes := map[string]bool{}
		for _, w := range summarise(t, result.Run{}, Options{}, r).Warnings {
			codes[w.Code] = true
		}
		if codes[warnPromptCut] != c.cut || codes[warnOutputLonger] != c.longer {
			t.Errorf("%+v: %v", c, codes)
		}
	}
}

// Attempts at each endpoint follow from the last and their number; the sums are those
// of going through them one by one.
func TestEndpointRetries(t *testing.T) {
	run := result.Run{Routing: result.Routing{Endpoints: []string{"http://a", "http://b", "http://c"}}, Transport: result.Transport{Retries: 9, RetryOther: true}}
	want := make([]EndpointRetries, 3)
	for i, name := range run.Endpoints {
		want[i].Name = name
	}
	var results []result.Result
	for i := range int64(30) {
		r := answer(i, i, 0, 10, 20)
		first, attempts := int32(i%3), int32(1+i/3)
		if i%4 == 0 {
			r = failure(i, i, "unavailable")
		}
		last := (first + attempts - 1) % 3
		r.Attempts, r.Endpoint = attempts, &last
		for a := range attempts {
			e := &want[(first+a)%3]
			e.Attempts++
			if a < attempts-1 {
				e.PassedOn++
			}
		}
		if last != first {
			want[last].TookOver++
			if i%4 > 0 {
				want[last].Answered++
			}
		}
		results = append(results, r)
	}
	s := summarise(t, run, Options{}, results...)
	if s.Retries == nil || !reflect.DeepEqual(s.Retries.ByEndpoint, want) {
		t.Errorf("%+v, want %+v", s.Retries, want)
	}
	var text bytes.Buffer
	if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil || !strings.Contains(text.String(), "Retries at the next endpoint") {
		t.Errorf("%v:\n%s", err, text.String())
	}
	holdWidth(t, text.String())
	run.RetryOther = false
	if s := summarise(t, run, Options{}, results...); s.Retries.ByEndpoint != nil || strings.Contains(text.String(), "null") {
		t.Errorf("retries that stayed: %+v", s.Retries)
	}
	// A damaged file has indexes and numbers that cannot be.
	bad := answer(0, 0, 0, 10, 20)
	bad.Attempts, bad.Endpoint = 1<<31-1, trace.Ptr(int32(2))
	worse := bad
	worse.Endpoint = trace.Ptr(int32(1 << 30))
	run.RetryOther = true
	summarise(t, run, Options{}, bad, worse)
}
