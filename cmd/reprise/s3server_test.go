//go:build clouds

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
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
