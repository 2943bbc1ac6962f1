package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/anonymize/audit"
	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// Numbers that are planted: two lengths, and an instant with odd nanoseconds after
// the first.
const (
	canaryInput   = 104729
	canaryOutput  = 131071
	canaryInstant = 37123456789
)

// A canaryLog is a log with planted strings in many places.
type canaryLog struct {
	name    string
	args    []string
	text    string
	partner bool // it has requests enough for a release
	audited bool
}

// canarySource hands out planted strings, each for one place.
type canarySource struct {
	planted []string
	next    int
}

func newCanaries(n int) *canarySource {
	rng := rand.New(rand.NewPCG(64, 26))
	c := &canarySource{}
	for range n {
		b := make([]byte, 26)
		for i := range b {
			b[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[rng.IntN(32)]
		}
		c.planted = append(c.planted, string(b))
	}
	return c
}

func (c *canarySource) take() string {
	c.next++
	return c.planted[(c.next-1)%len(c.planted)]
}

func canaryJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

type object = map[string]any

// logs are small logs of several formats. Names that many users share, such as a
// model, are planted in all rows; the rest is in a few.
func (c *canarySource) logs() []canaryLog {
	return []canaryLog{c.litellm(), c.mapped(), c.sharegpt(), c.batch(), c.otel(), c.mooncake(), c.vllm()}
}

func (c *canarySource) litellm() canaryLog {
	var b strings.Builder
	model, system := "acme/"+c.take(), "You help the customers of "+c.take()+". "+strings.Repeat("Be kind and brief. ", 60)
	for i := range 400 {
		user := fmt.Sprintf("user-%d", i%25)
		r := object{"id": fmt.Sprint("r", i), "call_type": "acompletion", "startTime": 1767323045.5 + float64(i),
			"endTime":       1767323047.5 + float64(i),
			"prompt_tokens": 300, "completion_tokens": 20, "model": model, "end_user": user, "session_id": fmt.Sprint("s", i%60),
			"messages": []object{{"role": "system", "content": system},
				{"role": "user", "content": fmt.Sprintf("question %d of %s", i%9, user)}},
			"response": object{"choices": []object{{"message": object{"role": "assistant", "content": "an answer"},
				"finish_reason": "stop"}}}}
		switch i {
		case 7:
			r["end_user"] = c.take()
		case 8:
			r["session_id"] = c.take()
		case 9:
			r["model"] = c.take()
		case 10:
			r["model_id"], r["api_base"] = c.take(), "https://"+c.take()+".example/v1"
		case 11:
			r["messages"] = []object{{"role": "user", "content": "my password is " + c.take()}}
		case 12:
			r["response"] = object{"choices": []object{{"message": object{"role": "assistant",
				"content": "so it is " + c.take()}, "finish_reason": c.take()}}}
		case 13:
			r["metadata"] = object{"headers": object{"authorization": "Bearer " + c.take()}, "note": c.take(),
				"status": c.take()}
			r["api_key"] = c.take()
		case 14:
			r["messages"] = []object{{"role": "user", "content": "call it"},
				{"role": "assistant", "content": nil, "tool_calls": []object{{"id": c.take(), "type": "function",
					"function": object{"name": c.take(), "arguments": `{"q":"` + c.take() + `"}`}}}},
				{"role": "tool", "tool_call_id": "x", "name": c.take(), "content": c.take()}}
		case 15:
			r["proxy_server_request"] = object{"tools": []object{{"type": "function",
				"function": object{"name": c.take(), "description": c.take(), "parameters": object{c.take(): object{}}}}}}
		case 16:
			r["call_type"], r["status"] = "acompletion", c.take()
		case 17:
			r[c.take()] = c.take() // a field that nobody knows
		case 18:
			r["prompt_tokens"] = c.take() // not a number
		case 19:
			r["startTime"] = c.take() // not a time
		}
		b.WriteString(canaryJSON(r))
	}
	b.WriteString(`{"id":"` + c.take() + `","messages":` + "\n") // malformed
	b.WriteString(c.take() + "\n")
	return canaryLog{name: "litellm", args: []string{"--max-bad", "0.2"}, text: b.String(), audited: true}
}

func (c *canarySource) mapped() canaryLog {
	var b strings.Builder
	class := c.take()
	for i := range 4000 { // enough for a release
		r := object{"ts": 1767323045000000000 + int64(i)*1e9 + 1, "who": fmt.Sprintf("u%d", i%30),
			"talk": fmt.Sprintf("t%d", i%90), "in": 100 + i%40, "out": 20 + i%9, "prio": class}
		switch i {
		case 3:
			r["who"] = c.take() + "@example.org"
		case 4:
			r["talk"] = c.take()
		case 5:
			r["lora"] = c.take()
		case 6:
			r["salt"] = c.take()
		case 7:
			r["prio"] = c.take()
		case 8:
			r["kind"], r["end"] = c.take(), c.take()
		case 20:
			r["in"], r["out"] = canaryInput, canaryOutput
		case 37:
			r["ts"] = 1767323045000000000 + 1 + int64(canaryInstant)
		case 38:
			r["in"] = c.take()
		}
		b.WriteString(canaryJSON(r))
	}
	return canaryLog{name: "mapped", text: b.String(), partner: true, audited: true,
		args: []string{"--max-bad", "0.2", "--time-unit", "ns", "--map", "time=ts", "--map", "user=who", "--map",
			"session=talk",
			"--map", "input_tokens=in", "--map", "output_tokens=out", "--map", "class=prio", "--map", "adapter=lora",
			"--map", "salt=salt", "--map", "kind=kind", "--map", "finish_reason=end"}}
}

func (c *canarySource) sharegpt() canaryLog {
	var all []object
	for i := range 30 {
		all = append(all, object{"id": fmt.Sprint("c", i),
			"conversations": []object{{"from": "human", "value": fmt.Sprint("hello ", i)}, {"from": "gpt", "value": "hi"}}})
	}
	all[3] = object{"id": c.take(), "conversations": []object{{"from": "human", "value": "tell " + c.take()},
		{"from": "gpt", "value": "told " + c.take()}}}
	all[4]["conversations"] = []object{{"from": c.take(), "value": c.take()}}
	return canaryLog{name: "sharegpt", args: []string{"--arrivals", "poisson:2", "--max-bad", "0.5"},
		text: canaryJSON(all)}
}

func (c *canarySource) batch() canaryLog {
	var b strings.Builder
	for i := range 20 {
		b.WriteString(canaryJSON(object{"custom_id": fmt.Sprint(c.take(), i), "method": "POST",
			"url": "/v1/chat/completions", "body": object{"model": c.planted[1],
				"messages": []object{{"role": "user", "content": fmt.Sprint("hello ", i, c.planted[2])}},
				"user":     c.planted[3], "metadata": object{"k": c.planted[4]}, "max_tokens": 5}}))
	}
	return canaryLog{name: "batch", args: []string{"--arrivals", "poisson:2"}, text: b.String()}
}

func (c *canarySource) otel() canaryLog {
	var b strings.Builder
	for i := range 20 {
		b.WriteString(canaryJSON(object{"name": c.take(), "startTimeUnixNano": 1767323046000000001 + int64(i)*1e9,
			"attributes": object{"gen_ai.usage.prompt_tokens": 5,
				"gen_ai.usage.completion_tokens": 3, "gen_ai.request.model": c.planted[5], "enduser.id": c.planted[6],
				"gen_ai.conversation.id": c.planted[7], "http.request.header.cookie": c.planted[8]}}))
	}
	return canaryLog{name: "otel", text: b.String()}
}

func (c *canarySource) mooncake() canaryLog {
	var b strings.Builder
	for i := range 200 {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": 600, "output_length": 5, "hash_ids": [1, %d], "note": %q}`+"\n", i*100, i+2, c.planted[i%len(c.planted)])
	}
	return canaryLog{name: "mooncake", text: b.String()}
}

func (c *canarySource) vllm() canaryLog {
	var b strings.Builder
	for i := range 10 {
		fmt.Fprintf(&b, "INFO 08-12 10:11:%02d [logger.py:39] Received request chatcmpl-%s: prompt: 'He said: %s', params: SamplingParams(n=1, temperature=0.5, max_tokens=100), prompt_token_ids: [1, 2, 3], prompt_embeds shape: None, lora_request: None.\n",
			12+i, c.planted[i], c.planted[20+i])
	}
	return canaryLog{name: "vllm", text: b.String()}
}

// A sinkDir is where the commands of a test run, as processes of their own.
type sinkDir struct {
	t        *testing.T
	dir, tmp string
	printed  bytes.Buffer // by commands, but for lines that name the log's file
	secret   string       // in the names of the logs
}

func (s *sinkDir) command(args ...string) string {
	s.t.Helper()
	cmd := child(s.t, args...)
	cmd.Dir = s.dir
	cmd.Env = append(cmd.Env, "TMPDIR="+s.tmp, "HOME="+s.tmp)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); err != nil && !(code == cli.Untrusted && args[0] == "replay") {
		s.t.Fatalf("reprise %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	// Messages to the operator name the file of a bad row, as they must.
	s.printed.WriteString(strings.ReplaceAll(out.String()+errs.String(), s.secret, "LOG"))
	return out.String()
}

// scan looks through all that the commands left.
func (s *sinkDir) scan(scanner *audit.Scanner) audit.Hits {
	s.t.Helper()
	var h audit.Hits
	if err := scanner.Bytes(&h, "what was printed", bytes.NewReader(s.printed.Bytes())); err != nil {
		s.t.Fatal(err)
	}
	for _, dir := range []string{s.dir, s.tmp} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if err := scanner.Bytes(&h, "a file's name", strings.NewReader(d.Name())); err != nil || d.IsDir() {
				return err
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			info, err := d.Info()
			if err != nil {
				return err
			}
			var one audit.Hits
			err = scanner.File(&one, file, info.Size())
			for i := range one.Strings {
				if h.Strings == nil {
					h.Strings = map[int]bool{}
				}
				h.Strings[i] = true
			}
			for _, w := range one.Where {
				h.Where = append(h.Where, d.Name()+": "+w)
			}
			h.Bytes += one.Bytes
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return h
}

// No planted string comes out of any command by any way: outputs, messages,
// temporary files.
func TestNoCanaryComesOut(t *testing.T) {
	long(t)
	c := newCanaries(64)
	logs := c.logs()
	if c.next < 64 {
		t.Fatalf("%d places for 64 strings", c.next)
	}
	scanner, err := audit.NewScanner(c.planted)
	if err != nil {
		t.Fatal(err)
	}
	var in audit.Hits
	for _, log := range logs {
		if err := scanner.Bytes(&in, "logs", strings.NewReader(log.text)); err != nil {
			t.Fatal(err)
		}
	}
	if len(in.Strings) != 64 {
		t.Fatalf("%d of 64 strings are in the logs", len(in.Strings))
	}

	source, fileName := t.TempDir(), "LOG-"+c.planted[63]
	s := &sinkDir{t: t, dir: t.TempDir(), tmp: t.TempDir(), secret: fileName}
	for _, log := range logs {
		path := filepath.Join(source, fileName+"-"+log.name)
		if err := os.WriteFile(path, []byte(log.text), 0o600); err != nil {
			t.Fatal(err)
		}
		house := log.name + ".parquet"
		s.command(append([]string{"import", path, "--block-size", "16", "-o", house}, log.args...)...)
		s.derive(house)
		if log.partner {
			partner := log.name + "-partner.parquet"
			s.command(append([]string{"import", path, "--block-size", "16", "--tier", "partner", "--unit",
				"request", "--epsilon", "50", "--i-understand", "--max-input", "4096", "--max-output", "1024",
				"--capture-begin", "2026-01-02T03:00:00Z", "--capture-end", "2026-01-02T05:00:00Z", "--ledger",
				"l.jsonl", "-o", partner}, log.args...)...)
			s.derive(partner)
		}
		if log.audited {
			s.command(append([]string{"audit", house, "--source", path, "--block-size", "16", "-o",
				log.name + ".audit.json"}, log.args...)...)
		}
	}
	s.replayed("litellm.parquet.w.parquet")
	h := s.scan(scanner)
	if len(h.Strings) > 0 {
		t.Errorf("%d planted strings came out: %v", len(h.Strings), h.Where)
	}
	if h.Bytes < 1<<20 {
		t.Errorf("only %d bytes were looked through", h.Bytes)
	}
	if left, err := os.ReadDir(s.tmp); err != nil || len(left) > 0 {
		t.Errorf("%d files are left in the temporary directory, %v", len(left), err)
	}
	s.plantEach(scanner, c.planted)
	s.numbers()
}

// derive makes of a trace all that is made of traces.
func (s *sinkDir) derive(trace string) {
	s.t.Helper()
	s.command("profile", trace, "--json", "--html", trace+".html", "--histograms", trace+".h.parquet", "--tables",
		trace+".t.parquet", "-o", trace+".json")
	s.command("synth", "fit", trace, "--k-swap", "2", "-o", trace+".m.parquet")
	s.command("synth", trace+".m.parquet", "-n", "20", "-o", trace+".w.parquet")
	s.command("export", trace, "--to", "inference-perf", "-o", trace+".csv")
	s.command("anonymize", "--card", trace)
}

// replayed plays a workload against a simulated endpoint and reports on it.
func (s *sinkDir) replayed(workload string) {
	s.t.Helper()
	serve := child(s.t, "serve", "--listen", "127.0.0.1:0", "--costs", "step=0s")
	serve.Dir, serve.Env = s.dir, append(serve.Env, "TMPDIR="+s.tmp)
	said, err := serve.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		s.t.Fatal(err)
	}
	url := ""
	lines := bufio.NewScanner(said)
	for url == "" && lines.Scan() {
		if at := strings.Index(lines.Text(), "http://"); at >= 0 {
			url, _, _ = strings.Cut(lines.Text()[at:], " ")
		}
		fmt.Fprintln(&s.printed, lines.Text())
	}
	busy := "max-lag=off,max-lag-p50=off,max-lag-drift=off,max-stall-ttft=off,max-stall-gap=off" // as this machine may be
	s.command("replay", workload, "--url", strings.TrimRight(url, ".,;/"), "--speed", "10000", "-o", "r.parquet",
		"--trust", busy)
	if err := serve.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	for lines.Scan() {
		fmt.Fprintln(&s.printed, lines.Text())
	}
	_ = serve.Wait()
	s.command("report", "r.parquet", "--html", "r.html", "--json", "--trust", busy)
}

// plantEach writes every string into every kind of sink, and the scan finds all of
// them each time.
func (s *sinkDir) plantEach(scanner *audit.Scanner, planted []string) {
	s.t.Helper()
	type leaky struct {
		Value string `parquet:"value"`
		Dict  string `parquet:"dict,dict"`
	}
	table := func(row func(i int) leaky, opts ...parquet.WriterOption) func(path string) error {
		return func(path string) error {
			var b bytes.Buffer
			w := parquet.NewGenericWriter[leaky](&b, append(trace.WriterOptions(), opts...)...)
			rows := make([]leaky, len(planted))
			for i := range rows {
				rows[i] = row(i)
			}
			if _, err := w.Write(rows); err != nil {
				return err
			}
			if err := w.Close(); err != nil {
				return err
			}
			return os.WriteFile(path, b.Bytes(), 0o600)
		}
	}
	file := func(text string) func(path string) error {
		return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
	}
	all := strings.Join(planted, "\n")
	for name, sink := range map[string]struct {
		path  string
		plant func(path string) error
	}{
		"an output":        {filepath.Join(s.dir, "leak.json"), file(strings.ToLower(all))},
		"a temporary file": {filepath.Join(s.tmp, "leak"), file(all)},
		"a Parquet column": {filepath.Join(s.dir, "leak.parquet"),
			table(func(i int) leaky { return leaky{Value: planted[i]} })},
		"a dictionary page": {filepath.Join(s.dir, "leak.parquet"),
			table(func(i int) leaky { return leaky{Dict: planted[i]} })},
		"footer metadata": {filepath.Join(s.dir, "leak.parquet"),
			table(func(int) leaky { return leaky{} }, parquet.KeyValueMetadata("note", all))},
	} {
		if err := sink.plant(sink.path); err != nil {
			s.t.Fatal(err)
		}
		if h := s.scan(scanner); len(h.Strings) != len(planted) {
			s.t.Errorf("%s: %d of %d planted strings are found", name, len(h.Strings), len(planted))
		}
		if err := os.Remove(sink.path); err != nil {
			s.t.Fatal(err)
		}
	}
	kept := s.printed.Len()
	s.printed.WriteString(all)
	if h := s.scan(scanner); len(h.Strings) != len(planted) {
		s.t.Errorf("what was printed: %d of %d planted strings are found", len(h.Strings), len(planted))
	}
	s.printed.Truncate(kept)
}

// numbers looks for the planted numbers: tier internal keeps them, and tier partner
// has none of them in whatever was made of it.
func (s *sinkDir) numbers() {
	s.t.Helper()
	file := filepath.Join(s.tmp, "numbers")
	planted := fmt.Sprintf("%d\n%d\n%d\n", canaryInput, canaryOutput, canaryInstant)
	if err := os.WriteFile(file, []byte(planted), 0o600); err != nil {
		s.t.Fatal(err)
	}
	judge := func(name string) (found int, failed bool) {
		var r audit.Result
		out := s.command("audit", name, "--canaries", file, "--only", "numbers", "--json")
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			s.t.Fatal(err)
		}
		n, _ := r.Findings[0].Figures["found"].(float64)
		return int(n), r.Failed()
	}
	if n, failed := judge("mapped.parquet"); n != 3 || failed {
		s.t.Errorf("%d of 3 numbers are in the trace of tier internal", n)
	}
	outputs, err := filepath.Glob(filepath.Join(s.dir, "mapped-partner*"))
	if err != nil || len(outputs) < 6 {
		s.t.Fatalf("%v, %v", outputs, err)
	}
	for _, path := range outputs {
		if slices.Contains([]string{".html", ".csv"}, filepath.Ext(path)) {
			continue // neither holds numbers as values
		}
		if n, failed := judge(filepath.Base(path)); n > 0 || failed {
			s.t.Errorf("%s: %d planted numbers", filepath.Base(path), n)
		}
	}
}
