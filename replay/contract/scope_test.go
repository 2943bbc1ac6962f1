package contract

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"reprise/replay/report"
	"reprise/replay/result"
	"reprise/trace"
)

// rowOf is a successful result with a class, for scopes.
func rowOf(class string, input int32) *result.Result {
	r := answer(0, 0, 0, 10, 20)
	r.Class, r.WantInput, r.Input = class, input, trace.Ptr(input)
	return &r
}

func TestScopes(t *testing.T) {
	here := &report.Circumstances{Run: &result.Run{Routing: result.Routing{Endpoints: []string{"http://a:8000", "http://b:8000"}}}, Steady: (&report.Steady{Window: &report.Stretch{FromS: 0, ToS: 1}}).Interval()}
	gold, plain := rowOf("gold", 5000), rowOf("", 100)
	gold.Session, gold.Endpoint, gold.API, gold.Category = trace.Ptr(int64(3)), trace.Ptr(int32(1)), result.APIChat, trace.Cold
	gold.User, gold.Model, gold.Adapter = trace.Ptr(int64(7)), "llama", "sql"
	plain.DoneNS = trace.Ptr(int64(2e9))
	for _, c := range []struct {
		in, out     string // out is "" where it is in
		gold, plain bool
	}{
		{in: "class = gold", gold: true},
		{in: `class = "gold"`, out: "class = gold", gold: true},
		{in: "class='gold'", out: "class = gold", gold: true},
		{in: "class != gold", plain: true},
		{in: "class ≠ gold", out: "class != gold", plain: true},
		{in: "class = none", plain: true},
		{in: `class = "none"`},
		{in: `class = ""`, plain: true},
		{in: `class = "and"`},
		{in: `class = 'a "b"'`},
		{in: "class != none", gold: true},
		{in: "session != none", gold: true},
		{in: "session = none", plain: true},
		{in: "session = 3", gold: true},
		{in: "session = 03", out: "session = 3", gold: true},
		{in: "user = 7", gold: true},
		{in: "user = none", plain: true},
		{in: "model = llama and adapter = sql", gold: true},
		{in: "adapter = none", plain: true},
		{in: "state = steady", gold: true},
		{in: "state = none", plain: true},
		{in: "category = cold", gold: true},
		{in: "api = chat", gold: true},
		{in: "endpoint = http://b:8000", gold: true},
		{in: "endpoint = http://a:8000"},
		{in: "endpoint = none", plain: true},
		{in: "input_tokens < 2048", plain: true},
		{in: "input_tokens <= 100", plain: true},
		{in: "input_tokens < 100"},
		{in: "input_tokens ≥ 5000", out: "input_tokens >= 5000", gold: true},
		{in: "input_tokens > 5000"},
		{in: "input_tokens = 100", plain: true},
		{in: "input_tokens != 100", gold: true},
		{in: "output_tokens = 2", gold: true, plain: true},
		{in: "class = gold or input_tokens < 2048", gold: true, plain: true},
		{in: "class = gold and input_tokens < 2048"},
		// and binds tighter
		{in: "class = none or class = gold and input_tokens < 2048", plain: true},
		{in: "(class = none or class = gold) and input_tokens < 2048", plain: true},
		{in: "(class = none or class = gold) and input_tokens > 2048", gold: true},
		{in: "class = none or (class = gold and input_tokens < 2048)", out: "class = none or class = gold and input_tokens < 2048", plain: true},
		{in: "((class = gold) or (class = none or input_tokens < 7))", out: "class = gold or class = none or input_tokens < 7", gold: true, plain: true},
	} {
		s, err := parseScope(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if want := cmp.Or(c.out, c.in); s.String() != want {
			t.Errorf("%s prints as %s", c.in, s)
		}
		if g, p := s.holds(gold, here), s.holds(plain, here); g != c.gold || p != c.plain {
			t.Errorf("%s: gold %v, plain %v", c.in, g, p)
		}
	}
}

// A request that failed is where the workload puts it, however far its answer came.
func TestScopeOfAFailure(t *testing.T) {
	r := rowOf("", 100)
	r.WantInput, r.WantOutput = 90, trace.Ptr[int32](50)
	for in, want := range map[string][2]bool{"input_tokens = 100": {true, false}, "output_tokens = 50": {false, true}} {
		s, err := parseScope(in)
		if err != nil {
			t.Fatal(err)
		}
		broken := *r
		broken.Error = "reset"
		if got := [2]bool{s.holds(r, &report.Circumstances{Run: &result.Run{}}), s.holds(&broken, &report.Circumstances{Run: &result.Run{}})}; got != want {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
}

func TestScopeFaults(t *testing.T) {
	for _, c := range []struct {
		in   string
		at   int
		want string
	}{
		{"", 0, "want one of user, adapter"},
		{"klass = gold", 0, "nearest is class"},
		{`"class" = gold`, 0, "want one of user"},
		{"class", 5, "want =, !="},
		{"class gold", 6, "want =, !="},
		{"class < gold", 6, "class is a text"},
		{"class =", 7, "want a value after ="},
		{"class = and", 8, "want a value"},
		{"class = )", 8, "want a value"},
		{"category = warm", 11, "category is cold, duplicate, continuation, template, branch, none"},
		{"category != global", 12, "the category global is called template now, and is what many sessions share: write category != template"},
		{"api = grpc", 6, "api is chat"},
		{"session = x", 10, "session is a whole number"},
		{"user = -1", 7, "user is a whole number"},
		{"state = cold", 8, "state is steady"},
		{"model < a", 6, "model is a text"},
		{"input_tokens = none", 15, "whole number"},
		{"input_tokens < 2k", 15, "whole number"},
		{"input_tokens < -1", 15, "whole number"},
		{"input_tokens < 1.5", 15, "whole number"},
		{"input_tokens < 99999999999", 15, "whole number"},
		{"class = gold silver", 13, "want and, or, or the end"},
		{"class = gold or", 15, "want one of user"},
		{"(class = gold", 13, "closing parenthesis"},
		{"class = gold)", 12, "want and, or, or the end"},
		{"class = 'gold", 8, "not closed"},
		{"class = gold; input_tokens < 5", 12, "no meaning"},
		{"class == gold", 7, "want a value"},
		{strings.Repeat("(", 33) + "class = gold", 32, "more than 32 parentheses"},
	} {
		_, err := parseScope(c.in)
		var m *misplaced
		if !errors.As(err, &m) || m.at != c.at || !strings.Contains(m.why, c.want) {
			t.Errorf("%q: %+v; want %q behind %d bytes", c.in, m, c.want, c.at)
		}
	}
}

// What a scope prints is read as that scope, and holds for the same results.
func FuzzScope(f *testing.F) {
	for _, seed := range []string{"class = gold or input_tokens < 2048", "(class != 'a b' or api=chat) and session != none", "((((", `class = "`, "user = 3 and state != steady or model = none", "input_tokens ≤ 3 and (output_tokens > 1 or endpoint = http://a:1/v1?x)"} {
		f.Add(seed)
	}
	here := &report.Circumstances{Run: &result.Run{Routing: result.Routing{Endpoints: []string{"http://a:1"}}}}
	rows := messy(rand.New(rand.NewPCG(1, 2)), 50)
	for i := range rows {
		rows[i].Class = []string{"", "gold", "a b"}[i%3]
	}
	f.Fuzz(func(t *testing.T, in string) {
		s, err := parseScope(in)
		if err != nil {
			if m := new(misplaced); !errors.As(err, &m) || m.at < 0 || m.at > len(in) {
				t.Fatalf("%q: the fault has no place: %v", in, err)
			}
			return
		}
		back, err := parseScope(s.String())
		if err != nil || back.String() != s.String() {
			t.Fatalf("%q is read back as %v, %v", s, back, err)
		}
		for i := range rows {
			if s.holds(&rows[i], here) != back.holds(&rows[i], here) {
				t.Fatalf("%q and %q differ on row %d", in, back, i)
			}
		}
	})
}

// Clauses about the steady state have the figures of the report.
func TestClausesOfTheSteadyState(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	var results []result.Result
	at := int64(0)
	for i := range int64(4000) {
		at += int64(rng.ExpFloat64() * 20)
		length := 100 + rng.Int64N(200)
		if i < 200 {
			length += 3000 // a slow start
		}
		results = append(results, answer(i, at, 0, length/2, length))
	}
	c := contractOf(t, "{clause: p95 ttft <= 200ms, from: sent, where: state = steady}", "{clause: requests_per_s >= 40, where: state = steady}",
		"{clause: output_tokens_per_s >= 40, where: state = steady}", "{clause: error_rate <= 1%, where: state = steady and user = none}", "p95 ttft <= 200ms")
	reread := func() trace.Reader[result.Result] { return &trace.SliceReader[result.Result]{Rows: results} }
	o := report.Options{Contract: c}
	if err := o.AddSteady(result.Run{}, reread); err != nil || o.Steady == nil || o.Steady.Reason != "" {
		t.Fatalf("%+v, %v", o.Steady, err)
	}
	s := summarise(t, result.Run{}, o, results...)
	got := s.Contract.Clauses
	if *got[0].Measured != *o.Steady.TTFT.P95 || got[0].Samples != o.Steady.Inside || *got[1].Measured != *o.Steady.RequestsPerS || *got[2].Measured != *o.Steady.OutputTokensPerS {
		t.Errorf("%+v\n%+v", got, o.Steady)
	}
	if got[0].Outcome != report.Holds || got[4].Outcome != report.Fails {
		t.Errorf("the slow start is in the steady state: %+v", got)
	}
	// Without one, and where nobody looked for it, such a clause cannot be judged.
	o.Steady = &report.Steady{Reason: "of the moon"}
	if s = summarise(t, result.Run{}, o, results...); s.Contract.Clauses[0].Why != "there is no steady state: of the moon" || s.Contract.Clauses[1].Outcome != report.Unjudged {
		t.Errorf("%+v", s.Contract.Clauses)
	}
	o.Steady = nil
	if s = summarise(t, result.Run{}, o, results...); s.Contract.Clauses[0].Why != "the steady state was not looked for" {
		t.Errorf("%+v", s.Contract.Clauses[0])
	}
}
