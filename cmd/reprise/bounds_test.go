package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/openai"
	"reprise/trace"
	"reprise/trace/bombtest"
)

// mostAbove is how much more memory a command may take for a hostile input than for a sound one.
const mostAbove = 512 << 20

// runChild runs the command as a process of its own. peak is the most memory that it held, in bytes, as
// Linux has it; elsewhere 0.
func runChild(t *testing.T, args ...string) (errs string, code int, peak int64) {
	t.Helper()
	cmd := child(t, args...)
	var out strings.Builder
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	for status := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid); ; {
		if page, err := os.ReadFile(status); err == nil { // it never becomes less
			_, after, _ := strings.Cut(string(page), "VmHWM:")
			var kB int64
			if _, err := fmt.Sscan(after, &kB); err == nil {
				peak = max(peak, kB<<10)
			}
		}
		select {
		case <-ended:
			return out.String(), cmd.ProcessState.ExitCode(), peak
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Each command that reads Parquet refuses files that are made to take all memory: with exit code 1,
// with the file's name, and without taking it.
func TestCommandsRefuseBombs(t *testing.T) {
	long(t)
	w := killWorkload(t, 100, time.Millisecond)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	args := func(line, file string) []string {
		line = strings.NewReplacer("FILE", file, "OTHER", at("other.parquet"), "OUT", at("out.parquet")).Replace(line)
		return replacing(strings.Fields(line))
	}
	results, model, histograms := at("r.parquet"), at("m.parquet"), at("h.parquet")
	must(t, "profile", w, "--histograms", histograms)
	must(t, "profile", killWorkload(t, 50, time.Millisecond), "--histograms", at("other.parquet"))
	must(t, "simulate", w, "--preset", "l4-qwen2.5-0.5b", "-o", results)
	must(t, "synth", "fit", w, "--k-swap", "1", "-o", model)

	for turn, c := range []struct{ sound, line string }{
		{w, "profile FILE"}, {w, "slice FILE --end 1s -o OUT"}, {w, "synth --mirror FILE -o OUT"}, {w, "audit FILE"},
		{results, "report FILE"}, {results, "export FILE --to table -o OUT"}, {model, "synth FILE -n 10 -o OUT"},
		{histograms, "merge FILE OTHER -o OUT"},
	} {
		sound, err := os.ReadFile(c.sound)
		if err != nil {
			t.Fatal(err)
		}
		_, _, usual := runChild(t, args(c.line, c.sound)...)
		refused := 0
		for i, bomb := range bombtest.Parquet(sound) {
			if (i+turn)%4 != 0 { // each bomb goes to two of the commands; package trace tries all of them
				continue
			}
			file := at(fmt.Sprintf("bomb-%d.parquet", i))
			if err := os.WriteFile(file, bomb.Data, 0o600); err != nil {
				t.Fatal(err)
			}
			errs, code, peak := runChild(t, args(c.line, file)...)
			if peak > usual+mostAbove {
				t.Errorf("%s, %s: %d MiB of memory, usually %d", c.line, bomb.Name, peak>>20, usual>>20)
			}
			switch {
			case code == cli.Failure && strings.Contains(errs, filepath.Base(file)):
				refused++
			case code != cli.Good && code != cli.Untrusted: // which do not read that column
				t.Errorf("%s, %s: exit code %d\n%s", c.line, bomb.Name, code, errs)
			}
		}
		if refused == 0 {
			t.Errorf("%s: no bomb is refused", c.line)
		}
	}
}

// What asks a server ends in good time though its answers do not, says what it asked, and takes
// little memory.
func TestCommandsEndThoughServersDoNot(t *testing.T) {
	long(t)
	w := killWorkload(t, 2, time.Millisecond)
	for name, again := range map[string]string{
		"content":      `data: {"choices":[{"index":0,"delta":{"content":"a "},"text":"a "}]}` + "\n\n",
		"comments":     ": wait\n\n",
		"empty chunks": `data: {"choices":[{"index":0,"delta":{}}]}` + "\n\n",
		"one line":     "data: aaaaaaaaaaaaaaaa",
		"JSON":         `{"choices":[{"text":"a","message":{"content":"a"}}]}`,
		"nothing":      "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // what takes long is waiting
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path == "/v1/models" {
					_, _ = io.WriteString(rw, `{"data":[{"id":"m"}]}`)
					return
				}
				for text := strings.Repeat(again, 100); r.Context().Err() == nil; {
					if again == "" {
						<-r.Context().Done()
					}
					if _, err := io.WriteString(rw, text); err != nil {
						return
					}
				}
			}))
			for _, line := range []string{"check --url URL --timeout 1s", "replay W --url URL -o OUT --timeout 1s --quiet"} {
				args := strings.Fields(strings.NewReplacer("URL", server.URL, "W", w, "OUT", filepath.Join(t.TempDir(), "r.parquet")).Replace(line))
				begin := time.Now()
				errs, code, peak := runChild(t, args...)
				if code != cli.Failure || !strings.Contains(errs, server.URL) {
					t.Errorf("%s: exit code %d\n%s", line, code, errs)
				}
				if took := time.Since(begin); took > time.Minute {
					t.Errorf("%s: it took %v", line, took)
				}
				if peak > mostAbove { // what it usually takes is among it
					t.Errorf("%s: %d MiB of memory", line, peak>>20)
				}
			}
			server.CloseClientConnections()
			server.Close()
		})
	}
}

// SECURITY.md states the bounds that the code has.
func TestBoundsAreStated(t *testing.T) {
	one, two, sent := openai.BoundOf(1, 0), openai.BoundOf(2, 0), openai.BoundOf(1, 1)
	events, bytes, event := two.Events-one.Events, two.Bytes-one.Bytes, two.Event-one.Event
	bombtest.Stated(t, "../../SECURITY.md",
		fmt.Sprintf("| an answer of a server | %d events for each token asked for and 16,384 more; %d KiB for each token, %d bytes for each byte of the request, and %d MiB more; as `overlong` |",
			events, bytes>>10, sent.Bytes-one.Bytes, (one.Bytes-bytes)>>20),
		fmt.Sprintf("| one event, line or JSON body of it | %d KiB for each token, %d bytes for each byte of the request, and %d MiB more, at most %d MiB; of all requests at once %d MiB |",
			event>>10, sent.Event-one.Event, (one.Event-event)>>20, openai.BoundOf(1<<30, 0).Event>>20, openai.RoomBytes>>20),
		fmt.Sprintf("| a page of Parquet | %d MiB as it is unpacked, and %d million values; of all columns at once %d MiB |", trace.MaxParquetPage>>20, trace.MaxPageValues>>20, trace.MaxParquetPages>>20),
		fmt.Sprintf("| a footer of Parquet | %d MiB |", trace.MaxParquetFooter>>20),
		fmt.Sprintf("| lists of a trace that are read at once | %d million elements |", trace.MaxListed>>20),
		fmt.Sprintf("| the time of a request | `--timeout`, 10 min by default and %d min for `check`", int(checkTimeout.Minutes())),
	)
	if one.Events-events != 16384 {
		t.Errorf("%d events without a token", one.Events-events)
	}
}
