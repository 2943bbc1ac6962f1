package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/anonymize/audit"
	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

var (
	recordingAt = regexp.MustCompile(`recording (https?://[0-9.:]+)`)
	adminAt     = regexp.MustCompile(`profile so far at (http://\S+/)`)
)

// recordWhile runs record while do sends requests to it, and returns what it printed.
func recordWhile(t *testing.T, args []string, do func(url, admin string)) (stdout, stderr string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	begun := make(chan [2]string, 1)
	said := &watch{want: "; stop it with Ctrl-C"}
	said.then = func() {
		at := [2]string{recordingAt.FindStringSubmatch(said.buf.String())[1]}
		if admin := adminAt.FindStringSubmatch(said.buf.String()); admin != nil {
			at[1] = admin[1]
		}
		select {
		case begun <- at:
		default:
		}
	}
	var out bytes.Buffer
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, strings.NewReader(""), &out, said) }()
	select {
	case at := <-begun:
		do(at[0], at[1])
		stop()
	case code := <-done:
		t.Fatalf("reprise %v: exit code %d\n%s", args, code, said.buf.String())
	}
	if code := <-done; code != cli.Good {
		t.Errorf("reprise %v: exit code %d\n%s", args, code, said.buf.String())
	}
	return out.String(), said.buf.String()
}

// runRecord runs an example: it records one request.
func runRecord(t *testing.T, args string) {
	recordWhile(t, strings.Fields(args), func(url, _ string) {
		send(t, url+"/v1/completions", `{"prompt":"Once upon a time","max_tokens":2}`)
	})
}

func send(t *testing.T, url, body string) string {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+plantedKey)
	req.Header.Set("X-Session-Id", plantedSession)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// Strings that nothing may write.
const (
	plantedKey     = "sk-planted-0f3a91"
	plantedPrompt  = "the zanzibar ledger of Ottoline Quill"
	plantedSession = "session-of-quill-77"
	plantedModel   = "model-quill"
)

// Traffic is recorded and becomes a trace that profiles and replays, and neither a file
// nor a message has any of the text, the credentials or the names that passed.
func TestRecord(t *testing.T) {
	t.Chdir(t.TempDir())
	engine := simulate(t)
	stdout, stderr := recordWhile(t, strings.Fields("record --listen 127.0.0.1:0 -o traces --block-size 16 --upstream "+engine), func(url, _ string) {
		for _, stream := range []string{"true", "false"} {
			if answer := send(t, url+"/v1/chat/completions", `{"model":"`+plantedModel+`","stream":`+stream+`,"max_tokens":4,"user":"`+plantedSession+`","messages":[{"role":"user","content":"`+strings.Repeat(plantedPrompt+" ", 20)+`"}]}`); !strings.Contains(answer, "choices") {
				t.Error(answer)
			}
		}
		send(t, url+"/v1/chat/completions", `{"messages":"`+plantedPrompt+`"}`)
		if resp, err := http.Get(url + "/v1/models"); err == nil {
			resp.Body.Close()
		}
	})
	stdout = regexp.MustCompile(`in \d+s`).ReplaceAllString(stdout, "in 1s")
	if want := "2 requests recorded in 1s to traces\n  1 request to other paths, passed on\n  1 request not recorded: the body is no request of its API\nMake a trace of them:  reprise merge --finish traces -o t.parquet\n"; stdout != want {
		t.Errorf("got  %swant %s", stdout, want)
	}
	_, merged, _ := reprise(t, "merge", "--finish", "traces", "-o", "t.parquet")
	for _, want := range []string{"2 requests from 1 file: ", "capture declared: ", "warning: 1 request of 3 passed and was not recorded"} {
		if !strings.Contains(merged, want) {
			t.Errorf("merge does not say %q:\n%s", want, merged)
		}
	}
	profiled := must(t, "profile", "t.parquet")
	in, err := trace.Open("t.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := in.Reader()
	rows := rowsOf(t, r, err)
	if len(rows) != 2 || rows[0].TTFTNS == nil || rows[1].TTFTNS != nil || *rows[1].Session != 0 || rows[1].Category != trace.Continuation || rows[1].Model != "model-0" {
		t.Errorf("%+v", rows)
	}
	if !in.Meta.Capture.Declared() || in.Meta.SourceFormat != "record" || in.Meta.Tokenizer != "o200k_base" {
		t.Errorf("%+v", in.Meta)
	}
	files, err := filepath.Glob("*/*")
	if err != nil {
		t.Fatal(err)
	}
	said := stdout + stderr + merged + profiled
	for _, name := range append(files, "t.parquet", "t.privacy.json") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		said += string(text)
	}
	for _, secret := range []string{plantedKey, "zanzibar", "Quill", plantedSession, plantedModel} {
		if strings.Contains(said, secret) {
			t.Errorf("%q was written", secret)
		}
	}
}

// Of strings planted in every place of requests and answers, none is in a file, the
// journal among them, or a message; nor is one of a header or a query with the candidate.
func TestRecordKeepsNoCanary(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	c := newCanaries(64)
	scanner, err := audit.NewScanner(c.planted)
	if err != nil {
		t.Fatal(err)
	}
	var headers []string // what the candidate must not get
	plant := func() string { headers = append(headers, c.take()); return headers[len(headers)-1] }
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Request-Id", c.take())
		w.Header().Set("Set-Cookie", c.take())
		usage := object{"prompt_tokens": 40, "completion_tokens": 9, "input_tokens": 40, "output_tokens": 9, c.take(): 3}
		message := object{"role": "assistant", "content": "so it is " + c.take(), "reasoning_content": c.take(), "tool_calls": []object{{"id": c.take(), "type": "function", "function": object{"name": c.take(), "arguments": c.take()}}}}
		answer := object{"id": c.take(), "model": c.take(), "system_fingerprint": c.take(), "choices": []object{{"message": message, "finish_reason": c.take()}}, "usage": usage}
		switch {
		case strings.HasSuffix(r.URL.Path, "/responses"):
			answer = object{"id": "resp-" + c.take(), "status": "completed", "output": []object{{"type": "message", "role": "assistant", "content": []object{{"type": "output_text", "text": c.take()}}}}, "usage": usage}
		case strings.HasSuffix(r.URL.Path, "/messages"):
			answer = object{"type": "message", "id": c.take(), "content": []object{{"type": "text", "text": c.take()}, {"type": "tool_use", "id": c.take(), "name": c.take(), "input": object{c.take(): c.take()}}}, "stop_reason": c.take(), "usage": usage}
		case strings.HasSuffix(r.URL.Path, "/embeddings"):
			w.WriteHeader(http.StatusBadRequest)
			answer = object{"error": object{"message": c.take(), "type": c.take(), "param": c.take(), "code": c.take()}}
		}
		io.WriteString(w, canaryJSON(answer))
	}))
	defer engine.Close()
	var mu sync.Mutex
	var shadowed strings.Builder
	candidate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(&shadowed, r.URL, r.Header)
	}))
	defer candidate.Close()
	hits := audit.Hits{Strings: map[int]bool{}}
	scan := func(name string) {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err == nil {
			err = scanner.File(&hits, f, info.Size())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var journals []string
	stdout, stderr := recordWhile(t, strings.Fields("record --listen 127.0.0.1:0 -o traces --block-size 16 --key-file key --shadow-share 1 --upstream "+engine.URL+" --shadow "+candidate.URL), func(url, _ string) {
		chat := []object{{"role": "system", "content": c.take()}, {"role": "user", "content": []object{{"type": "text", "text": c.take()}, {"type": "image_url", "image_url": object{"url": "data:" + c.take()}}}, "name": c.take()},
			{"role": "assistant", "tool_calls": []object{{"id": c.take(), "type": "function", "function": object{"name": c.take(), "arguments": c.take()}}}}, {"role": "tool", "tool_call_id": c.take(), "content": c.take()}}
		for path, body := range map[string]any{
			"/v1/chat/completions": object{"model": c.take(), "messages": chat, "user": c.take(), "metadata": object{"session_id": c.take(), c.take(): c.take()}, "tools": []object{{"type": "function", "function": object{"name": c.take(), "description": c.take()}}}, "cache_salt": c.take(), c.take(): c.take()},
			"/v1/responses":        object{"model": c.take(), "input": c.take(), "instructions": c.take(), "previous_response_id": c.take(), "prompt_cache_key": c.take(), "safety_identifier": c.take()},
			"/v1/messages":         object{"model": c.take(), "max_tokens": 9, "system": c.take(), "messages": []object{{"role": "user", "content": c.take()}}, "metadata": object{"user_id": "user_" + c.take() + "_session_" + c.take()}},
			"/v1/embeddings":       object{"model": c.take(), "input": []string{c.take()}},
			"/v1/completions":      c.take(), // no request
			"/" + c.take():         object{},
		} {
			req, err := http.NewRequest(http.MethodPost, url+path+"?key="+plant(), strings.NewReader(canaryJSON(body)))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "Cookie", "X-Session-Id", "User-Agent", "X-Other"} {
				req.Header.Set(name, plant())
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		time.Sleep(time.Second) // rows are in the journal by then
		journals, _ = filepath.Glob("traces/*.journal")
		for _, name := range journals {
			scan(name)
		}
	})
	if len(journals) == 0 || !strings.HasPrefix(stdout, "4 requests recorded") {
		t.Errorf("%v, %s", journals, stdout)
	}
	_, merged, _ := reprise(t, "merge", "--finish", "traces", "-o", "t.parquet")
	files, _ := filepath.Glob("traces/*")
	for _, name := range append(files, "t.parquet", "t.privacy.json") {
		scan(name)
	}
	if err := scanner.Bytes(&hits, "messages", strings.NewReader(stdout+stderr+merged+must(t, "profile", "t.parquet"))); err != nil {
		t.Fatal(err)
	}
	if len(hits.Strings) > 0 || c.next < 100 {
		t.Errorf("%d planted strings came out: %v; %d places", len(hits.Strings), hits.Where, c.next)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, secret := range headers {
		if strings.Contains(shadowed.String(), secret) {
			t.Errorf("the candidate got a header or a query: %s", shadowed.String())
		}
	}
	if shadowed.Len() == 0 {
		t.Error("the candidate got nothing")
	}
}

// With --key-file a recorder that is started again goes on with the ids of the one before,
// and what a ledger counts adds up over all captures of the key.
func TestRecordKeyFile(t *testing.T) {
	t.Chdir(t.TempDir())
	engine := simulate(t)
	record := func(key string) string {
		_, stderr := recordWhile(t, strings.Fields("record --listen 127.0.0.1:0 -o traces --block-size 16 --key-file "+key+" --upstream "+engine), func(url, _ string) {
			send(t, url+"/v1/completions", `{"prompt":"`+strings.Repeat(plantedPrompt+" ", 20)+`","user":"`+plantedSession+`","max_tokens":2}`)
		})
		return stderr
	}
	if said := record("key"); !strings.HasPrefix(said, "created the key file key: keep it secret, and delete it when nothing more is to be joined\n") {
		t.Error(said)
	}
	if said := record("key"); strings.Contains(said, "key file") {
		t.Error(said)
	}
	merge := func() trace.Meta {
		t.Helper()
		_, said, _ := reprise(t, "merge", "--finish", "traces", "-o", "t.parquet", "--overwrite")
		for _, want := range []string{"note: 2 recordings with one key: users, sessions and prefixes go on from one to the next; a gap between them has no requests\n",
			"note: 3 recordings with 2 keys: users, sessions and prefixes are shared only between recordings with " +
				"one key; a gap between them has no requests\n"} {
			if strings.Contains(said, want) {
				said = ""
			}
		}
		if said != "" {
			t.Error(said)
		}
		in, err := trace.Open("t.parquet")
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		r, err := in.Reader()
		rows := rowsOf(t, r, err)
		if len(rows[1].Blocks) == 0 || *rows[1].User != 0 || *rows[1].Session != 0 || rows[1].Blocks[0] != rows[0].Blocks[0] {
			t.Errorf("the second recording begins with new ids: %+v", rows)
		}
		return in.Meta
	}
	meta := merge()
	if card := must(t, "anonymize", "--card", "t.parquet"); !strings.Contains(strings.Join(strings.Fields(card), " "), "can link their users, sessions and prefixes for as long as the key exists") {
		t.Error(card)
	}
	public := []string{"anonymize", "t.parquet", "--tier", "public", "--unit", "request", "-o", "p.parquet"}
	if _, errs, code := reprise(t, public...); code != cli.Usage || !strings.HasPrefix(errs, "reprise: t.parquet was recorded with --key-file: other captures with that key have the same users, so what their releases cost adds up. Name one ledger for all of them: --ledger FILE") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if err := os.WriteFile("ledger", []byte(`{"source":"key:`+meta.Keys+`","release":"of another capture","epsilon":9.5,"delta":1e-6}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := reprise(t, append(public, "--ledger", "ledger")...); code != cli.Usage || !strings.Contains(errs,
		"ε would be 10.5 in all: earlier releases or attempts (1) spent 9.5 of it, by ledger") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	record("other")
	if meta := merge(); strings.Count(meta.Keys, ",") != 1 {
		t.Errorf("keys %q", meta.Keys)
	}
	key, err := os.ReadFile("key")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("traces/*")
	for _, name := range append(files, "t.parquet") {
		if text, err := os.ReadFile(name); err != nil || bytes.Contains(text, key[:16]) {
			t.Errorf("%s has the key, or cannot be read: %v", name, err)
		}
	}
	if err := os.Chmod("key", 0o644); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := reprise(t, "record", "--listen", "127.0.0.1:0", "-o", "traces", "--key-file", "key", "--upstream", engine); code != cli.Failure || !strings.HasPrefix(errs, "reprise: --key-file key: others than its owner have access to it (mode 0644): run chmod 600 on it, or name a new file if they may have read it\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// While it runs, the profile so far and the counts are on a port of their own, for who
// has the token; the proxied port has neither.
func TestRecordAdmin(t *testing.T) {
	t.Chdir(t.TempDir())
	get := func(url, token string) (int, string) {
		req, _ := http.NewRequest(http.MethodGet, url, nil)
		if token != "" {
			req.SetBasicAuth("any", token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	_, stderr := recordWhile(t, strings.Fields("record --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 -o traces --block-size 16 --upstream "+simulate(t)), func(url, admin string) {
		for range 3 {
			send(t, url+"/v1/completions", `{"prompt":"`+strings.Repeat("one two three ", 20)+`","max_tokens":2}`)
		}
		drawn, err := os.ReadFile("traces/admin-token")
		if err != nil {
			t.Fatal(err)
		}
		token := strings.TrimSpace(string(drawn))
		if code, _ := get(admin, ""); code != http.StatusUnauthorized {
			t.Errorf("without a token: %d", code)
		}
		if code, _ := get(admin+"metrics", token+"x"); code != http.StatusUnauthorized {
			t.Errorf("with a wrong token: %d", code)
		}
		page := ""
		for range 50 { // rows are in the journal within half a second
			var code int
			if code, page = get(admin, token); code == http.StatusOK {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if !strings.Contains(page, "<html") || !strings.Contains(page, "Prefix reuse") && !strings.Contains(page, "prefix reuse") {
			t.Errorf("no page: %.300s", page)
		}
		text := ""
		for range 50 { // a request is recorded after its answer has ended
			if _, text = get(admin+"metrics", token); strings.Contains(text, `reprise_record_requests_total{outcome="recorded"} 3`) {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		if !strings.Contains(text, `reprise_record_requests_total{outcome="recorded"} 3`) {
			t.Error(text)
		}
		if code, text := get(url+"/metrics", ""); code == http.StatusOK && strings.Contains(text, "reprise_record") {
			t.Error("the proxied port has figures of the recorder")
		}
	})
	if !strings.Contains(stderr, "the password, or bearer token, is what is in traces/admin-token") {
		t.Error(stderr)
	}
}

// A candidate gets the same requests without the credentials of clients, and compare
// reads what both servers made of them.
func TestRecordShadow(t *testing.T) {
	t.Chdir(t.TempDir())
	_, stderr := recordWhile(t, strings.Fields("record --listen 127.0.0.1:0 -o traces --shadow-share 1 --upstream "+simulate(t)+" --shadow "+simulate(t)), func(url, _ string) {
		for range 5 {
			send(t, url+"/v1/chat/completions", `{"stream":true,"stream_options":{"include_usage":true},"max_tokens":4,"messages":[{"role":"user","content":"`+plantedPrompt+`"}]}`)
		}
	})
	command := regexp.MustCompile(`5 requests answered by both servers: reprise (compare \S+-primary.results.parquet \S+-shadow.results.parquet)`).FindStringSubmatch(stderr)
	if command == nil {
		t.Fatal(stderr)
	}
	out, errs, code := reprise(t, strings.Fields(command[1])...)
	if code != cli.Good || !strings.Contains(out, "TTFT p50, ms") || strings.Contains(out, "one and the same") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
	files, _ := filepath.Glob("traces/*")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{plantedKey, "zanzibar", plantedSession} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s has %q", name, secret)
			}
		}
	}
	for args, want := range map[string]string{
		"--shadow-share 5%":                           "--shadow-share needs --shadow",
		"--shadow http://u:p@a":                       "--shadow: want a URL such as http://candidate:8000, without a password",
		"--shadow http://a --shadow-share 0":          "--shadow-share: want a share above 0 and at most 1, such as 5%",
		"--admin-listen 0 --set admin-token-env=NONE": "--set admin-token-env: variable NONE is empty",
	} {
		_, errs, code := reprise(t, append(strings.Fields("record --listen 127.0.0.1:0 -o x --upstream http://a"), strings.Fields(args)...)...)
		if code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d: %s", args, code, errs)
		}
	}
}

// What cannot be meant is refused before a port is opened.
func TestRecordRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range map[string]string{
		"":                                    "say where requests go: --upstream http://HOST:PORT",
		"--upstream http://a":                 "say where the parts go: -o FOLDER",
		"--upstream a:80 -o x":                "--upstream: want a URL such as http://engine:8000",
		"--upstream http://u:p@a -o x":        "--upstream: a URL with a password would be in the list of processes; clients send their own credentials",
		"--upstream http://a -o x --sample 0": "--sample: want a share above 0 and at most 1, such as 10%",
		"--upstream http://a -o x --set listen-cert=c": "--set listen-cert and --set listen-key go together",
		"--upstream http://a -o x --key-file x/k": "--key-file x/k is inside -o x: keep the key elsewhere, so " +
			"that a reader of the parts does not get it",
	} {
		_, errs, code := reprise(t, append([]string{"record"}, strings.Fields(args)...)...)
		if code != cli.Usage || !strings.HasPrefix(errs, "reprise: "+want) {
			t.Errorf("record %s: exit code %d: %s", args, code, errs)
		}
	}
	if err := os.Mkdir("empty", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := reprise(t, "merge", "--finish", "empty", "-o", "t.parquet"); code != cli.Failure || !strings.HasPrefix(errs, "reprise: empty: it holds no parts of a recording (*.part.parquet)") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
