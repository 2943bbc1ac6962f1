//go:build clouds

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"reprise/anonymize"
	"reprise/trace"
)

// A store is an S3-compatible server, which can be stopped and started again and noisily
// fails as it is told.
type store struct {
	t       *testing.T
	backend *s3mem.Backend
	addr    string
	server  *http.Server

	mu     sync.Mutex
	asked  []*http.Request
	sent   int64                                             // bytes of answers
	before func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
}

func newStore(t *testing.T) *store {
	s := &store{t: t, backend: s3mem.New(), addr: "127.0.0.1:0"}
	if err := s.backend.CreateBucket("bkt"); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(s.stop)
	return s
}

// start begins to serve. Like one that restarts, it has the objects of before, and knows
// no upload under way.
func (s *store) start() {
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.addr = l.Addr().String()
	fake := gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	s.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r)
		before := s.before
		s.mu.Unlock()
		if before == nil || !before(w, r) {
			fake.ServeHTTP(&counted{w, s}, r)
		}
	})}
	go s.server.Serve(l)
}

type counted struct {
	http.ResponseWriter
	s *store
}

func (c *counted) Write(p []byte) (int, error) {
	c.s.mu.Lock()
	c.s.sent += int64(len(p))
	c.s.mu.Unlock()
	return c.ResponseWriter.Write(p)
}

func (s *store) stop() { s.server.Close() }

func (s *store) failing(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	s.before = f
	s.mu.Unlock()
}

// env are the variables by which the program finds the store.
func (s *store) env() []string {
	return []string{"AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY=" + storeSecret, "AWS_ENDPOINT_URL_S3=http://" + s.addr, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_REGION=us-east-1", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"}
}

const storeSecret = "correct-horse-battery-staple"

func (s *store) command(args ...string) *exec.Cmd {
	cmd := child(s.t, args...)
	cmd.Env = append(cmd.Env, s.env()...)
	return cmd
}

// run runs the program, which has to end with this code, and returns what it printed.
func (s *store) run(code int, args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	got := 0
	if exit, ok := err.(*exec.ExitError); ok {
		got = exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	if got != code {
		s.t.Errorf("%s: exit code %d, want %d\n%s", strings.Join(args, " "), got, code, out)
	}
	return string(out)
}

func (s *store) put(key string, data []byte) {
	s.t.Helper()
	if _, err := s.backend.PutObject("bkt", key, map[string]string{}, bytes.NewReader(data), int64(len(data)), nil); err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) get(key string) []byte {
	s.t.Helper()
	o, err := s.backend.GetObject("bkt", key, nil)
	if err != nil {
		s.t.Errorf("%s: %v", key, err)
		return nil
	}
	defer o.Contents.Close()
	b, err := io.ReadAll(o.Contents)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *store) keys() (keys []string) {
	l, err := s.backend.ListBucket("bkt", nil, gofakes3.ListBucketPage{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range l.Contents {
		keys = append(keys, o.Key)
	}
	slices.Sort(keys)
	return keys
}

// copied is an object as a file of the machine.
func (s *store) copied(key string) string {
	path := filepath.Join(s.t.TempDir(), filepath.Base(key))
	if err := os.WriteFile(path, s.get(key), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// storeLog is a log with text, of requests in sessions.
func storeLog(rows int) []byte {
	var b bytes.Buffer
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for i := range rows {
		at = at.Add(time.Duration(50+i*37%400) * time.Millisecond)
		json.NewEncoder(&b).Encode(map[string]any{"timestamp": at, "user": fmt.Sprint("u", i%20), "session_id": fmt.Sprint("s", i%97), "model": "m",
			"messages": []any{map[string]any{"role": "system", "content": strings.Repeat("You help with planted-text. ", 20)}, map[string]any{"role": "user", "content": strings.Repeat(fmt.Sprint("question ", i%97, " "), 40) + fmt.Sprint(i)}},
			"response": strings.Repeat("ok ", 3+i%30)})
	}
	return b.Bytes()
}

// A log in a store becomes the trace that the same log on the machine becomes, in the store
// too, and every step after that reads and writes there.
func TestStore(t *testing.T) {
	s := newStore(t)
	log := storeLog(1200)
	s.put("logs/a.jsonl", log)
	dir := t.TempDir()
	local := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(local("a.jsonl"), log, 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(0, "import", local("a.jsonl"), "-o", local("t.parquet"))
	want := digestOf(t, local("t.parquet"))
	for _, from := range []string{"s3://bkt/logs/a.jsonl", "s3://bkt/logs", "s3://bkt/logs/*.jsonl", local("a.jsonl")} {
		s.run(0, "import", from, "-o", "s3://bkt/t.parquet", "--overwrite")
		if got := digestOf(t, s.copied("t.parquet")); got != want {
			t.Errorf("%s: digest %s, want %s", from, got, want)
		}
	}
	f, err := trace.Open(s.copied("t.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	card, err := anonymize.ParseCard(string(s.get("t.privacy.json")), f.Meta.CardHash)
	if err != nil {
		t.Fatal(err)
	}
	if c := card.Confined; c == nil || c.Network != "seccomp" || c.CoreDumps != "off" {
		t.Errorf("the process that saw the text was not confined: %+v", c)
	}

	s.run(0, "slice", "s3://bkt/t.parquet", "--partitions", "3", "-o", "s3://bkt/parts")
	if got := s.keys(); !slices.Contains(got, "parts/manifest.json") || !slices.Contains(got, "parts/part-00002-of-00003.parquet") {
		t.Errorf("the store has %v", got)
	}
	s.run(2, "slice", "s3://bkt/t.parquet", "--partitions", "3", "-o", "s3://bkt/parts")
	s.run(0, "slice", "s3://bkt/t.parquet", "--partitions", "2", "-o", "s3://bkt/parts", "--overwrite")
	if got := s.keys(); slices.Contains(got, "parts/part-00002-of-00003.parquet") {
		t.Errorf("the store still has a partition of before: %v", got)
	}
	s.run(0, "slice", "s3://bkt/parts/", "-o", "s3://bkt/whole.parquet")
	if got := digestOf(t, s.copied("whole.parquet")); got != want {
		t.Errorf("through partitions: digest %s, want %s", got, want)
	}
	of := func(path string) string {
		out := s.run(0, "profile", path, "--json")
		return regexp.MustCompile(`"(file|trace|name)": *"[^"]*"`).ReplaceAllString(out, "")
	}
	if a, b := of(local("t.parquet")), of("s3://bkt/parts"); a != b {
		t.Errorf("the profiles differ:\n%s\n%s", a, b)
	}

	s.run(0, "synth", "s3://bkt/parts", "-o", "s3://bkt/w.parquet")
	s.run(0, "simulate", "s3://bkt/w.parquet", "--preset", "l4-qwen2.5-0.5b", "-o", "s3://bkt/runs/r.parquet")
	s.run(0, "report", "s3://bkt/runs/r.parquet", "-o", "s3://bkt/runs/r.txt", "--html", "s3://bkt/runs/r.html", "--plots", "s3://bkt/runs/plots")
	r := s.copied("runs/r.parquet")
	if here := s.run(0, "report", r, "--details"); strings.ReplaceAll(here, r, "") != strings.ReplaceAll(s.run(0, "report", "s3://bkt/runs", "--details"), "s3://bkt/runs/r.parquet", "") {
		t.Error("the reports of the results here and there differ")
	}
	if got := s.keys(); !slices.ContainsFunc(got, func(k string) bool { return strings.HasPrefix(k, "runs/plots/") }) || !bytes.Contains(s.get("runs/r.html"), []byte("<html")) {
		t.Errorf("the store has %v", got)
	}
	s.run(2, "simulate", "s3://bkt/w.parquet", "--preset", "l4-qwen2.5-0.5b", "-o", "s3://bkt/runs/r.parquet") // it exists
}

// While text is read, the process that reads it holds no socket and can get none; its
// fetch process, which has the connections, never saw more than bytes.
func TestStoreConfined(t *testing.T) {
	s := newStore(t)
	s.put("a.jsonl", storeLog(4000))
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	reads := 0
	s.failing(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			if reads++; reads > 1 { // the first is what tells the format
				once.Do(func() { close(held); <-release })
			}
		}
		return false
	})
	cmd := s.command("import", "s3://bkt/a.jsonl", "-o", "s3://bkt/t.parquet")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-held:
	case <-time.After(30 * time.Second):
		t.Fatalf("it did not read on\n%s", &out)
	}
	parent := cmd.Process.Pid
	fetch := childOf(t, parent)
	if n := socketsOf(t, parent); n != 0 {
		t.Errorf("the process that sees text holds %d sockets", n)
	}
	if n := socketsOf(t, fetch); n == 0 {
		t.Error("the fetch process holds no socket")
	}
	if v := statusOf(t, parent, "Seccomp"); v != "2" {
		t.Errorf("Seccomp of the process that sees text: %s", v)
	}
	if v := statusOf(t, parent, "NoNewPrivs"); v != "1" {
		t.Errorf("NoNewPrivs of the process that sees text: %s", v)
	}
	close(release)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if strings.Contains(out.String(), storeSecret) {
		t.Error("the secret was printed")
	}
}

func childOf(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range all {
		more, _ := os.ReadFile(name)
		b = append(append(b, ' '), more...)
	}
	words := strings.Fields(string(b))
	if len(words) == 0 {
		t.Fatalf("no child: %v", err)
	}
	n, err := strconv.Atoi(words[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func socketsOf(t *testing.T, pid int) (n int) {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range all {
		if to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())); strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

func statusOf(t *testing.T, pid int, key string) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// bigTrace is a trace of some 30 MB, in a file.
func bigTrace(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "big.parquet")
	rows := make([]trace.Request, 100_000)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range rows {
		r := &rows[i]
		r.ArrivalNS, r.InputTokens, r.OutputTokens, r.Status = int64(i)*1e6, 20000, 10, trace.StatusOK
		for range 40 {
			r.Blocks = append(r.Blocks, random.Uint64())
		}
	}
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write(rows)
		return trace.Meta{Tier: anonymize.Internal, BlockSize: 512}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The metadata of a large trace are read from its end, and a column without the others.
func TestStoreRanges(t *testing.T) {
	s := newStore(t)
	path := bigTrace(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.put("t.parquet", data)
	out := s.run(1, "anonymize", "--card", "s3://bkt/t.parquet")
	if !strings.Contains(out, "no privacy card") {
		t.Error(out)
	}
	if s.sent > 3<<20 || s.sent > int64(len(data))/2 {
		t.Errorf("for its metadata, %d of %d bytes were sent", s.sent, len(data))
	}
	for _, r := range s.asked {
		if r.Method == http.MethodGet && r.Header.Get("Range") == "" && r.URL.Query().Get("list-type") == "" {
			t.Errorf("%s was read without a range", r.URL)
		}
	}
}

// Each way in which a store fails has its own words, and none of them a secret.
func TestStoreFaults(t *testing.T) {
	s := newStore(t)
	s.put("a.jsonl", storeLog(50))
	status := func(code int, name string, header ...string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(code)
			if r.Method != http.MethodHead {
				fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>no %s</Message></Error>`, name, storeSecret)
			}
			return true
		}
	}
	none := []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="}
	for name, c := range map[string]struct {
		path string
		fail func(w http.ResponseWriter, r *http.Request) bool
		env  []string
		want string
	}{
		"no bucket":    {path: "s3://other/a.jsonl", want: "there is no such bucket"},
		"no key":       {path: "s3://bkt/b.jsonl", want: "there is no such object"},
		"bucket alone": {path: "s3://", want: "it names no bucket"},
		"options":      {path: "s3://bkt/a.jsonl?X-Amz-Signature=" + storeSecret, want: "an address has no options"},
		"denied":       {fail: status(403, "AccessDenied"), want: "access denied"},
		"bad key": {fail: func(w http.ResponseWriter, r *http.Request) bool {
			return r.Method != http.MethodHead && status(403, "InvalidAccessKeyId")(w, r)
		}, want: "the store refuses the credentials (InvalidAccessKeyId)"},
		"no credentials": {env: none, want: "no credentials were found: set AWS_ACCESS_KEY_ID"},
		"wrong region":   {fail: status(301, "PermanentRedirect", "X-Amz-Bucket-Region", "eu-west-3"), want: "the bucket is in another region: set AWS_REGION=eu-west-3"},
		"unreachable":    {env: []string{"AWS_ENDPOINT_URL_S3=http://127.0.0.1:1"}, want: "http://127.0.0.1:1 cannot be reached (connection refused)"},
		"unknown host":   {env: []string{"AWS_ENDPOINT_URL_S3=http://nowhere.invalid"}, want: "http://nowhere.invalid cannot be reached (its name is not known)"},
		"failing":        {fail: status(500, "InternalError"), want: "the store answers with status 500"},
	} {
		t.Run(name, func(t *testing.T) {
			s.failing(c.fail)
			cmd := s.command("import", cmp.Or(c.path, "s3://bkt/a.jsonl"), "-o", filepath.Join(t.TempDir(), "t.parquet"))
			cmd.Env = append(cmd.Env, c.env...)
			begin := time.Now()
			out, err := cmd.CombinedOutput()
			text := strings.Join(strings.Fields(string(out)), " ")
			if err == nil || !strings.Contains(text, c.want) || strings.Contains(text, storeSecret) {
				t.Errorf("%v: want %q\n%s", err, c.want, out)
			}
			t.Logf("%v: %s", time.Since(begin).Round(time.Millisecond), text)
		})
	}
	t.Run("denied writing", func(t *testing.T) {
		s.failing(func(w http.ResponseWriter, r *http.Request) bool {
			return r.Method != http.MethodGet && r.Method != http.MethodHead && status(403, "AccessDenied")(w, r)
		})
		temp := t.TempDir()
		cmd := s.command("import", "s3://bkt/a.jsonl", "-o", "s3://bkt/t.parquet")
		cmd.Env = append(cmd.Env, "TMPDIR="+temp)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "access denied") || !strings.Contains(string(out), temp) {
			t.Errorf("%v\n%s", err, out)
		}
		left, _ := filepath.Glob(filepath.Join(temp, "reprise-*-t.parquet"))
		if len(left) != 1 {
			t.Fatalf("what could not be put up is not kept: %v\n%s", left, out)
		}
		digestOf(t, left[0])
	})
	t.Run("cut off", func(t *testing.T) { // a connection that ends too early, once
		n := 0
		s.failing(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || r.Header.Get("Range") == "" {
				return false
			}
			if n++; n > 1 {
				return false
			}
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(http.StatusPartialContent)
			w.Write([]byte("{"))
			panic(http.ErrAbortHandler)
		})
		s.run(0, "import", "s3://bkt/a.jsonl", "-o", filepath.Join(t.TempDir(), "t.parquet"))
		if n < 2 {
			t.Error("it was not read again")
		}
	})
	t.Run("other object", func(t *testing.T) { // that takes the place of the first while that is read
		s.put("big.jsonl", storeLog(4000))
		n := 0
		s.failing(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Range") != "" {
				if n++; n == 2 {
					s.put("big.jsonl", storeLog(3999))
				}
			}
			return false
		})
		out := s.run(1, "import", "s3://bkt/big.jsonl", "-o", filepath.Join(t.TempDir(), "t.parquet"))
		if !strings.Contains(out, "another object took its place") {
			t.Error(out)
		}
	})
	t.Run("full spool", func(t *testing.T) {
		s.failing(nil)
		cmd := s.command("import", "s3://bkt/a.jsonl", "-o", "s3://bkt/t.parquet")
		cmd.Env = append(cmd.Env, "TMPDIR="+filepath.Join(t.TempDir(), "absent"))
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(strings.Join(strings.Fields(string(out)), " "), "set TMPDIR to a folder that takes it") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// Import from a store, and results to it, survive its restart half-way.
func TestStoreRestarts(t *testing.T) {
	s := newStore(t)
	log := storeLog(12_000)
	s.put("a.jsonl", log)
	restart := func(when func(r *http.Request) bool) (over func()) {
		done := make(chan struct{})
		var once sync.Once
		s.failing(func(w http.ResponseWriter, r *http.Request) bool {
			if !when(r) {
				return false
			}
			once.Do(func() {
				go func() {
					defer close(done)
					s.stop()
					time.Sleep(2 * time.Second)
					s.failing(nil)
					s.start()
				}()
			})
			time.Sleep(100 * time.Millisecond)
			panic(http.ErrAbortHandler)
		})
		return func() {
			t.Helper()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the store was not restarted")
			}
		}
	}
	reads := 0
	over := restart(func(r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			reads++
		}
		return reads > 2
	})
	out := s.run(0, "import", "s3://bkt/a.jsonl", "-o", "s3://bkt/t.parquet")
	over()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), log, 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(0, "import", filepath.Join(dir, "a.jsonl"), "-o", filepath.Join(dir, "t.parquet"))
	if a, b := digestOf(t, s.copied("t.parquet")), digestOf(t, filepath.Join(dir, "t.parquet")); a != b {
		t.Errorf("digests %s and %s\n%s", a, b, out)
	}
	if reads <= 2 {
		t.Error("it was read before the restart")
	}

	// Results, and a trace of several parts, the second of which finds no server.
	s.run(0, "synth", "s3://bkt/t.parquet", "-o", "s3://bkt/w.parquet")
	over = restart(func(r *http.Request) bool { return r.Method == http.MethodPut })
	s.run(0, "simulate", "s3://bkt/w.parquet", "--preset", "l4-qwen2.5-0.5b", "-o", "s3://bkt/r.parquet")
	over()
	s.run(0, "report", s.copied("r.parquet"))

	big, parts := bigTrace(t), 0
	over = restart(func(r *http.Request) bool {
		if r.Method == http.MethodPut && r.URL.Query().Get("partNumber") != "" {
			parts++
		}
		return parts > 1
	})
	out = s.run(0, "slice", big, "--partitions", "1", "-o", "s3://bkt/big")
	over()
	s.run(0, "slice", "s3://bkt/big", "-o", filepath.Join(dir, "big.parquet"))
	if a, b := digestOf(t, filepath.Join(dir, "big.parquet")), digestOf(t, big); a != b || parts < 2 {
		t.Errorf("digests %s and %s, %d parts before the restart\n%s", a, b, parts, out)
	}
}
