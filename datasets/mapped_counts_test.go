package datasets

import (
	"fmt"
	"strings"
	"testing"

	tokenusage "reprise/trace/usage"
)

// A path of a count may be a sum, in every format that takes a mapping.
func TestMappedSums(t *testing.T) {
	const want = "in=1210 out=5 cached=900"
	sum := Mapping{"input_tokens": {"u.i+u.w + u.r"}, "cached_tokens": {"u.r"}, "output_tokens": {"u.o"}}
	columns := Mapping{"input_tokens": {"i+w+Cache Read (n)"}, "cached_tokens": {"Cache Read (n)"}, "output_tokens": {"o"}}
	for in, m := range map[string]Mapping{
		`{"u":{"i":10,"w":300,"r":900,"o":5}}`:                  sum,
		`{"u":{"i":10,"w":"300","r":900.0,"o":5}}`:              sum,
		`{"u":"{\"i\":10,\"w\":300,\"r\":900,\"o\":5}"}`:        sum,
		`{"u":{"i":310,"w":null,"r":900,"o":5}}`:                sum,
		"i,w,Cache Read (n),o\n10,300,900,5\n":                  columns,
		"i,w,Cache Read (n),o\n310,,900,5\n":                    columns,
		"i+w,Cache Read (n),o\n1210,900,5\n":                    {"input_tokens": {"i+w"}, "cached_tokens": {"Cache Read (n)"}, "output_tokens": {"o"}}, // a name with a plus
		`{"x":{"i":7},"u":{"i":10,"w":300,"r":900,"o":5}}`:      {"input_tokens": {"y.i", "u.i+u.w+u.r"}, "cached_tokens": {"u.r"}, "output_tokens": {"u.o"}},
		`{"a":{"n":[{"i":10},{"i":1200}]},"u":{"r":900,"o":5}}`: {"input_tokens": {"a.n[0].i+a.n[1].i"}, "cached_tokens": {"u.r"}, "output_tokens": {"u.o"}},
	} {
		wantEntries(t, in, Options{Map: m}, want)
	}
	wantEntries(t, `{"model":"m","prompt":"p","u":{"i":10,"w":300,"r":900}}`, Options{Format: "openai-log", Map: Mapping{"input_tokens": {"u.i+u.w+u.r"}}}, `in=1210 model=m user:"p" completion`)
	// A part that is no count, one that is nowhere, and a text that has a plus.
	wantBad(t, `{"u":{"i":10,"w":"x","r":900}}`, Options{Map: Mapping{"input_tokens": {"u.i+u.w+u.r"}}}, "log:1:18: input_tokens: want a whole number")
	wantBad(t, "i,w\n10,300\n", Options{Map: Mapping{"input_tokens": {"i+w+r"}}}, `log:1:1: there is no column "r"`)
	info := wantEntries(t, `{"u":{"i":10}}`, Options{Map: Mapping{"input_tokens": {"u.i+u.w"}}}, "in=10")
	wantNote(t, info, `no record has the field "u.w" (--map input_tokens=u.w)`)
	wantEntries(t, `{"n":1,"a+b":"x","a":1,"b":2}`, Options{Map: Mapping{"input_tokens": {"n"}, "user": {"a+b"}}}, "in=1 user=x")
	wantEntries(t, `{"n":1,"a":1,"b":2}`, Options{Map: Mapping{"input_tokens": {"n"}, "user": {"a+b"}}}, "in=1")
}

// A length whose name does not say that it counts tokens is named.
func TestMappedLengths(t *testing.T) {
	for name, says := range map[string]bool{"prompt_length": true, "promptChars": true,
		"prompt_token_length": false, "n": false} {
		_, info := mustRead(t, name+"\n7\n", Options{Map: Mapping{"input_tokens": {name}}})
		if got := strings.Contains(strings.Join(info.Notes, "\n"), fmt.Sprintf("%q is taken for tokens",
			name)); got != says {
			t.Errorf("%s: %q", name, info.Notes)
		}
	}
}

// The day and the time of day in two fields are one time, and a dash or a NULL is no count.
func TestMappedSplitTime(t *testing.T) {
	m := Mapping{"time": {"d+at"}, "input_tokens": {"n"}, "output_tokens": {"o"}}
	const want = "490923h4m5s in=7"
	for _, in := range []string{"d,at,n,o\n2026-01-02,03:04:05,7,-\n", "d;at;n;o\n02.01.2026;03:04:05;7;\n",
		`{"d":"2026-01-02","at":"03:04:05","n":"7","o":"-"}`, "d,at,n,o\n2026-01-02,03:04:05,7,NULL\n",
		"d,at,n,o\n2026-01-02,03:04:05,7,nan\n"} {
		wantEntries(t, in, Options{Map: m}, want)
	}
	wantBad(t, "d,at,n,o\n2026-01-02,,7,\n2026-01-02,03:04:05,7,\n", Options{Map: m}, "log:2:1: ")
	wantBad(t, "d,n,o\n2026-01-02,7,\n", Options{Map: m}, `log:1:1: there is no column "at"`)
}

// Cached tokens beside the input are told with a mapping too, or by --cached-in-input.
func TestMappedCachedBeside(t *testing.T) {
	m := Mapping{"input_tokens": {"i"}, "cached_tokens": {"c"}, "model": {"m"}}
	const small, large = `{"m":"a","i":10,"c":4}`, `{"m":"a","i":10,"c":900}`
	for option, want := range map[string][2]string{"": {"in=10 cached=4", ""}, "yes": {"in=10 cached=4", ""}, "no": {"in=14 cached=4", ""}} {
		wantEntries(t, small, Options{Map: m, CachedInInput: option}, "model=a "+want[0])
	}
	info := wantEntries(t, small+"\n"+large, Options{Map: m}, "model=a in=10 cached=4", "model=a in=910 cached=900")
	wantNote(t, info, tokenusage.CacheAdded.String()+": 1")
	info = wantEntries(t, large, Options{Map: m, CachedInInput: "yes"}, "model=a in=10 cached=10")
	wantNote(t, info, tokenusage.CacheOver.String()+": 1")
	// A whole that holds all is as it was named.
	wantEntries(t, `{"i":10,"o":3,"r":9}`, Options{Map: Mapping{"input_tokens": {"i"}, "output_tokens": {"o"}, "reasoning_tokens": {"r"}}}, "in=10 out=12 reasoning=9")
}

// A usage of zeros is none, where there is text.
func TestUsageOfZeros(t *testing.T) {
	const zeros, text = `"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}`, `"timestamp":"2026-01-02T03:04:05Z","prompt":"p","response":"a"`
	const at = "490923h4m5s "
	info := wantEntries(t, "{"+text+","+zeros+"}", Options{}, at+`user:"p" reply="a" completion`)
	wantNote(t, info, noteZeroInput+": 1")
	wantNote(t, info, noteZeroOutput+": 1")
	wantEntries(t, "{"+text+`,"usage":{"prompt_tokens":7,"completion_tokens":0}}`, Options{}, at+`in=7 user:"p" reply="a" completion`)
	wantEntries(t, "{"+text+`,"usage":{"prompt_tokens":7,"completion_tokens":2}}`, Options{}, at+`in=7 out=2 user:"p" reply="a" completion`)
	wantEntries(t, `{"p":"p","i":0,"o":0}`, Options{Map: Mapping{"prompt": {"p"}, "input_tokens": {"i"}, "output_tokens": {"o"}}}, `user:"p" out=0 completion`)
	info = wantEntries(t, `{"i":0,"o":0}`, Options{Map: Mapping{"input_tokens": {"i"}, "output_tokens": {"o"}}}, "in=0 out=0")
	wantNote(t, info, noteAllZero+": 1")
	// A call that failed has zeros since it has no usage.
	wantEntries(t, `{"i":0,"o":0,"s":500}`, Options{Map: Mapping{"input_tokens": {"i"}, "output_tokens": {"o"}, "status": {"s"}}}, "in=0 out=0 failed")
}

// Counts that only add up over a session, and those of a session in one row, are said.
func TestSessionTotals(t *testing.T) {
	m := Mapping{"input_tokens": {"i"}, "output_tokens": {"o"}, "session": {"s"}}
	rows := func(output func(i int) int) string {
		var lines []string
		for i := range 12 {
			lines = append(lines, fmt.Sprintf(`{"s":"%d","i":%d,"o":%d}`, i%2, 100+50*i, output(i)))
		}
		return strings.Join(lines, "\n")
	}
	said := func(in string) bool {
		t.Helper()
		_, info := mustRead(t, in, Options{Map: m})
		return strings.Contains(strings.Join(info.Notes, "\n"), noteTotals)
	}
	if !said(rows(func(i int) int { return 10 + 7*i })) {
		t.Error("totals of a session so far are not said")
	}
	if said(rows(func(i int) int { return 10 + i*7%11 })) || said(rows(func(int) int { return 128 })) {
		t.Error("the growing prompts of a chat are said to be totals")
	}
	info := wantEntries(t, `{"i":5000000,"o":9}`, Options{Map: Mapping{"input_tokens": {"i"}, "output_tokens": {"o"}}}, "in=5000000 out=9")
	wantNote(t, info, noteManyTokens+": 1")
}

// A prompt that is split into counts is proposed as their sum, and one that is not is not.
func TestInspectProposesSums(t *testing.T) {
	line := func(usage string) string {
		return strings.Repeat(`{"ts":"2026-01-02T03:04:05Z","usage":`+usage+"}\n", 3)
	}
	for in, want := range map[string]string{
		line(`{"input_tokens":10,"cache_creation_input_tokens":300,"cache_read_input_tokens":900,"output_tokens":5}`): "input_tokens=usage.input_tokens+usage.cache_creation_input_tokens+usage.cache_read_input_tokens",
		line(`{"input_tokens":1000,"cache_read_input_tokens":9,"output_tokens":5}`):                                   "input_tokens=usage.input_tokens+usage.cache_read_input_tokens",
		line(`{"input_tokens":1000,"cache_read_input_tokens":9,"output_tokens":5,"total_tokens":1005}`):               "input_tokens=usage.input_tokens",
		line(`{"prompt_tokens":1000,"cached_tokens":9,"completion_tokens":5,"total_tokens":1005}`):                    "input_tokens=usage.prompt_tokens",
		line(`{"prompt_tokens":1000,"cached_tokens":9,"completion_tokens":5,"total_tokens":1014}`):                    "input_tokens=usage.prompt_tokens+usage.cached_tokens",
		line(`{"prompt_tokens":10,"cached_tokens":900,"completion_tokens":5}`):                                        "input_tokens=usage.prompt_tokens+usage.cached_tokens",
		"Date,Input (w/ Cache Write),Input (w/o Cache Write),Cache Read,Output Tokens,Total Tokens\n" +
			"2026-01-02T04:43:21.953Z,6335,0,115788,2021,124144\n2026-01-02T04:41:00.000Z,0,15183,39593,1767,56543\n": "input_tokens=Input (w/o Cache Write)+Input (w/ Cache Write)+Cache Read",
		"ts,uncached_tokens_in,cache_read_tokens,tokens_out\n2026-01-02T04:41:00Z,15183,93,1767\n": "input_tokens=uncached_tokens_in+cache_read_tokens",
	} {
		found, err := Inspect(textFiles(in), Options{})
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		flags := strings.Join(found.Flags, "\n")
		if !strings.Contains(flags+"\n", want+"\n") {
			t.Errorf("%s\nproposes\n%s\nwant %s", in, flags, want)
		}
	}
}
