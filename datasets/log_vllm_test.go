package datasets

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reprise/datasets/internal/fault"
)

// received is the line of a request with the given fields.
func received(prefix, id, fields string) string {
	return prefix + "Received request " + id + ": " + fields + "\n"
}

const vllmParams = "params: SamplingParams(n=1, temperature=1e-05, stop=['prompt: ', \"a]\"], max_tokens=64, min_tokens=0), "

// The lines of a request as the versions of vLLM wrote them.
func TestVLLMVersions(t *testing.T) {
	const short = "INFO 03-05 19:47:39 "
	for name, c := range map[string]struct{ in, want string }{
		"0.2": {received(short+"async_llm_engine.py:379] ", "cmpl-1-0", "prompt: 'p', prefix_pos: None,sampling_params: SamplingParams(n=1, temperature=0.5, max_tokens=64), prompt_token_ids: [1, 2], lora_request: None."),
			`user:"p" completion in=2 max=64 temperature=0.5`},
		"0.5": {received(short+"logger.py:36] ", "cmpl-1-0", "prompt: 'p', "+vllmParams+"prompt_token_ids: [1, 2], lora_request: LoRARequest(lora_name='a', lora_int_id=1, lora_path='x: [y'), prompt_adapter_request: None."),
			`adapter=a user:"p" completion in=2 max=64 temperature=1e-05`},
		"0.8": {received(short+"[logger.py:39] ", "chatcmpl-1", "prompt: \"it's\", "+vllmParams+"prompt_token_ids: None, lora_request: None, prompt_adapter_request: None."),
			`user:"it's" chat max=64 temperature=1e-05`},
		"0.10": {received("\x1b[1;36m(APIServer pid=7)\x1b[0;0m "+short+"[logger.py:41] ", "embd-1", "prompt: 'p', params: PoolingParams(dimensions=None), prompt_token_ids: [], prompt_embeds shape: torch.Size([3, 4]), lora_request: None."),
			`user:"p" embedding`},
		// As its ColoredFormatter writes on a terminal.
		"0.11": {received("\x1b[32mINFO\x1b[0m \x1b[90m03-05 19:47:39\x1b[0m \x1b[90m[entrypoints/logger.py:40]\x1b[0m ", "cmpl-1-0", "prompt: 'p', params: None, prompt_token_ids: [1, 2], lora_request: None."),
			`user:"p" completion in=2`},
		"details": {short + "[logger.py:40] Request resp-1 details: prompt: 'p', prompt_token_ids: [5], prompt_embeds shape: None.\n" +
			received(short+"[logger.py:47] ", "resp-1", vllmParams+"lora_request: None."),
			`user:"p" in=1 responses max=64 temperature=1e-05`},
		"without text": {received(short+"[logger.py:41] ", "x", "prompt: None, params: None, prompt_token_ids: [5, 6, 7], lora_request: None."), `in=3`},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := detectFormat([]byte(c.in))
			if err != nil || f.Name != "vllm-log" {
				t.Errorf("recognised as %q, %v", f.Name, err)
			}
			info := wantEntries(t, c.in, Options{}, "19075h47m39s "+c.want)
			wantNote(t, info, noteNoYear)
		})
	}
}

// Ends and outputs find their requests by id, in any order; the requests come in
// the order of their arrival.
func TestVLLMEnds(t *testing.T) {
	const p = "prompt: 'p', params: None, prompt_token_ids: None, lora_request: None."
	in := "INFO:     Started server process [1]\n" +
		received("INFO 03-05 19:47:39.250 [x] ", "a", p) +
		received("INFO 03-05 19:47:39.500 [x] ", "b", p) +
		received("INFO 03-05 19:47:39.750 [x] ", "c", p) +
		received("INFO 03-05 19:47:40.000 [x] ", "d", p) +
		received("INFO 03-05 19:47:40.000 [x] ", "e", p) +
		"INFO 03-05 19:47:41.000 [x] Finished request c.\n" +
		"INFO 03-05 19:47:41.500 [x] Aborted request b.\n" +
		"INFO 03-05 19:47:41.500 [x] Generated response d (streaming delta): output: 'Hi', output_token_ids: [1], finish_reason: None\n" +
		"INFO 03-05 19:47:41.500 [x] Generated response a: output: \"it's\", output_token_ids: [1, 2, 3], finish_reason: stop\n" +
		"INFO 03-05 19:47:42.000 [x] Generated response d (streaming complete): output: 'Hi', output_token_ids: None, finish_reason: streaming_complete\n" +
		"INFO 03-05 19:47:42.000 [x] Request e failed (bad request).\n" +
		"INFO 03-05 19:47:43.000 [x] Finished request unknown.\n" +
		"INFO 03-05 19:47:43.000 [x] Request e aborted.\n"
	info := wantEntries(t, in, Options{},
		`19075h47m39.25s user:"p" reply="it's" out=3 completion stop e2e=2.25s`,
		`19075h47m39.5s user:"p" completion cancelled e2e=2s`,
		`19075h47m39.75s user:"p" completion e2e=1.25s`,
		`19075h47m40s user:"p" reply="Hi" completion e2e=2s`, // the line's fraction tells that they are kept
		`19075h47m40s user:"p" completion failed e2e=2s`)
	wantNote(t, info, "lines that tell of no request were passed over: 4")
	// With debug lines the ids of an output come before its text, and prompts before requests.
	const debug, told = "(APIServer pid=1) DEBUG 03-05 19:47:39.5 [x:60] ", "(APIServer pid=1) INFO 03-05 19:47:39.5 [x:64] "
	newest := debug + "Request chatcmpl-1 details: prompt: 'p', prompt_token_ids: [1, 2], prompt_embeds shape: None.\n" +
		told + "Received request chatcmpl-1: params: SamplingParams(max_tokens=9), lora_request: None.\n" + debug + "Request N/A JSON body: {\"model\":\"m\"}\n" +
		debug + "Generated response chatcmpl-1 (streaming delta) details: output_token_ids: [5]\n" + debug + "Generated response chatcmpl-1 (streaming complete) details: output_token_ids: [5, 6, 7]\n" +
		"INFO 03-05 19:47:42.0 [x:64] Generated response chatcmpl-1 (streaming complete): output: 'Hi', finish_reason: streaming_complete\n"
	wantEntries(t, newest, Options{}, `19075h47m39.5s user:"p" reply="Hi" in=2 out=3 max=9 chat e2e=2.5s`)
	// An id that comes again belongs to the later request.
	again := received("INFO 03-05 19:47:39 [x] ", "a", p) + received("INFO 03-05 19:47:40 [x] ", "a", p) + "INFO 03-05 19:47:41 [x] Aborted request a.\n"
	wantEntries(t, again, Options{}, `19075h47m39s user:"p" completion`, `19075h47m40s user:"p" completion cancelled`)
}

// Without ends the requests are handed out all the same, and not all held.
func TestVLLMWindow(t *testing.T) {
	var log strings.Builder
	for i := range maxOpenRequests + 500 {
		log.WriteString(received("INFO 03-05 19:47:39 [x] ", fmt.Sprint(i), "prompt: None, params: None, prompt_token_ids: [1], lora_request: None."))
	}
	rows := newVLLMRows(newTestBuffer(strings.NewReader(log.String())), 0, new(fault.Notes))
	for i := range maxOpenRequests + 500 {
		r, err := rows.Next()
		if err != nil {
			t.Fatal(err)
		}
		if line, _ := r.Place(""); line != int64(i+1) || len(rows.queue) > maxOpenRequests ||
			len(rows.open) > maxOpenRequests {
			t.Fatalf("request %d is of line %d, %d are held", i, line, len(rows.queue))
		}
	}
}

// A request whose id comes again is not waited for.
func TestVLLMRepeatedID(t *testing.T) {
	again := received("INFO 03-05 19:47:39 [x] ", "a", "prompt: None, params: None, prompt_token_ids: [1], lora_request: None.")
	rows := newVLLMRows(newTestBuffer(strings.NewReader(strings.Repeat(again, 100))), 0, new(fault.Notes))
	if _, err := rows.Next(); err != nil || len(rows.queue) != 1 {
		t.Errorf("%d requests are held, %v", len(rows.queue), err)
	}
}

func TestVLLMDates(t *testing.T) {
	at := func(prefixes ...string) string {
		var d vllmDates
		var out []string
		for _, p := range prefixes {
			st, _, ok := d.find(p)
			if !ok {
				out = append(out, "none")
				continue
			}
			out = append(out, st.Time.Format("2006-01-02T15:04:05.999"))
		}
		return strings.Join(out, " ")
	}
	for _, c := range [][2]string{
		{at("INFO 03-05 19:47:39 "), "1972-03-05T19:47:39"},
		{at("INFO 02-29 19:47:39,125 "), "1972-02-29T19:47:39.125"},
		{at("INFO 12-31 23:59:59 ", "INFO 01-01 00:00:00 ", "INFO 12-31 23:59:59 ", "INFO 02-29 00:00:00 "),
			"1971-12-31T23:59:59 1972-01-01T00:00:00 1971-12-31T23:59:59 1972-02-29T00:00:00"},
		{at("INFO 06-30 23:59:59 ", "INFO 07-01 00:00:00 "), "1972-06-30T23:59:59 1972-07-01T00:00:00"},
		{at("2026-03-05 19:47:39,5 - vllm - INFO - "), "2026-03-05T19:47:39.5"},
		{at("2026-03-05T19:47:39.25+01:00 stdout F INFO 03-05 19:47:39 "), "2026-03-05T18:47:39.25"},
		{at("INFO 13-05 19:47:39 ", "INFO", "2026-13-05 19:47:39"), "none none none"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s, want %s", c[0], c[1])
		}
	}
	const p = "prompt: 'p', params: None, prompt_token_ids: None, lora_request: None."
	info := wantEntries(t, received("2026-01-02T03:04:05.5Z INFO 01-02 03:04:05 [x] ", "a", p), Options{}, `490923h4m5.5s user:"p" completion`)
	if len(info.Notes) != 1 || strings.Contains(strings.Join(info.Notes, " "), "1972") {
		t.Errorf("%q", info.Notes)
	}
}

// Cut prompts are bad, however the limit is known, unless their ids are whole.
func TestVLLMCutPrompts(t *testing.T) {
	const when = "INFO 03-05 19:47:39 [x] "
	prompt := func(n int, text string, ids int) string {
		list := "None"
		if ids > 0 {
			list = "[" + strings.Repeat("7, ", ids-1) + "7]"
		}
		literal := strings.Repeat(text, n/len(text)+1)[:n]
		return received(when, fmt.Sprint(n, text, ids)[:3], fmt.Sprintf("prompt: '%s', params: None, prompt_token_ids: %s, lora_request: None.", literal, list))
	}
	templated := func(text string) string {
		return received(when, text, fmt.Sprintf("prompt: '%s<|im_end|>assistant', params: None, prompt_token_ids: None, lora_request: None.", text))
	}
	for name, c := range map[string]struct {
		in   string
		bad  int64
		want []string
	}{
		"arguments": {when + "non-default args: {'max_log_len': 20, 'model': 'm'}\n" + prompt(20, "a", 0) + prompt(20, "b", 5) + prompt(19, "c", 0), 1, []string{"in=5", strings.Repeat("c", 19)}},
		"namespace": {when + "args: Namespace(max_log_len=20)\n" + prompt(20, "a", 20), 1, nil},
		"ids":       {prompt(20, "a", 20) + prompt(20, "b", 0) + prompt(20, "c", 19), 2, []string{"in=19"}},
		"alike":     {prompt(20, "a", 0) + prompt(20, "b", 0) + prompt(20, "c", 0) + prompt(5, "d", 0), 0, []string{"a", "b", "c", "ddddd"}},
		"no end":    {prompt(40, "a", 0) + prompt(40, "b", 0) + prompt(40, "c", 0) + templated("d") + templated("ef"), 3, []string{"d<|im_end|>", "ef<|im_end|>"}},
		"same end":  {templated("aa") + templated("bb") + templated("cc") + templated("d") + templated("e"), 0, []string{"aa<", "bb<", "cc<", "d<", "e<"}},
		"chance":    {prompt(20, "a", 0) + prompt(20, "b", 0) + prompt(20, "c", 0) + prompt(21, "d", 0), 0, []string{"a", "b", "c", "d"}},
		"repeated":  {prompt(20, "a", 0) + prompt(20, "a", 0) + prompt(20, "a", 0), 0, []string{"a", "a", "a"}},
		"no limit":  {when + "non-default args: {'max_log_len': None}\n" + prompt(20, "a", 0), 0, []string{"a"}},
		"short":     {prompt(3, "a", 3), 0, []string{"in=3"}},
	} {
		all, info, err := read(strings.NewReader(c.in), Options{Format: "vllm-log", MaxBad: 1})
		if err != nil || info.Bad != c.bad || len(all) != len(c.want) {
			t.Errorf("%s: %d entries, %+v, %v", name, len(all), info, err)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(summary(&all[i]), want) {
				t.Errorf("%s: %s, want %s", name, summary(&all[i]), want)
			}
		}
		for _, b := range info.FirstBad {
			if b.Reason != whyCutPrompt || b.Column != 25 {
				t.Errorf("%s: %v", name, b)
			}
		}
	}
}

func TestVLLMFaults(t *testing.T) {
	const when = "INFO 03-05 19:47:39 [x] "
	for in, want := range map[string]string{
		received(when, "a", vllmParams+"lora_request: None."):                                                     "log:1:25: " + whyNoPrompt,
		received(when, "a", "prompt: 'zqx and no end of it"):                                                      "log:1:25: " + whyCutLine,
		received(when, "a", "prompt: 'x', params: P(")[:60]:                                                       "log:1:25: unexpected end of file: the last line is not whole",
		"x\n" + received("[x] ", "a", "prompt: 'zqx', params: None, prompt_token_ids: None, lora_request: None."): "log:2:5: it has no time",
	} {
		wantBad(t, in, Options{Format: "vllm-log"}, want)
	}
}

func TestPyString(t *testing.T) {
	for in, want := range map[string]string{
		`'a' rest`: "a| rest", `"it's"`: "it's|", `'\'\"\\'`: `'"\|`, `'\n\r\t'`: "\n\r\t|",
		`'\xe9\u20ac\U0001f600'`: "é€😀|", `'\ud83d'`: "\uFFFD|", `'\Uffffffff'`: "\uFFFD|",
		`'\q'`: `\q|`, `'\x4'`: `\x4|`, `'\u12'`: `\u12|`, `'é'`: "é|", "'\xff'": "\uFFFD|",
		`'a`: "-", `'a\'`: "-", ``: "-", `a`: "-",
	} {
		text, rest, ok := pyString(in)
		got := text + "|" + rest
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What Python's repr writes of a text is read as that text.
func FuzzPyString(f *testing.F) {
	for _, s := range []string{"a", "it's", `"`, "\\n\n\t\r", "é€😀", "\x00\x1f\x7f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "?")
		var b strings.Builder
		b.WriteByte('\'')
		for _, r := range s {
			switch {
			case r == '\'' || r == '\\':
				b.WriteString(`\` + string(r))
			case r == '\n':
				b.WriteString(`\n`)
			case r < ' ' || r == 0x7f:
				fmt.Fprintf(&b, `\x%02x`, r)
			case r > 0xffff && r%2 == 0:
				fmt.Fprintf(&b, `\U%08x`, r)
			case r > 0x7f && r%2 == 0 && r < 0x10000:
				fmt.Fprintf(&b, `\u%04x`, r)
			default:
				b.WriteRune(r)
			}
		}
		b.WriteString("', rest")
		text, rest, ok := pyString(b.String())
		if !ok || text != s || rest != ", rest" {
			t.Fatalf("%q: %q %q %v", b.String(), text, rest, ok)
		}
	})
}

func FuzzVLLMLog(f *testing.F) {
	f.Add([]byte(logFixtures["vllm-log"]))
	f.Add([]byte(received("INFO 03-05 19:47:39 ", "MARK", "prompt: 'MARK\\x', MARK: [MARK, params: None, prompt_token_ids: [MARK]") + "MARK\nGenerated response MARK: output: 'MARK'"))
	f.Add([]byte("2026-01-02 03:04:05 Request a details: prompt: 'MARK'\n2026-01-02 03:04:05 Received request a: params: P(max_tokens=99999999999, temperature=--).\n2026-01-02 03:04:05 Request a aborted.\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		in = slices.DeleteFunc(in, func(b byte) bool { return b == 0 })
		fuzz(t, in, Options{Format: "vllm-log"})
	})
}
