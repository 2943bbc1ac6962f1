package breaker_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"reprise/trace"
	"reprise/trace/breaker"
	"reprise/trace/profile"
	"reprise/trace/textpage"
)

// reported is what a log with many breakers gives, in the metadata's form.
func reported(t testing.TB) string {
	p := newPlanted(1)
	for i := range 14 {
		p.model = fmt.Sprint("model-", i)
		p.domain[0] = byte(i)
		plants["a date at token 40"](p)
	}
	s, err := p.find.Report().JSON()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBreakersRoundTrip(t *testing.T) {
	s := reported(t)
	b, err := breaker.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.List) != breaker.MaxListed || b.Found != 14 || b.LostTokens != 14*29*1458 {
		t.Errorf("%d of %d listed, %d tokens lost", len(b.List), b.Found, b.LostTokens)
	}
	if back, err := b.JSON(); err != nil || back != s {
		t.Errorf("it came back as %s (%v), want %s", back, err, s)
	}
	// Nothing but closed lists, names and counts is in it.
	var v map[string]any
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{"breakers/1": true, "system": true}
	for i := range 14 {
		allowed[fmt.Sprint("model-", i)] = true
	}
	var look func(any)
	look = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, one := range v {
				look(one)
			}
		case []any:
			for _, one := range v {
				look(one)
			}
		case string:
			if !allowed[v] {
				t.Errorf("it says %q", v)
			}
		case float64:
			if v > float64(b.PromptTokens) {
				t.Errorf("it has the number %v, more than all tokens", v)
			}
		}
	}
	look(v)
}

func TestParseBreakersRefuses(t *testing.T) {
	good := reported(t)
	for _, change := range [][2]string{
		{"breakers/1", "breakers/2"}, {`"role":"system"`, `"role":"a text"`}, {`"model-3"`, `"a\u001b[31m"`},
		{`"from_token":40`, `"from_token":41`}, {`"requests":29`, `"requests":4`}, {`"message":0`, `"message":-1`},
		{`"found":14`, `"found":9`}, {`"from_token":40`, `"from_token":"hunter2"`}, {`"duration_s":`, `"duration_s":-`},
		{`"prompt_tokens":`, `"prompt_tokens":-`}, {`"requests":29`, `"requests":99999`}, {`"lost_tokens":42282`, `"lost_tokens":42283000`},
		{`{`, ``}, {`"model-3"`, `"` + strings.Repeat("m", 300) + `"`},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("the report has no %s: %s", change[0], good)
		}
		if _, err := breaker.Parse(bad); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("with %s in place of %s: %v", change[1], change[0], err)
		}
	}
	if _, err := breaker.Parse(strings.Replace(good, `{`, `{"later":[1],`, 1)); err != nil {
		t.Errorf("a field that this version does not know: %v", err)
	}
}

// FuzzParseBreakers: what is taken can be written, read again and printed.
func FuzzParseBreakers(f *testing.F) {
	f.Add(reported(f))
	f.Add(`{"schema":"breakers/1","breakers":[]}`)
	f.Add(`{"schema":"breakers/1","requests":9,"prompt_tokens":99,"lost_tokens":70,"found":1,"duration_s":1e300,"breakers":[{"role":"tool","requests":5,"lost_tokens":70}]}`)
	f.Fuzz(func(t *testing.T, s string) {
		b, err := breaker.Parse(s)
		if err != nil {
			return
		}
		first, err := b.JSON()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again, err := breaker.Parse(first)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if second, _ := again.JSON(); second != first {
			t.Fatalf("%s became %s", first, second)
		}
		b.Notes()
		printed(t, first)
	})
}

// printed is the text of a profile whose trace has these breakers.
func printed(t *testing.T, breakers string) string {
	t.Helper()
	p := profile.NewProfiler(trace.Meta{BlockSize: 16, Breakers: breakers}, profile.ProfilerOptions{})
	var b strings.Builder
	if err := profile.Page(p.Summary(), nil).WriteText(&b, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(p.Summary()); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\t") {
		t.Fatalf("the text has control characters: %q", b.String())
	}
	return b.String()
}

func TestBreakersAreShown(t *testing.T) {
	text := printed(t, reported(t))
	for i, line := range strings.Split(text, "\n") {
		if utf8.RuneCountInString(line) > textpage.MaxWidth || strings.TrimRight(line, " ") != line {
			t.Errorf("line %d is too wide or ends in blanks: %q", i+1, line)
		}
	}
	for _, want := range []string{"Prefix breakers", "│ 40       │       0 │ system │ model-9 │       29 │              2 │      42,282 │",
		"Most is lost at token 40, in message 0 (system)", "a day at this rate", "These are the 10 of 14 places", "fewer than 5 requests"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	none, err := newPlanted(1).find.Report().JSON()
	if err != nil {
		t.Fatal(err)
	}
	if text := printed(t, none); strings.Contains(text, "breakers") {
		t.Errorf("there are none, and the text says\n%s", text)
	}
	if text := printed(t, "{}"); !strings.Contains(text, "cannot read") {
		t.Errorf("broken metadata are passed over:\n%s", text)
	}
}

// Times that were made up give no loss by day.
func TestBreakersByDay(t *testing.T) {
	for timing, want := range map[string]bool{"": true, "made up": false} {
		s := profile.NewProfiler(trace.Meta{Breakers: reported(t), Timing: timing}, profile.ProfilerOptions{}).Summary()
		if (s.Breakers.LostPerDay != nil) != want || *s.Breakers.LostShare < 0.08 {
			t.Errorf("timing %q: %+v", timing, s.Breakers)
		}
	}
}

// A date in front of a system prompt changes every ten requests.
func ExampleFinder() {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(n int) []uint32 {
		tokens := make([]uint32, n)
		for i := range tokens {
			tokens[i] = rng.Uint32N(200_000)
		}
		return tokens
	}
	rules := text(1500)
	f := breaker.NewFinder()
	for i := range 100 {
		date := []uint32{17, 4, uint32(i / 10)}
		var prompt []uint32
		prompt = appendPrompt(prompt, trace.System, append(date, rules...))
		prompt = appendPrompt(prompt, trace.User, text(50))
		f.Add(&breaker.Prompt{Tokens: prompt, Length: 1553, Source: int64(i), ArrivalNS: int64(i) * 1e9})
	}
	b := f.Report()
	for _, one := range b.List {
		fmt.Printf("message %d (%s): %d requests part at token %d for %d token; %d of %d prompt tokens are lost\n",
			one.Message, one.Role, one.Requests, one.From, one.Width, one.Lost, b.PromptTokens)
	}
	// Output:
	// message 0 (system): 9 requests part at token 2 for 1 token; 13500 of 155300 prompt tokens are lost
}
