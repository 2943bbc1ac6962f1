package table

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/replay/result/resulttest"
	"reprise/trace"
)

// open writes results to a file and opens it.
func open(t *testing.T, run result.Run, rows ...result.Result) *result.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.parquet")
	if err := result.Write(path, run, &trace.SliceReader[result.Result]{Rows: rows}); err != nil {
		t.Fatal(err)
	}
	f, err := result.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func uninterrupted(int64) error { return nil }

// parquetOf writes a table and reads it back.
func parquetOf(t *testing.T, runs ...Run) []request {
	t.Helper()
	var file bytes.Buffer
	if err := WriteParquet(&file, runs, uninterrupted); err != nil {
		t.Fatal(err)
	}
	r, err := trace.NewRowsReader[request](bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := r.Metadata("reprise.schema"); got != schema {
		t.Errorf("schema %q", got)
	}
	var rows trace.SliceWriter[request]
	if _, err := trace.Copy(&rows, r); err != nil {
		t.Fatal(err)
	}
	return rows.Rows
}

// Means and counts over the measured requests are those of the report, whatever
// happened in the run.
func TestTableAgreesWithReport(t *testing.T) {
	for seed := range uint64(5) {
		rows := resulttest.Messy(rand.New(rand.NewPCG(seed, 7)), 3000)
		run := result.Run{Source: result.Source{BlockSize: 512, ServerBlock: 16}, Sending: result.Sending{
			Window: &result.Window{From: &result.Place{DueNS: 5e9}, To: &result.Place{DueNS: 50e9}}}}
		results := open(t, run, rows...)
		s, err := report.Summarise(results.Run, results.Reader(), report.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var n struct{ warmUp, coolDown, failed int64 }
		status, class := map[string]int64{}, map[string]int64{}
		var prompt, expected, cached, output int64
		sums := map[string][]float64{}
		for _, q := range parquetOf(t, Run{"r", results}) {
			switch q.Phase {
			case "warm_up":
				n.warmUp++
				continue
			case "cool_down":
				n.coolDown++
				continue
			}
			status[q.Status]++
			if q.Status == "failed" {
				class[q.Error]++
			}
			for name, v := range map[string]*float64{"ttft": q.TTFT, "due ttft": q.TTFTFromDue, "e2e": q.E2E, "due e2e": q.E2EFromDue,
				"headers": q.Headers, "tpot": q.TPOT, "lag": q.SendLag} {
				if v != nil {
					sums[name] = append(sums[name], *v)
				}
			}
			if q.Status != "succeeded" {
				continue
			}
			if q.Output != nil {
				output += int64(*q.Output)
			}
			if q.CachedExpected != nil && q.Cached != nil {
				prompt, expected, cached = prompt+int64(*q.Input), expected+int64(*q.CachedExpected), cached+int64(*q.Cached)
			}
		}
		l := s.Latency
		for name, want := range map[string]report.Stat{"ttft": l.FromSent.TTFT, "due ttft": l.FromDue.TTFT, "e2e": l.FromSent.E2E, "due e2e": l.FromDue.E2E,
			"headers": l.FromSent.Headers, "tpot": l.TPOT, "lag": l.SendLag} {
			var sum float64
			for _, v := range sums[name] {
				sum += v
			}
			if count := int64(len(sums[name])); count != want.Count || math.Abs(sum/float64(count)-*want.Mean) > 1e-6 || slices.Max(sums[name]) != *want.Max {
				t.Errorf("%s: %d with mean %v, largest %v; the report has %d, %v, %v", name, count, sum/float64(count), slices.Max(sums[name]), want.Count, *want.Mean, *want.Max)
			}
		}
		got := fmt.Sprint(n.warmUp, n.coolDown, status["succeeded"], status["failed"], status["cancelled"], status["not_sent"], output)
		want := fmt.Sprint(s.Requests.WarmUp, s.Requests.CoolDown, s.Requests.Succeeded, s.Requests.Failed, s.Requests.Cancelled, s.Requests.NotSent, s.Tokens.Output)
		if got != want {
			t.Errorf("counts are %s, the report's %s", got, want)
		}
		for _, e := range s.Errors {
			if class[e.Class] != e.Count {
				t.Errorf("%d errors of class %s, the report has %d", class[e.Class], e.Class, e.Count)
			}
		}
		if *report.Ratio(expected, prompt) != *s.Cache.Expected || *report.Ratio(cached, prompt) != *s.Cache.Measured {
			t.Errorf("hit ratios %d and %d of %d; the report has %v and %v", cached, expected, prompt, *s.Cache.Measured, *s.Cache.Expected)
		}
	}
}

// One request, column by column, in CSV; a second that was never sent; and a second run.
func TestCSV(t *testing.T) {
	answer := resulttest.Answer(7, 1500, 2, 40, 50, 70, 71)
	answer.Session, answer.Category, answer.API, answer.Endpoint = trace.Ptr(int64(3)), "global", "chat", trace.Ptr(int32(0))
	answer.HTTPStatus, answer.FinishReason, answer.Attempts = trace.Ptr(int32(200)), "length", 1
	answer.Known, answer.Cached = trace.Ptr(int32(90)), trace.Ptr(int32(64))
	never := result.Result{RowID: 8, Session: trace.Ptr(int64(3)), DueNS: 2e9, WantInput: 5, WantOutput: trace.Ptr[int32](6), Error: result.KindPrepare}
	run := result.Run{Load: result.Load{Model: `m, "1"`}, Source: result.Source{BlockSize: 64, Tier: "partner"}, Routing: result.Routing{Endpoints: []string{"http://a"}}}
	runs := []Run{{"one", open(t, run, answer, never)}, {"two", open(t, result.Run{Source: result.Source{Tier: "internal"}}, never)}}
	var out strings.Builder
	if err := WriteCSV(&out, runs, uninterrupted); err != nil {
		t.Fatal(err)
	}
	want := "" +
		"run,row,round,session,turn,thread,play,request_id,tree,session_status,session_time_s,session_server_s,phase,status,error,http_status,finish_reason,attempts,model,api,endpoint,category,class," +
		"due_s,sent_s,first_token_s,last_token_s,done_s," +
		"send_lag_ms,headers_ms,ttft_ms,ttft_from_due_ms,ttfo_ms,e2e_ms,e2e_from_due_ms,tpot_ms,queue_ms,prefill_ms,itl_mean_ms,itl_p50_ms,itl_max_ms," +
		"input_tokens,input_tokens_wanted,output_tokens,output_tokens_wanted,output_from,cached_tokens,cached_tokens_expected,token_events\n" +
		`one,7,0,3,0,,,,3,failed,,,measured,succeeded,,200,length,1,"m, ""1""",chat,http://a,global,,` +
		"1.5,1.502,1.542,1.573,1.573,2,1,40,42,40,71,73,10.333333,,,10.333333,10,20,100,100,4,4,usage,64,64,4\n" +
		`one,8,0,3,1,,,,3,failed,,,measured,failed,prepare,,,0,"m, ""1""",,,,,2,,,,,,,,,,,,,,,,,,,5,,6,,,,0` + "\n" +
		`two,8,0,3,0,,,,3,failed,,,measured,failed,prepare,,,0,,,,,,2,,,,,,,,,,,,,,,,,,,5,,6,,,,0` + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
	if Tier(runs) != "internal" {
		t.Errorf("tier %s", Tier(runs))
	}
}

// Parquet and CSV have the same rows.
func TestFormatsAgree(t *testing.T) {
	results := open(t, result.Run{}, resulttest.Messy(rand.New(rand.NewPCG(1, 2)), 2000)...)
	runs := []Run{{"a", results}, {"b", results}}
	var out bytes.Buffer
	if err := WriteCSV(&out, runs, uninterrupted); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(lines) != 4001 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	at := slices.Index(lines[0], "ttft_ms")
	for i, q := range parquetOf(t, runs...) {
		line, ttft := lines[i+1], ""
		if q.TTFT != nil {
			ttft = strconv.FormatFloat(*q.TTFT, 'f', -1, 64)
		}
		if line[0] != q.Run || line[1] != fmt.Sprint(q.RowID) || line[at] != ttft {
			t.Fatalf("row %d is %v in CSV, and %+v in Parquet", i, line, q)
		}
	}
}

// Turns are counted anew in every round.
func TestTurnsByRound(t *testing.T) {
	var rows []result.Result
	for i := range int64(6) {
		r := resulttest.Answer(i%3, i*1000, 0, 5)
		r.Session, r.Round = trace.Ptr(i%3/2), int32(i/3)
		rows = append(rows, r)
	}
	rows[1].Session = nil
	var got []string
	for _, q := range parquetOf(t, Run{"r", open(t, result.Run{}, rows...)}) {
		turn := "none"
		if q.Turn != nil {
			turn = fmt.Sprint(*q.Turn)
		}
		got = append(got, turn)
	}
	if want := "[0 none 0 0 1 0]"; fmt.Sprint(got) != want {
		t.Errorf("turns %v, want %s", got, want)
	}
}

// A simulation has no client that could be late.
func TestSimulatedHasNoLag(t *testing.T) {
	q := parquetOf(t, Run{"r", open(t, result.Run{Simulation: result.Simulation{Simulated: "a model"}}, resulttest.Answer(0, 10, 3, 20))})[0]
	if q.SendLag != nil || *q.TTFTFromDue != 23 {
		t.Errorf("lag %v, TTFT from schedule %v", q.SendLag, *q.TTFTFromDue)
	}
}

// A result that contradicts itself is an error that names run and row, and an interrupt
// ends the writing.
func TestTableFails(t *testing.T) {
	bad := resulttest.Answer(4, 10, 3, 20)
	bad.GapsNS = []int64{1}
	err := WriteParquet(io.Discard, []Run{{"before", open(t, result.Run{}, bad)}}, uninterrupted)
	if err == nil || err.Error() != "before: report: result of row 4: the number of gaps is not one less than the token events" {
		t.Error(err)
	}
	stop := errors.New("stop")
	if err := WriteCSV(io.Discard, []Run{{"r", open(t, result.Run{}, resulttest.Answer(0, 10, 3, 20))}}, func(int64) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// Every request has the time of its tree, that the report has, also where a tree has several
// sessions of the workload.
func TestTableSessions(t *testing.T) {
	var rows []result.Result
	add := func(session, due, done int64, parents ...int64) {
		r := resulttest.Answer(int64(len(rows)), due, 0, done-due-1, done-due)
		r.Session, r.Parents = &session, parents
		rows = append(rows, r)
	}
	add(0, 0, 100)
	add(5, 150, 400, 0)    // a sub-agent under a session of its own
	add(0, 450, 600, 0, 1) // joins both
	add(7, 10, 50)
	failed := resulttest.Failure(4, 60, "timeout")
	failed.Session = trace.Ptr(int64(7))
	rows = append(rows, failed)
	results := open(t, result.Run{}, rows...)
	s, err := report.Summarise(results.Run, results.Reader(), report.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Sessions.Sessions != 2 || s.Sessions.Succeeded != 1 || *s.Sessions.Completion.Max != 600 {
		t.Fatalf("%+v", s.Sessions)
	}
	for i, q := range parquetOf(t, Run{"r", results}) {
		if i < 3 {
			if *q.Tree != 0 || q.SessionStatus != "succeeded" || *q.SessionTime != 0.6 || math.Abs(*q.SessionServer-0.5) > 1e-9 || *q.Session != []int64{0, 5, 0}[i] {
				t.Errorf("row %d: tree %d, %s, %v s, server %v s", i, *q.Tree, q.SessionStatus, *q.SessionTime, *q.SessionServer)
			}
		} else if *q.Tree != 7 || q.SessionStatus != "failed" || q.SessionTime != nil {
			t.Errorf("row %d: tree %d, %s", i, *q.Tree, q.SessionStatus)
		}
	}
}
