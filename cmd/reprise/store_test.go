//go:build clouds

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reprise/anonymize"
	"reprise/trace"
)

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
	s.run(0, "report", "s3://bkt/runs/r.parquet", "-o", "s3://bkt/runs/r.txt", "--html", "s3://bkt/runs/r.html")
	r := s.copied("runs/r.parquet")
	if here := s.run(0, "report", r, "--details"); strings.ReplaceAll(here, r, "") != strings.ReplaceAll(s.run(0, "report", "s3://bkt/runs", "--details"), "s3://bkt/runs/r.parquet", "") {
		t.Error("the reports of the results here and there differ")
	}
	if !bytes.Contains(s.get("runs/r.html"), []byte("<html")) {
		t.Errorf("the store has %v", s.keys())
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
	var reads atomic.Int64
	s.failing(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			if reads.Add(1) > 1 { // the first is what tells the format
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
		r.ArrivalNS, r.InputTokens, r.OutputTokens, r.Status = int64(i)*1e6, 20000, trace.Ptr[int32](10), trace.StatusOK
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
			t.Fatalf("what could not be uploaded is not kept: %v\n%s", left, out)
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
		stopped, done := make(chan struct{}), make(chan struct{})
		var once sync.Once
		s.failing(func(w http.ResponseWriter, r *http.Request) bool {
			if !when(r) {
				return false
			}
			once.Do(func() {
				go func() {
					defer close(done)
					s.stop()
					close(stopped)
					time.Sleep(2 * time.Second) // how long a server is away that restarts: a few tries
					s.failing(nil)
					s.start()
				}()
			})
			<-stopped
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

	// Results, and a trace of several parts. The server is away when the second part comes.
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

// Shards of an import meet in a store, and become there the trace of one process.
func TestStoreShards(t *testing.T) {
	s := newStore(t)
	s.put("logs/a.jsonl", storeLog(300))
	s.put("logs/b.jsonl", storeLog(500)[len(storeLog(300)):])
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(strings.Repeat("0123456789abcdef", 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, share := range []string{"0/2", "1/2"} {
		s.run(0, "import", "s3://bkt/logs", "--shard", share, "--key-file", key, "-o", "s3://bkt/shards")
	}
	s.run(0, "merge", "--finish", "s3://bkt/shards", "--key-file", key, "-o", "s3://bkt/t.parquet")
	s.run(0, "import", "s3://bkt/logs", "-o", "s3://bkt/one.parquet")
	if a, b := digestOf(t, s.copied("t.parquet")), digestOf(t, s.copied("one.parquet")); a != b {
		t.Errorf("digests %s and %s", a, b)
	}
}

// What grows is kept on the machine until it is uploaded, and goes on with what the store has.
func TestStoreStaged(t *testing.T) {
	s := newStore(t)
	s.run(0, "synth", "chat", "--requests", "300", "-o", "s3://bkt/w.parquet")
	args := []string{"compare", "s3://bkt/w.parquet", "--preset-a", "l4-qwen2.5-0.5b", "--preset-b", "l4-qwen2.5-0.5b", "-o", "s3://bkt/c"}
	if out := s.run(0, args...); strings.Contains(out, "stores") || !strings.Contains(out, "uploaded") {
		t.Errorf("it names the place on the machine, or does not say what was uploaded\n%s", out)
	}
	rounds := s.keys()
	if !slices.Contains(rounds, "c/experiment.json") || !slices.Contains(rounds, "c/compare.json") {
		t.Fatalf("the store has %v", rounds)
	}
	puts := 0
	s.failing(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			puts++
		}
		return false
	})
	s.run(0, args...)
	if puts > 3 || !slices.Equal(s.keys(), rounds) {
		t.Errorf("on another machine %d objects of %d were uploaded again", puts, len(rounds))
	}
	// A store that takes nothing leaves the runs on the machine, where the next command finds them.
	state := t.TempDir()
	again := func(code int) string {
		t.Helper()
		cmd := s.command("compare", "s3://bkt/w.parquet", "--preset-a", "l4-qwen2.5-0.5b", "--preset-b", "l4-qwen2.5-0.5b", "-o", "s3://bkt/d")
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+state)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != code {
			t.Errorf("exit code %d, want %d\n%s", cmd.ProcessState.ExitCode(), code, out)
		}
		return string(out)
	}
	s.failing(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusForbidden)
			return true
		}
		return false
	})
	if out := strings.Join(strings.Fields(again(1)), " "); !strings.Contains(out, "access denied") || !strings.Contains(out, "What was written is in "+state) {
		t.Error(out)
	}
	s.failing(nil)
	again(0)
	if !slices.Contains(s.keys(), "d/compare.json") {
		t.Errorf("the store has %v", s.keys())
	}
	filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			t.Errorf("%s is left on the machine", path)
		}
		return err
	})
}

// Text, secrets and ledgers go into no store, and that is said.
func TestStoreRefuses(t *testing.T) {
	s := newStore(t)
	s.put("a.jsonl", storeLog(200))
	s.run(0, "import", "s3://bkt/a.jsonl", "-o", "s3://bkt/t.parquet", "--capture-begin", "2026-05-01T12:00:00Z", "--capture-end", "2026-05-01T13:00:00Z")
	before := s.keys()
	for _, c := range []struct {
		want string
		args []string
	}{
		{"text goes into no store", []string{"import", "s3://bkt/a.jsonl", "--tier", "raw", "-o", "s3://bkt/raw.parquet"}},
		{"which goes into no store", []string{"import", "s3://bkt/a.jsonl", "--keep-templates", "-o", "s3://bkt/k.parquet"}},
		{"where no ledger can be kept beside it", []string{"anonymize", "s3://bkt/t.parquet", "--tier", "partner", "-o", "s3://bkt/p.parquet"}},
		{"no object can be added to", []string{"anonymize", "s3://bkt/t.parquet", "--tier", "partner", "--ledger", "s3://bkt/l", "-o", "s3://bkt/p.parquet"}},
		{"is an input and would be overwritten", []string{"slice", "s3://bkt/t.parquet", "--overwrite", "-o", "s3:/bkt//t.parquet"}},
	} {
		if out := strings.Join(strings.Fields(s.run(2, c.args...)), " "); !strings.Contains(out, c.want) {
			t.Errorf("want %q: %s", c.want, out)
		}
	}
	if after := s.keys(); !slices.Equal(before, after) {
		t.Errorf("the store had %v, and has %v", before, after)
	}
}
