package scenario

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reprise/replay/result"
	"reprise/trace"
)

// table is a set of settings: what they have by themselves, and what was given.
type table struct{ own, given map[string]string }

func (t table) Lookup(name string) (string, string, bool, bool) {
	own, ok := t.own[name]
	value, given := t.given[name]
	if !given {
		value = own
	}
	return value, own, given, ok
}

func (t table) Set(name, value string) error {
	if value == "nonsense" {
		return fmt.Errorf("--%s: what is that", name)
	}
	t.given[name] = value
	return nil
}

// settings are those that the rules of AgentX are about, as replay has them by itself.
func settings(given ...string) table {
	t := table{map[string]string{"extra-body": ""}, map[string]string{"sessions": "4"}}
	for _, name := range strings.Fields("sessions session-rate rate concurrency max-in-flight open-loop ramp-up trajectory-start recycle duration speed think-scale tool-scale waits idle-cap gap-cap session-idle-cap warmup cooldown start end sample max-requests loop include-failed api force-output thread verbatim cache retry seed") {
		t.own[name] = ""
	}
	for name, value := range map[string]string{"sessions": "0", "concurrency": "0", "max-in-flight": "0", "open-loop": "false", "ramp-up": "0s", "recycle": "salt", "duration": "0s", "speed": "1", "waits": "think", "think-scale": "1",
		"tool-scale": "1", "idle-cap": "0s", "gap-cap": "0s", "session-idle-cap": "0s", "start": "0s", "end": "0s", "max-requests": "0", "include-failed": "false", "api": "completions", "force-output": "true", "thread": "false", "cache": "as-is", "retry": "0", "seed": "1"} {
		t.own[name] = value
	}
	for _, g := range given {
		name, value, _ := strings.Cut(g, "=")
		t.given[name] = value
	}
	return t
}

func found(t *testing.T, name string) *Scenario {
	t.Helper()
	s, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each rule of AgentX as AIPerf 0.13 has it: what it fills in, what it allows, and what it
// refuses.
func TestAgentX(t *testing.T) {
	s := found(t, "agentx")
	about, err := s.Apply(settings())
	if err != nil || len(about.Broken) > 0 || about.Version != "agentx-0.13" || !about.BuiltIn || len(about.Rules) != 64 {
		t.Fatalf("%+v, %v", about, err)
	}
	if got := strings.Join(about.Filled, " "); got != "trajectory-start=0..1 recycle=apart duration=30m waits=aiperf idle-cap=10s" {
		t.Errorf("filled in: %s", got)
	}
	for given, want := range map[string]string{ // want is the rule that is broken, "" for none
		"duration=15m0s": "", "duration=899s": "duration", "duration=0s": "duration", "duration=2h": "",
		"trajectory-start=0.25..0.75": "", "idle-cap=10000ms": "", "idle-cap=0s": "idle-cap", "idle-cap=11s": "idle-cap",
		"gap-cap=0s": "", "gap-cap=5s": "gap-cap", "speed=1.0": "", "speed=2": "speed", "waits=think": "waits", "waits=ends": "waits", "waits=aiperf": "", "think-scale=0": "think-scale", "tool-scale=0.5": "tool-scale",
		"recycle=apart": "", "recycle=salt": "recycle", "recycle=same": "recycle", "recycle=stop": "recycle",
		"force-output=false": "force-output", "api=chat": "", "api=embeddings": "api", "cache=cold": "", "cache=warm": "cache",
		"session-rate=2": "session-rate", "rate=2": "rate", "concurrency=8": "concurrency", "max-in-flight=8": "max-in-flight", "open-loop=true": "open-loop", "open-loop=false": "", "ramp-up=1m": "ramp-up",
		"warmup=100": "warmup", "cooldown=10s": "cooldown", "start=10m": "start", "end=10m": "end", "sample=10%": "sample", "max-requests=100": "max-requests", "loop=2": "loop",
		"include-failed=true": "include-failed", "thread=true": "thread", "verbatim=raw.parquet": "verbatim", "retry=3": "retry",
		`extra-body={"ignore_eos":false}`: "body.ignore_eos", `extra-body={"max_tokens":1}`: "body.max_tokens", `extra-body={"min_tokens":0}`: "body.min_tokens", `extra-body={"stop":["a"]}`: "body.stop",
		`extra-body={"user":"x"}`: "", "seed=7": "",
	} {
		about, err := s.Apply(settings(given))
		if err != nil {
			t.Fatal(err)
		}
		var broken []string
		for _, b := range about.Broken {
			broken = append(broken, b.Rule)
		}
		if got := strings.Join(broken, " "); got != want {
			t.Errorf("%s breaks %q, want %q", given, got, want)
		}
	}
	none := settings()
	delete(none.given, "sessions")
	if about, _ := s.Apply(none); len(about.Broken) != 1 || about.Broken[0].Rule != "sessions" {
		t.Errorf("without sessions: %+v", about.Broken)
	}
	// A body may hold a secret.
	about, _ = s.Apply(settings(`extra-body={"stop":"hunter2"}`))
	if says := about.Broken[0].String(); strings.Contains(says, "hunter2") || says != "body.stop: set by --extra-body, want it unset (outputs have the recorded length)" {
		t.Error(says)
	}
}

// What InferenceX asks for beside: a place, an hour, a seed; and what cannot be checked.
func TestAgentXInferenceX(t *testing.T) {
	s := found(t, "agentx-inferencex-2026-08")
	about, err := s.Apply(settings())
	if err != nil || len(about.Broken) > 0 {
		t.Fatalf("%+v, %v", about, err)
	}
	if got := strings.Join(about.Filled, " "); got != "trajectory-start=0.25..0.75 recycle=apart duration=60m seed=42 waits=aiperf idle-cap=10s session-idle-cap=5m" {
		t.Errorf("filled in: %s", got)
	}
	for _, given := range []string{"trajectory-start=0..1", "duration=30m", "duration=61m", "seed=1", "gap-cap=10m"} {
		if about, _ := s.Apply(settings(given)); len(about.Broken) != 1 || !strings.HasPrefix(given, about.Broken[0].Rule+"=") {
			t.Errorf("%s: %+v", given, about.Broken)
		}
	}
	if s.Limits != (Limits{0.01, 0.1}) || len(s.Unchecked) != 1 {
		t.Errorf("%+v, %q", s.Limits, s.Unchecked)
	}
}

// results are of so many requests, one each second, of which the first fail in some way.
func results(kinds ...string) *rows {
	r := &rows{}
	for i, kind := range kinds {
		at := int64(i) * int64(time.Second)
		one := result.Result{RowID: int64(i), DueNS: at, ReleasedNS: trace.Ptr(at), SentNS: trace.Ptr(at), DoneNS: trace.Ptr(at + 5e8), WantOutput: trace.Ptr[int32](2), Attempts: 1, Error: kind}
		if kind == "" {
			one.HeadersNS, one.FirstEventNS, one.FirstTokenNS, one.LastTokenNS = trace.Ptr(at+1e8), trace.Ptr(at+1e8), trace.Ptr(at+1e8), trace.Ptr(at+4e8)
			one.Events, one.GapsNS, one.Output, one.OutputFrom, one.HTTPStatus = 2, []int64{3e8}, trace.Ptr(int32(2)), result.FromUsage, trace.Ptr(int32(200))
		}
		r.all = append(r.all, one)
	}
	return r
}

type rows struct{ all []result.Result }

func (r *rows) Read(into []result.Result) (int, error) {
	n := copy(into, r.all)
	if r.all = r.all[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// aRun is one that kept four sessions live for its fifteen minutes.
func aRun(n int64) result.Run {
	return result.Run{Schema: result.Schema, Load: result.Load{Timing: result.ClosedLoop, Speed: 1}, Client: result.Client{Cores: 8}, Sending: result.Sending{Requests: n},
		Plan:     result.Asked{DurationNS: int64(15 * time.Minute)},
		Sessions: &result.Sessions{Live: 4, Counts: &result.SessionCounts{LiveTrees: &result.LiveTrees{Min: 4, Mean: 4, Max: 4, ToNS: int64(15 * time.Minute)}}}}
}

func fails(n, of int, kind string) []string {
	return append(slices.Repeat([]string{kind}, n), make([]string, of-n)...)
}

// What the end of a run says of the rules.
func TestStamp(t *testing.T) {
	const anything = "name: a\nversion: a-1\nrules: {sessions: {given: true}}\nlimits:\n  too_long: 1%\n"
	for _, c := range []struct {
		name, rules string
		kinds       []string
		change      func(*result.Run)
		want        string // broken rules
	}{
		{"all kept", anything, fails(0, 1000, ""), nil, ""},
		{"1 % too long", anything, fails(10, 1000, "too_long"), nil, ""},
		{"more than 1 % too long", anything, fails(11, 1000, "too_long"), nil, "too_long trustworthy"},
		{"other errors are no overflow", anything, fails(11, 1000, "server_error"), nil, "trustworthy"},
		{"a limit of its own for errors", anything + "  errors: 10%\n", fails(100, 1000, "server_error"), nil, ""},
		{"more errors than that", anything + "  errors: 10%\n", fails(101, 1000, "server_error"), nil, "errors"},
		{"no limit", strings.Replace(anything, "1%", "100%", 1) + "  errors: 100%\n", fails(999, 1000, "too_long"), nil, ""},
		{"ended early", anything, fails(0, 1000, ""), func(r *result.Run) { r.EndedEarly = "interrupted" }, "uninterrupted trustworthy"},
		{"a place was empty", anything, fails(0, 1000, ""), func(r *result.Run) { r.Sessions.Counts.LiveTrees.Min = 3 }, "live_sessions"},
		{"none was left to start", anything, fails(0, 1000, ""), func(r *result.Run) { r.Sessions.Counts.LiveTrees.ToNS -= 1 }, "live_sessions"},
		{"results are missing", anything, fails(0, 1000, ""), func(r *result.Run) { r.Requests++ }, "trustworthy"},
		{"sent late", anything, fails(0, 1000, ""), func(r *result.Run) { r.ClientCPU = 7.9 }, "trustworthy"},
		{"broken before", anything, fails(0, 1000, ""), func(r *result.Run) { r.Scenario.Broken = []result.BrokenRule{{Rule: "speed"}} }, "speed"},
		{"not checked", anything + "unchecked: [the weather]\n", fails(0, 1000, ""), nil, ""},
	} {
		s, err := parse(c.name, []byte(c.rules))
		if err != nil {
			t.Fatal(err)
		}
		run := aRun(int64(len(c.kinds)))
		if run.Scenario, err = s.Apply(settings()); err != nil {
			t.Fatal(err)
		}
		if c.change != nil {
			c.change(&run)
		}
		if err := s.Stamp(&run, results(c.kinds...)); err != nil {
			t.Fatal(err)
		}
		var broken []string
		for _, b := range run.Scenario.Broken {
			broken = append(broken, b.Rule)
		}
		got := strings.Join(broken, " ")
		if valid := *run.Scenario.Valid; got != c.want || valid != (c.want == "" && len(s.Unchecked) == 0) {
			t.Errorf("%s: valid %v, broken %+v, want %q", c.name, valid, run.Scenario.Broken, c.want)
		}
		var long int64
		for _, k := range c.kinds {
			if k == result.KindTooLong {
				long++
			}
		}
		if run.Scenario.Answers != 1000 || run.Scenario.TooLong != long {
			t.Errorf("%s: %d answers, %d too long", c.name, run.Scenario.Answers, run.Scenario.TooLong)
		}
	}
}

// A workload is known by its digest, or by that of the file that it is of, wherever that is from.
func TestWorkloads(t *testing.T) {
	const rules = "name: a\nversion: a-1\nrules: {sessions: {given: true}}\n"
	const two, one = "one of the 2 that are permitted", "the import of one of the 1 files that are permitted, whole"
	for text, cases := range map[string]map[[2]string]string{
		"":                                    {{"sha256:cc", ""}: ""},
		"workloads: [sha256:aa, sha256:bb]\n": {{"sha256:bb", ""}: "", {"sha256:cc", "sha256:bb"}: "workload: sha256:cc, want " + two},
		"sources: [sha256:dd]\n": {{"sha256:cc", "sha256:dd"}: "", {"sha256:dd", ""}: "workload: sha256:dd, not known to be of one whole file, want " + one,
			{"sha256:cc", "sha256:ee"}: "workload: sha256:cc, of the file sha256:ee, want " + one},
		"workloads: [sha256:aa, sha256:bb]\nsources: [sha256:dd]\n": {{"sha256:aa", ""}: "", {"sha256:cc", "sha256:dd"}: "", {"sha256:cc", ""}: "workload: sha256:cc, not known to be of one whole file, want " + two + ", or " + one},
	} {
		s, err := parse("x", []byte(rules+text))
		if err != nil {
			t.Fatal(err)
		}
		for of, want := range cases {
			got := ""
			if b := s.CheckWorkload(of[0], of[1]); b != nil {
				got = b.String()
			}
			if got != want {
				t.Errorf("%q, %v: %q, want %q", text, of, got, want)
			}
		}
	}
	for _, name := range []string{"agentx-0.13", "agentx-inferencex-2026-08"} {
		s := found(t, name)
		if len(s.Sources) != 2 || s.CheckWorkload("sha256:aa", "") == nil || s.CheckWorkload("sha256:aa", s.Sources[0]) != nil {
			t.Errorf("%s: %v", name, s.Sources)
		}
	}
}

func TestFaults(t *testing.T) {
	const head = "name: a\nversion: b\n"
	for text, want := range map[string]string{
		"":                                       "x:",
		"name: a\n":                              "x:1:1: a scenario has a name and a version",
		head:                                     "x:1:1: the scenario has no rules",
		head + "rules: {speed: {}}":              "x:3:9: the rule for speed asks for nothing",
		head + "rules: {speed: {is: }}":          "x:3:17: is has no value",
		head + "rules: {speed: {iz: 1}}":         "x:3:17: unknown key \"iz\"",
		head + "rules: {speed: 1}":               "x:3:16: speed: want keys and values",
		head + "rules: {a: {unset: no}}":         "x:3:20: want true, or leave it out",
		head + "rules: {a: {is: 1, default: 2}}": "x:3:9: the rule for a asks for too much",
		head + "rules: {a: {unset: true, least: 2}}":   "x:3:9: the rule for a asks for too much",
		head + "rules: {a: {given: true, default: 2}}": "x:3:9: the rule for a asks for too much",
		head + "rules: {body.a: {is: 1}}":              "x:3:9: the rule for body.a: a field",
		head + "limits: {too_long: lots}":              "x:3:20: too_long: ",
		head + "workloads: []":                         "x:3:12: ",
		head + "rules: {a: {is: 1}}\nsources: [29b6]":  "x:1:1: \"29b6\" is no digest",
		head + "rules: {a: {is: 1}}\nname: c":          "x:4:1: ",
	} {
		if _, err := parse("x", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s…", text, err, want)
		}
	}
	for rules, want := range map[string]string{"nothing: {is: 1}": `scenario b: replay has no setting "nothing"`, "seed: {is: nonsense}": "scenario b: --seed: what is that"} {
		s, err := parse("x", []byte(head+"rules: {"+rules+"}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(settings()); err == nil || err.Error() != want {
			t.Errorf("%s: %v", rules, err)
		}
	}
	if _, err := Find("agentz"); err == nil || !strings.Contains(err.Error(), "agentx-0.13") {
		t.Errorf("%v", err)
	}
}

// The example of the documentation is a scenario.
func TestDocumentedExample(t *testing.T) {
	doc, err := os.ReadFile("../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(doc)
	if m == nil {
		t.Fatal("docs/scenarios.md has no example")
	}
	s, err := parse("docs/scenarios.md", m[1])
	if err != nil {
		t.Fatal(err)
	}
	about, err := s.Apply(settings())
	if err != nil || len(about.Broken) > 0 || len(about.Filled) < 2 || len(s.Workloads) != 1 || s.Limits.TooLong < 0 {
		t.Errorf("%+v, %v", about, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"agentx-0.13", "agentx-inferencex-2026-08"} {
		text, err := builtIn.ReadFile(name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parse("x", text)
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
		if err == nil {
			s.Apply(settings())
		}
	})
}
