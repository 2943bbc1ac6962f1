package main

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reprise/replay/bench"
)

// However the command ends, the engine that it started does not outlive it.
func TestServeCmdLeavesNothing(t *testing.T) {
	long(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Chdir(t.TempDir())
		suite := "warmup: 0\nrows:\n  - {name: one, workload: baseline, requests: 100000, output: \"constant:2\", load: sequential}\n"
		if err := os.WriteFile("s.yaml", []byte(suite), 0o600); err != nil {
			t.Fatal(err)
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		engine := bench.QuoteWords([]string{self, "serve", "--listen", "127.0.0.1:{port}", "--costs", "step=1ms"})
		cmd := child(t, "bench", "s.yaml", "--serve-cmd", engine, "-o", "out")
		var once sync.Once // a second interrupt ends a command at once
		said := &watch{want: "engine: ready", then: func() { once.Do(func() { _ = cmd.Process.Signal(sig) }) }}
		cmd.Stderr = said
		if err := cmd.Run(); err == nil {
			t.Errorf("%v: it was not stopped", sig)
		}
		log, err := os.ReadFile("out/engine/engine.log")
		url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(string(log))
		if err != nil || url == "" {
			t.Fatalf("%v: %q, %v", sig, log, err)
		}
		if sig == syscall.SIGINT && !strings.Contains(said.buf.String(), "engine: stopped") {
			t.Errorf("%v:\n%s", sig, said.buf.String())
		}
		if !silent(url) {
			t.Errorf("%v: the engine answers still", sig)
		}
	}
}

// silent waits until nobody answers.
func silent(url string) bool {
	for range 1000 {
		resp, err := http.Get(url + "/health")
		if err != nil {
			return true
		}
		resp.Body.Close()
		time.Sleep(5 * time.Millisecond)
	}
	return false
}
