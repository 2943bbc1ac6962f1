package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"reprise/trace"
)

// A recordProcess is reprise record as a process of its own.
type recordProcess struct {
	url  string
	pid  int
	said *watch
	out  bytes.Buffer
	wait func() error
}

func startRecord(t *testing.T, folder string, args ...string) *recordProcess {
	t.Helper()
	p := new(recordProcess)
	cmd := child(t, append([]string{"record", "--listen", "127.0.0.1:0", "-o", folder, "--block-size", "16", "--upstream", simulate(t)}, args...)...)
	begun := make(chan struct{})
	p.said = &watch{want: "; stop it with Ctrl-C", then: func() {
		select {
		case <-begun:
		default:
			p.url = recordingAt.FindStringSubmatch(p.said.buf.String())[1]
			close(begun)
		}
	}}
	cmd.Stderr, cmd.Stdout = p.said, &p.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	p.pid, p.wait = cmd.Process.Pid, cmd.Wait
	select {
	case <-begun:
	case <-time.After(20 * time.Second):
		t.Fatalf("it did not begin: %s", p.text())
	}
	return p
}

func (p *recordProcess) text() string {
	p.said.mu.Lock()
	defer p.said.mu.Unlock()
	return p.said.buf.String()
}

// mergedRows makes a trace of a folder and returns how many rows it has.
func mergedRows(t *testing.T, folder string) int64 {
	t.Helper()
	must(t, "merge", "--finish", folder, "-o", "t.parquet", "--overwrite")
	in, err := trace.Open("t.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r, err := in.Reader()
	if err != nil {
		t.Fatal(err)
	}
	return r.Rows()
}

// What was over a second before kill -9 is in the journal that it leaves, which merge
// reads, beside the parts of a recorder that came after it.
func TestRecordKilled(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	ask := func(p *recordProcess, n int) {
		for i := range n {
			send(t, p.url+"/v1/completions", fmt.Sprintf(`{"prompt":"%s %d","max_tokens":1}`, plantedPrompt, i))
		}
	}
	p := startRecord(t, "traces", "--set", "rotate=1s")
	ask(p, 20)
	time.Sleep(1500 * time.Millisecond) // a part
	ask(p, 20)
	var mu sync.Mutex
	var answered []time.Time
	go func() { // load up to the kill
		for i := 0; ; i++ {
			resp, err := http.Post(p.url+"/v1/completions", "application/json", strings.NewReader(fmt.Sprintf(`{"prompt":"%s %d","max_tokens":1}`, plantedPrompt, 100+i)))
			if err != nil {
				return
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			mu.Lock()
			answered = append(answered, time.Now())
			mu.Unlock()
			time.Sleep(5 * time.Millisecond)
		}
	}()
	time.Sleep(2 * time.Second)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", p.pid))
	if err != nil || !strings.Contains(string(status), "Max core file size        0                    0") {
		t.Errorf("it may dump its core: %v", err)
	}
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	p.wait()
	mu.Lock()
	least, most := int64(40), int64(40+len(answered)+1)
	for _, at := range answered {
		if killed.Sub(at) > time.Second {
			least++
		}
	}
	mu.Unlock()
	kept := mergedRows(t, "traces")
	if kept < least || kept > most || least < 60 {
		t.Errorf("%d rows, want %d to %d", kept, least, most)
	}
	if said := must(t, "profile", "t.parquet"); !strings.Contains(said, fmt.Sprintf("%d requests, ", kept)) {
		t.Error(said)
	}
	must(t, "replay", "t.parquet", "--url", simulate(t), "--speed", "10", "-o", "r.parquet", "--trust", "max-stall-ttft=off,max-stall-gap=off,max-lag=off,max-lag-p50=off,max-lag-drift=off")
	p = startRecord(t, "traces")
	ask(p, 5)
	syscall.Kill(p.pid, syscall.SIGTERM)
	if err := p.wait(); err != nil {
		t.Errorf("SIGTERM: %v\n%s", err, p.text())
	}
	if n := mergedRows(t, "traces"); n != kept+5 {
		t.Errorf("%d rows of %d", n, kept+5)
	}
}

// With a full disk traffic goes on, the operator is told once, and what memory holds is
// written when there is room again.
func TestRecordDiskFull(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	full := t.TempDir()
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no file system can be mounted: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(full, syscall.MNT_DETACH) })
	p := startRecord(t, full)
	for i := range 200 {
		if answer := send(t, p.url+"/v1/completions", fmt.Sprintf(`{"prompt":"%s %d","max_tokens":1}`, strings.Repeat("word ", 200), i)); !strings.Contains(answer, "choices") {
			t.Fatal(answer)
		}
	}
	waitFor := func(text string) {
		t.Helper()
		for range 200 {
			if strings.Contains(p.text(), text) {
				return
			}
			time.Sleep(25 * time.Millisecond)
		}
		t.Fatalf("it does not say %q:\n%s", text, p.text())
	}
	waitFor("recording fails, traffic goes on: ")
	if err := syscall.Mount("tmpfs", full, "tmpfs", syscall.MS_REMOUNT, "size=10m"); err != nil {
		t.Fatal(err)
	}
	waitFor("recording works again")
	syscall.Kill(p.pid, syscall.SIGINT)
	if err := p.wait(); err != nil {
		t.Errorf("%v\n%s", err, p.text())
	}
	if n := strings.Count(p.text(), "recording fails"); n != 1 || !strings.HasPrefix(p.out.String(), "200 requests recorded") {
		t.Errorf("said %d times\n%s\n%s", n, p.text(), p.out.String())
	}
	if n := mergedRows(t, full); n != 200 {
		t.Errorf("%d rows of 200", n)
	}
}
