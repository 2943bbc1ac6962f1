package engine

import (
	"fmt"
	"math"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"reprise/replay/openai"
	"reprise/trace/sample"
)

// What is said of lists of quirks and faults that cannot be read.
func TestWhatFaultListsSay(t *testing.T) {
	const share = "simulated engine: the share of fault %d is not a percentage from 0%% to 100%%"
	for _, row := range []struct{ imitate, quirks, faults, want string }{
		{"none", "", "", "simulated engine: unknown server to imitate: want one of vllm, llm-d, llama-server, ollama"},
		{"", "crlf=1", "", "simulated engine: quirk crlf: it takes no value"},
		{"", "choices=1", "", "simulated engine: quirk choices: its value is a number from 2 to 64"},
		{"", "stall=-1s", "", "simulated engine: quirk stall: its value is a duration of at most an hour, such as 5s"},
		{"", "", "reset:NaN%", fmt.Sprintf(share, 1)},
		{"", "cr,stall=2h", "", "simulated engine: quirk stall: its value is a duration of at most an hour, such as 5s"},
		{"", "error=600", "", "simulated engine: quirk error: its value is a number from 400 to 599"},
		{"", "error", "", "simulated engine: quirk error: its value is a number from 400 to 599"},
		{"", "retry-after", "", "simulated engine: quirk retry-after: its value is a number from 0 to 86400"},
		{"", "error-code=no", "", "simulated engine: quirk error-code: its value is one of number, string, null, empty"},
		{"", "usage-null=completions", "", "simulated engine: quirk usage-null: unknown value"},
		{"", "usage-zeros=chats", "", "simulated engine: quirk usage-zeros: unknown value"},
		{"", "finish-reason=" + strings.Repeat("a", 65), "",
			"simulated engine: quirk finish-reason: its value may only have a to z and _"},
		{"", "finish-reason=A", "", "simulated engine: quirk finish-reason: its value may only have a to z and _"},
		{"", "finish-reason", "", "simulated engine: quirk finish-reason: its value may only have a to z and _"},
		{"", "", "cut:1%,reset", "simulated engine: fault 2 has no share of requests: write it as error=503:5%"},
		{"", "", "cut:1", fmt.Sprintf(share, 1)},
		{"", "", "cut:-0.1%", fmt.Sprintf(share, 1)},
		{"", "", "cut:0%,cut:100%,cut:100.1%", fmt.Sprintf(share, 3)},
		{"", "", "cut:x%", fmt.Sprintf(share, 1)},
		{"", "", "cut:1%, :1%", "simulated engine: fault 2 has no name"},
		{"", "", "cut:1%,cut+error=9:1%", "simulated engine: fault 2: quirk error: its value is a number from 400 to 599"},
	} {
		if f, err := newFaults(row.imitate, row.quirks, row.faults, 1, true); err == nil || err.Error() != row.want {
			t.Errorf("%+v: got %v, %v", row, f, err)
		}
	}
	_, err := newFaults("", "crlf, none", "", 1, true)
	var names []string
	for _, q := range Quirks() {
		names = append(names, q.Name)
	}
	if want := "simulated engine: quirk 2 is unknown: want one of " + strings.Join(names, ", "); err == nil ||
		err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// What quirks make of the usual behaviour; of two that exclude each other the later holds.
func TestQuirksChangeTheBehaviour(t *testing.T) {
	for list, change := range map[string]func(*behaviour){
		"":                            func(*behaviour) {},
		" crlf , no-space":            func(m *behaviour) { m.frame = openai.Framing{EOL: "\r\n", NoSpace: true} },
		"crlf,cr":                     func(m *behaviour) { m.frame.EOL = "\r" },
		"refuse=1h,hang":              func(m *behaviour) { m.refuse, m.hang = time.Hour, true },
		"slow-headers=1ns":            func(m *behaviour) { m.drip, m.early = 1, true },
		"early-headers":               func(m *behaviour) { m.early = true },
		"early-headers,late-headers":  func(m *behaviour) {},
		"close-keep-alive":            func(m *behaviour) { m.shut = true },
		"error=400,retry-after=0":     func(m *behaviour) { m.status, m.retryAfter = 400, 1 },
		"error=599,retry-after=86400": func(m *behaviour) { m.status, m.retryAfter = 599, 86401 },
		"error-code":                  func(m *behaviour) {},
		"error-code=empty":            func(m *behaviour) { m.code = "empty" },
		"prompt-cut":                  func(m *behaviour) { m.cutPrompt = true },
		"prompt-cut=1":                func(m *behaviour) { m.cutPrompt, m.keepPrompt = true, 1 },
		"more-output":                 func(m *behaviour) { m.more = 1 },
		"multi-token-events":          func(m *behaviour) { m.perEvent = 4 },
		"multi-token-events=2":        func(m *behaviour) { m.perEvent = 2 },
		"tokens-without-event":        func(m *behaviour) { m.swallowed = 1 },
		"reasoning-only":              func(m *behaviour) { m.reasoning = 1 << 30 },
		"reasoning-only=0":            func(m *behaviour) { m.reasoning = 1 << 30 },
		"reasoning-only=1":            func(m *behaviour) { m.reasoning = 1 },
		"reasoning-field-name":        func(m *behaviour) { m.reasoningField = "reasoning" },
		"choices":                     func(m *behaviour) { m.choices = 2 },
		"choices=64":                  func(m *behaviour) { m.choices = 64 },
		"several-events-per-write":    func(m *behaviour) { m.perWrite = 2 },
		"split-writes":                func(m *behaviour) { m.perByte = 1 },
		"error-mid-stream":            func(m *behaviour) { m.errorThen = "done" },
		"finish-reason=" + strings.Repeat("_", 64):  func(m *behaviour) { m.finish = strings.Repeat("_", 64) },
		"usage-every-chunk,usage-zeros=completions": func(m *behaviour) { m.usage, m.usageOf = usageZeros, "completions" },
		"usage-zeros=completions,usage-null":        func(m *behaviour) { m.usage = usageNull },
		"done-twice":                                func(m *behaviour) { m.doneMarks = 2 },
		"done-twice,no-done":                        func(m *behaviour) { m.doneMarks = 0 },
	} {
		want := defaultBehaviour()
		change(&want)
		f, err := newFaults("", list, "", 0, false)
		if err != nil || !reflect.DeepEqual(f.base, want) {
			t.Errorf("%s: got %+v, %v; want %+v", list, f, err, want)
		}
	}
	usual := behaviour{
		ofRequest: ofRequest{code: "number"},
		ofChunks:  ofChunks{perEvent: 1, choices: 1, reasoningField: "reasoning_content"},
		ofBytes:   ofBytes{perWrite: 1},
		ofEnd:     ofEnd{doneMarks: 1},
	}
	if got := defaultBehaviour(); !reflect.DeepEqual(got, usual) {
		t.Errorf("the usual behaviour is %+v", got)
	}
}

// An imitation's quirks come first, the server's own next, then those drawn, and those that
// the request asks for last. Nothing of one request is left for the next.
func TestWhichQuirkHolds(t *testing.T) {
	f, err := newFaults("ollama", "usage-null,crlf", "cr:100%,choices=3+crlf:100%,choices=9:0%", 7, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ header, want string }{
		{"", "3 \"\\r\\n\" true true 1 ollama's"},
		{"choices=5,cr", "5 \"\\r\" true true 1 ollama's"},
		{"usage-zeros", "3 \"\\r\\n\" true true 2 ollama's"},
		{"", "3 \"\\r\\n\" true true 1 ollama's"},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		if row.header != "" {
			r.Header.Set(FaultHeader, row.header)
		}
		m, err := f.behaviourFor(r, 1)
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		if m.id == "chatcmpl-379" {
			name = "ollama's"
		}
		if got := fmt.Sprintf("%d %q %v %v %d %s", m.choices, m.frame.EOL, m.cutPrompt, m.localOnly, m.usage,
			name); got != row.want {
			t.Errorf("%q: got %s, want %s", row.header, got, row.want)
		}
	}
	if f.base.choices != 1 || f.base.frame.EOL != "\r\n" {
		t.Errorf("the server's own behaviour changed: %+v", f.base)
	}
	if f.quirkList != "usage-null,crlf" || f.randomList != "cr:100%,choices=3+crlf:100%,choices=9:0%" ||
		f.seed != 7 || !f.header {
		t.Errorf("kept are %+v", f)
	}
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set(FaultHeader, "none")
	if m, err := f.behaviourFor(r, 1); m != nil || err == nil ||
		!strings.HasPrefix(err.Error(), "X-Reprise-Fault: quirk 1 is unknown") {
		t.Errorf("%v, %v", m, err)
	}
}

// A share is a threshold of 2^53, and draws are even below that. The draw for an item of a
// request is the item's output of SplitMix64, begun at the request's output of that begun
// at the seed: every version strikes the same requests.
func TestSharesAndDraws(t *testing.T) {
	for list, want := range map[string]uint64{"cut:100%": 1 << 53, "cut:0%": 0, "cut:25%": 1 << 51, "cut: 50 %": 0,
		"cut:50%": 1 << 52} {
		got, err := parseFaults(list)
		if list == "cut: 50 %" { // a number ends at its sign
			if err == nil {
				t.Errorf("%s is taken", list)
			}
			continue
		}
		if err != nil || len(got) != 1 || got[0].threshold != want {
			t.Errorf("%s: %+v, %v; want %d", list, got, err, want)
		}
	}
	seen := map[uint64]bool{}
	sum := 0.0
	for seed := range uint64(20) {
		for request := range uint64(20) {
			for item := range uint64(20) {
				v := draw(seed, request, item)
				if want := nthOutput(nthOutput(seed, request), item) >> 11; v != want {
					t.Fatalf("item %d of request %d under seed %d is %d, want %d", item, request, seed, v, want)
				}
				seen[v] = true
				sum += float64(v) / (1 << 53)
			}
		}
	}
	if mean := sum / 8000; len(seen) != 8000 || math.Abs(mean-0.5) > 0.015 {
		t.Errorf("%d different draws of 8,000, %.3f on average", len(seen), mean)
	}
}

// nthOutput is the n-th number, from 0, of SplitMix64 begun at a state.
func nthOutput(state, n uint64) uint64 {
	for range n + 1 {
		state += 0x9e3779b97f4a7c15
	}
	return sample.Mix64(state)
}

// An error's body, by its status and what the server's quirks make of it.
func TestErrorBodies(t *testing.T) {
	for _, row := range []struct {
		quirks string
		status int
		retry  string
		body   string
	}{
		{"", 400, "", `{"error":{"message":"x","type":"BadRequestError","param":null,"code":400}}`},
		{"", 404, "", `{"error":{"message":"x","type":"NotFoundError","param":null,"code":404}}`},
		{"", 429, "", `{"error":{"message":"x","type":"RateLimitError","param":null,"code":429}}`},
		{"", 499, "", `{"error":{"message":"x","type":"BadRequestError","param":null,"code":499}}`},
		{"", 500, "", `{"error":{"message":"x","type":"InternalServerError","param":null,"code":500}}`},
		{"", 403, "", ``},
		{"retry-after=5", 429, "5", `{"error":{"message":"x","type":"RateLimitError","param":null,"code":429}}`},
		{"retry-after=0", 503, "0", `{"error":{"message":"x","type":"InternalServerError","param":null,"code":503}}`},
		{"retry-after=5", 500, "", `{"error":{"message":"x","type":"InternalServerError","param":null,"code":500}}`},
		{"retry-after=5,error-code=empty", 503, "5", ``},
		{"error-code=string", 400, "", `{"error":{"message":"x","type":"BadRequestError","param":null,"code":"error_400"}}`},
		{"error-code=null", 400, "", `{"error":{"message":"x","type":"BadRequestError","param":null,"code":null}}`},
	} {
		f, err := newFaults("", row.quirks, "", 0, false)
		if err != nil {
			t.Fatal(err)
		}
		behaviours := []*behaviour{&f.base}
		if row.quirks == "" {
			behaviours = append(behaviours, nil)
		}
		for _, m := range behaviours {
			w := httptest.NewRecorder()
			refuse(w, httptest.NewRequest("POST", openai.ChatPath, nil), m, row.status, fmt.Errorf("x"))
			kind := "application/json"
			if row.body == "" {
				kind = ""
			}
			if w.Code != row.status || w.Header().Get("Retry-After") != row.retry ||
				strings.TrimSpace(w.Body.String()) != row.body || w.Header().Get("Content-Type") != kind {
				t.Errorf("%s: %d %v %s", row.quirks, w.Code, w.Header(), w.Body)
			}
		}
	}
}

// Under the Messages API the bodies of refusals are Anthropic's, and the client reads its
// class and type from them.
func TestRefusalsOfMessages(t *testing.T) {
	for status, want := range map[int]string{
		400: "bad_request invalid_request_error", 404: "not_found not_found_error", 413: "too_long request_too_large",
		429: "rate_limited rate_limit_error", 500: "server_error api_error", 529: "unavailable overloaded_error",
	} {
		w := httptest.NewRecorder()
		refuse(w, httptest.NewRequest("POST", openai.MessagesPath, nil), nil, status, fmt.Errorf("x"))
		e := openai.HTTPError(w.Code, w.Body.Bytes())
		kind, named, _ := strings.Cut(want, " ")
		if body := `{"type":"error","error":{"type":"` + named + `","message":"x"}}`; e.Kind != kind ||
			e.Type != named || w.Body.String() != body {
			t.Errorf("%d: %v of %s, want %s", status, e, w.Body, want)
		}
	}
}
