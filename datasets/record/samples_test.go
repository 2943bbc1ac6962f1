package record_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Real exchanges, as testdata/cassettes.py writes them, pass unchanged, and their entries
// have the counts and the texts that were counted there.
func TestSamples(t *testing.T) {
	file, err := os.Open(filepath.Join(os.Getenv("REPRISE_TEST_SAMPLES"), "exchanges.jsonl"))
	if err != nil {
		t.Skip("no real exchanges: REPRISE_TEST_SAMPLES names a folder with exchanges.jsonl, which testdata/cassettes.py makes")
	}
	defer file.Close()
	type exchange struct {
		Name, Path, Request, Type, Answer string
		Status                            int
		Want                              *struct {
			Input, Output, Cached, Reasoning *int32
			Text                             string
		}
	}
	var mu sync.Mutex
	var now exchange
	server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", now.Type)
		w.WriteHeader(now.Status)
		io.WriteString(w, now.Answer)
	})
	lines := bufio.NewReader(file)
	n, noReply := 0, 0
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		now = exchange{}
		if err := json.Unmarshal(line, &now); err != nil {
			t.Fatal(err)
		}
		n++
		r := proxied(t, nil, server)
		if status, got := r.post(t, now.Path, now.Request); got != now.Answer || status != now.Status {
			t.Errorf("%s: the answer was changed", now.Name)
		}
		entries, counts := r.over(t)
		r.front.Close()
		if len(entries) != 1 {
			t.Errorf("%s %s: not recorded: %+v\n%.300s", now.Name, now.Path, counts, now.Request)
			continue
		}
		e := entries[0]
		if (e.Status == "failed") != (now.Want == nil) {
			t.Errorf("%s %s: status %q of %d\n%.300s", now.Name, now.Path, e.Status, now.Status, now.Answer)
		}
		if now.Want == nil {
			continue
		}
		show := func(p *int32) string {
			if p == nil || *p == 0 {
				return "-"
			}
			return fmt.Sprint(*p)
		}
		got := fmt.Sprintln(show(e.InputTokens), show(e.OutputTokens), show(e.Cached), show(e.Reasoning))
		want := fmt.Sprintln(show(now.Want.Input), show(now.Want.Output), show(now.Want.Cached), show(now.Want.Reasoning))
		if got != want {
			t.Errorf("%s %s %s: in, out, cached, reasoning %swant %s", now.Name, now.Path, now.Type, got, want)
		}
		if e.Reply == nil || now.Want.Output == nil { // then the text stands for the count, reasoning included
			noReply++
		} else if text := e.Reply.Reveal(); text != now.Want.Text {
			t.Errorf("%s %s %s: reply\n%q\nwant\n%q", now.Name, now.Path, now.Type, cmp.Or(text, "nothing"), now.Want.Text)
		}
	}
	t.Logf("%d exchanges, %d of them with more output than the text shows", n, noReply)
}
