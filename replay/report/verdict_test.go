package report

import (
	"strings"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace/textpage"
)

// Each reason by itself, just above its limit and just at it.
func TestVerdict(t *testing.T) {
	steady := func(lagMS ...int64) []result.Result {
		var out []result.Result
		for i := range int64(1000) {
			out = append(out, answer(i, i, lagMS[i*int64(len(lagMS))/1000], 5))
		}
		return out
	}
	failures := func(n int) []result.Result {
		out := steady(0)
		for i := range n {
			out[i] = failure(int64(i), int64(i), "timeout")
		}
		return out
	}
	tokenless := func(n int) []result.Result { // tokens were counted, and did not come
		out := steady(0)[:n]
		for i := range out {
			out[i].FirstEventNS, out[i].FirstTokenNS, out[i].FirstContentNS, out[i].LastTokenNS = nil, nil, nil, nil
			out[i].GapsNS, out[i].EventTokens, out[i].Events = nil, nil, 0
		}
		return out
	}
	tail := func(lagMS int64, n int) []result.Result {
		out := steady(0)
		for i := range n {
			out[i*90] = answer(int64(i*90), int64(i*90), lagMS, 5)
		}
		return out
	}
	planted := func(n int, r result.Result) []result.Result {
		out := steady(0)
		for i := range n {
			out[i] = failure(int64(i), int64(i), r.Error)
			out[i].HTTPStatus = r.HTTPStatus
		}
		return out
	}
	refusal := func(status int32) result.Result {
		r := failure(0, 0, map[bool]string{true: "rate_limited", false: "unavailable"}[status == 429])
		r.HTTPStatus = &status
		return r
	}
	one := func(change func(*Limits)) Limits {
		l := DefaultLimits()
		change(&l)
		return l
	}
	p999 := Limits{LagP50: -1, LagP99: -1, LagP999: 100 * time.Millisecond, LagDrift: -1, CPU: -1, GCPause: -1, Errors: -1,
		Stall: -1, ClockJump: -1, HeldBack: -1, Connect: -1, Refused: -1}
	none := p999
	none.LagP999 = -1
	for _, row := range []struct {
		name    string
		run     result.Run
		limits  Limits
		results []result.Result
		codes   string
	}{
		{"good", result.Run{Sending: result.Sending{Requests: 1000, InFlightLimit: 8}, Client: result.Client{Cores: 2, ClientCPU: 1.7, GCPauseMaxNS: 50e6}}, Limits{}, steady(0), ""},
		{"p50 at the limit", result.Run{}, Limits{}, steady(10), ""},
		{"p50", result.Run{}, Limits{}, steady(11), codeLagP50},
		{"p99 at the limit", result.Run{}, Limits{}, tail(100, 10), ""},
		{"p99 with ten of a thousand", result.Run{}, Limits{}, tail(101, 10), ""},
		{"p99", result.Run{}, Limits{}, tail(101, 11), codeLagP99},
		{"p99.9 is not limited", result.Run{}, Limits{}, tail(5000, 2), ""},
		{"p99.9", result.Run{}, p999, tail(101, 2), codeLagP999},
		{"p99 of few is the largest", result.Run{}, Limits{}, steady(0, 0, 0, 101)[702:751], codeLagP99},
		{"drift", result.Run{}, Limits{}, steady(0, 0, 0, 10), ""},
		{"drift over the limit", result.Run{}, Limits{}, steady(0, 0, 0, 11), codeLagDrift},
		{"a client that catches up", result.Run{}, Limits{}, steady(11, 0, 0, 0), ""},
		{"cpu", result.Run{Client: result.Client{Cores: 2, ClientCPU: 1.8}}, Limits{}, steady(0), codeCPU},
		{"cpu below", result.Run{Client: result.Client{Cores: 2, ClientCPU: 1.79}}, Limits{}, steady(0), ""},
		{"few skipped", result.Run{Sending: result.Sending{Skipped: 10}}, Limits{}, steady(0), ""},
		{"skipped", result.Run{Sending: result.Sending{Skipped: 11}}, Limits{}, steady(0), CodeSkipped},
		{"cpu unknown", result.Run{Client: result.Client{ClientCPU: 1.8}}, Limits{}, steady(0), ""},
		{"gc", result.Run{Client: result.Client{GCPauseMaxNS: 50e6 + 1}}, Limits{}, steady(0), codeGCPause},
		{"held back", result.Run{Sending: result.Sending{HeldBack: 1, InFlightLimit: 8}}, Limits{}, steady(0), codeHeldBack},
		{"held back as allowed", result.Run{Sending: result.Sending{HeldBack: 20, InFlightLimit: 8}}, one(func(l *Limits) { l.HeldBack = 0.02 }), steady(0), ""},
		{"held back more", result.Run{Sending: result.Sending{HeldBack: 21, InFlightLimit: 8}}, one(func(l *Limits) { l.HeldBack = 0.02 }), steady(0), codeHeldBack},
		{"stalled at the limit", result.Run{Clock: result.Clock{StalledNS: 1e9}}, Limits{}, steady(0), ""},
		{"stalled", result.Run{Clock: result.Clock{StalledNS: 1e9 + 1}}, Limits{}, steady(0), codeStalled},
		{"clock at the limit", result.Run{Clock: result.Clock{ClockJumpNS: 100e6}}, Limits{}, steady(0), ""},
		{"clock", result.Run{Clock: result.Clock{ClockJumpNS: 100e6 + 1}}, Limits{}, steady(0), codeClock},
		{"one without a connection", result.Run{}, Limits{}, planted(1, failure(0, 0, "connect")), ""},
		{"without a connection", result.Run{}, Limits{}, planted(2, failure(0, 0, "connect")), codeConnect},
		{"refused as allowed", result.Run{}, Limits{}, planted(10, refusal(429)), ""},
		{"refused with 429", result.Run{}, Limits{}, planted(11, refusal(429)), CodeRefused + " " + CodeErrors},
		{"refused with 503", result.Run{}, one(func(l *Limits) { l.Errors = 0.5 }), planted(11, refusal(503)), CodeRefused},
		{"502 is no refusal", result.Run{}, one(func(l *Limits) { l.Errors = 0.5 }), planted(11, refusal(502)), ""},
		{"refused and allowed", result.Run{}, one(func(l *Limits) { l.Errors, l.Refused = -1, 0.02 }), planted(11, refusal(503)), ""},
		{"errors at the limit", result.Run{}, Limits{}, failures(10), ""},
		{"errors", result.Run{}, Limits{}, failures(11), CodeErrors},
		{"only errors", result.Run{}, Limits{}, failures(1000), CodeNoSamples + " " + CodeErrors},
		{"ended early", result.Run{EndedEarly: "interrupted"}, Limits{}, steady(0), codeEndedEarly},
		{"not sent", result.Run{EndedEarly: "interrupted", Sending: result.Sending{NotSent: 3}}, Limits{}, steady(0), codeEndedEarly + " " + codeNotSent},
		{"not sent by the rows", result.Run{}, Limits{}, append(steady(0), result.Result{}), codeNotSent},
		{"unprepared", result.Run{Sending: result.Sending{Unprepared: 1, Unready: "too long"}}, Limits{}, steady(0), codeUnprepared},
		{"results missing", result.Run{Sending: result.Sending{Requests: 1001}}, Limits{}, steady(0), codeRowsMissing},
		{"shards together", result.Run{Shards: startedAt("12:00:00", "12:00:00")}, Limits{}, steady(0), ""},
		{"shards apart", result.Run{Shards: startedAt("12:00:00", "12:00:00", "12:10:00")}, Limits{}, steady(0), codeShards},
		{"no limits", result.Run{Client: result.Client{Cores: 1, ClientCPU: 1, GCPauseMaxNS: 1e9}, Clock: result.Clock{StalledNS: 1e12, ClockJumpNS: 1e12}, Sending: result.Sending{HeldBack: 99}}, none, append(steady(500), failures(500)...), ""},
		{"nothing", result.Run{}, none, nil, CodeNoSamples},
		{"answers without a token", result.Run{}, none, tokenless(3), CodeNoSamples},
	} {
		s := summarise(t, row.run, Options{Limits: row.limits}, row.results...)
		var codes []string
		for _, r := range s.Verdict.Reasons {
			codes = append(codes, r.Code)
			if r.Text == "" || r.Unit == "" || r.Measured == r.Limit && r.Code != codeCPU && r.Code != codeEndedEarly {
				t.Errorf("%s: %+v", row.name, r)
			}
		}
		held := map[string]bool{} // that of guessed counts is for runs with a guessed tokenizer alone
		for _, c := range s.Verdict.Checks {
			held[c.Code] = c.Holds
			if !c.Holds && (c.Measured == nil || c.Allowed == nil || !strings.Contains(" "+row.codes+" ", " "+c.Code+" ")) {
				t.Errorf("%s: %+v", row.name, c)
			}
		}
		checks := len(checkNames) - 2 // that of shards apart is for merged results
		if row.run.Shards != nil {
			checks++
		}
		if len(held) != checks || len(s.Verdict.Checks) != len(held) {
			t.Errorf("%s: %d checks", row.name, len(held))
		}
		if got := strings.Join(codes, " "); got != row.codes || s.Verdict.Trustworthy != (row.codes == "") {
			t.Errorf("%s: reasons %q, want %q", row.name, got, row.codes)
		}
	}
}

func TestReasonFigures(t *testing.T) {
	s := summarise(t, result.Run{Client: result.Client{Cores: 4, ClientCPU: 3.8}}, Options{}, answer(0, 0, 250, 5))
	want := []Reason{
		{codeLagP50, "the largest send lag of 1 request, too few for a p50, is 250 ms; the limit is 10 ms", 250, 10, "ms"},
		{codeLagP99, "the largest send lag of 1 request, too few for a p99, is 250 ms; the limit is 100 ms", 250, 100, "ms"},
		{codeCPU, "the client used 3.80 of 4 cores; from 90 % on, its own waiting is in the latencies", 0.95, 0.9, "share"},
	}
	for i, r := range s.Verdict.Reasons {
		if len(want) != len(s.Verdict.Reasons) || r != want[i] {
			t.Errorf("got  %+v\nwant %+v", r, want)
		}
	}
}

// A simulation has no client: nothing is said of one, and what the model
// refused still counts.
func TestSimulatedVerdict(t *testing.T) {
	var results []result.Result
	for i := range int64(1000) {
		results = append(results, answer(i, i, 0, 5, 9))
	}
	s := summarise(t, result.Run{Simulation: result.Simulation{Simulated: "1 × engine"}, Sending: result.Sending{Requests: 1000}}, Options{}, results...)
	if !s.Verdict.Trustworthy || s.Latency.SendLag.Count != 0 || s.LagDriftMS != nil || s.Latency.FromDue.TTFT.Count != 1000 {
		t.Errorf("%+v, send lag %+v", s.Verdict, s.Latency.SendLag)
	}
	var text, page strings.Builder
	if err := Page(s).WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	if err := Page(s).Write(&page); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), page.String()} {
		if !strings.Contains(out, "no client") || strings.Contains(out, "the client kept to its schedule") || strings.Contains(out, "waiting in the client") {
			t.Error("the report speaks of a client")
		}
	}
	results[0] = failure(0, 0, "rate_limited")
	for i := range int64(20) {
		results[i] = failure(i, i, "rate_limited")
	}
	if s := summarise(t, result.Run{Simulation: result.Simulation{Simulated: "1 × engine"}, Sending: result.Sending{Requests: 1000}}, Options{}, results...); s.Verdict.Trustworthy {
		t.Error("2 % of errors are trusted")
	}
}

// startedAt are shards that were to start at some times of a day.
func startedAt(times ...string) (shards []result.SentShard) {
	for i, at := range times {
		s := result.SentShard{}
		s.Share, s.StartClock = result.Share{Index: i, Of: len(times)}, "2026-05-01T"+at+"Z"
		shards = append(shards, s)
	}
	return shards
}
