package ceiling

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/replay/host"
)

func TestMeasure(t *testing.T) {
	c, err := Measure(t.Context(), 800*time.Millisecond, "v")
	if err != nil {
		t.Fatal(err)
	}
	// Slower than any machine, and faster than any.
	if c.Requests < 100 || c.Requests > 1e7 || c.Events < 1000 || c.Events > 1e8 || c.Streams < 20 || c.Streams > int(c.Events/streamRate) || c.RequestCPU < 1 || c.EventCPU <= 0 || c.Cores < 1 || c.Machine == "" || c.Version != "v" {
		t.Errorf("%+v", c)
	}
	t.Logf("%+v", c)
	if _, err := Measure(t.Context(), time.Millisecond, ""); err == nil {
		t.Error("a millisecond is enough")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Measure(ended, time.Second, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestWarning(t *testing.T) {
	c := Ceiling{Requests: 1000, Events: 10000}
	for _, l := range []struct {
		requests, events float64
		want             string
	}{
		{0, 0, ""}, {600, 600, ""}, {100, 5100, ""},
		{700, 700, "the busiest second has 700 requests and 700 tokens, 70 % of what this machine can send (1000 requests/s or 10000 events/s, by reprise check --self). Above 60 % requests may leave late: send the workload from 2 machines, each a part of the sessions (--shard)"},
		{1000, 11000, "the busiest second has 1000 requests and 11000 tokens, 200 % of what this machine can send (1000 requests/s or 10000 events/s, by reprise check --self). Above 60 % requests may leave late: send the workload from 4 machines, each a part of the sessions (--shard)"},
	} {
		if got := c.Warning(l.requests, l.events); got != l.want {
			t.Errorf("%v/s and %v events/s:\n got %s\nwant %s", l.requests, l.events, got, l.want)
		}
	}
}

func TestWriteText(t *testing.T) {
	var b strings.Builder
	c := Ceiling{Requests: 11904, Events: 204088, Streams: 4081, RequestCPU: 66.5, EventCPU: 6.67, Machine: "a CPU, 2 cores, linux/amd64"}
	if err := c.WriteText(&b, "FILE"); err != nil {
		t.Fatal(err)
	}
	want := `Requests   11904 a second, of answers of one token; 66 µs of CPU each
Events     204088 a second, of 512 streams at once; 6.7 µs of CPU each
Streams    4081 at once, of 50 events a second each
Measured on a CPU, 2 cores, linux/amd64, against a server in the same process, whose
CPU is in these figures. A replay warns before its start when its busiest second
takes more than 60 % of this. Saved in FILE
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}

func TestSaved(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", home)
	if c, err := Saved(); c != nil || err != nil {
		t.Errorf("before: %+v, %v", c, err)
	}
	mine, err := Measure(t.Context(), 300*time.Millisecond, "v")
	if err != nil {
		t.Fatal(err)
	}
	path, err := Save(mine)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Saved(); err != nil || got == nil || *got != mine {
		t.Errorf("%+v, %v, want %+v", got, err, mine)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	other := mine
	other.Machine = "another"
	if _, err := Save(other); err != nil {
		t.Fatal(err)
	}
	if c, err := Saved(); c != nil || err != nil {
		t.Errorf("of another machine: %+v, %v", c, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Saved(); err == nil || err.Error() != "ceiling: reprise/ceiling.json in the cache directory is damaged: measure again with reprise check --self" {
		t.Errorf("damaged: %v", err)
	}
}

// Several processes may save at once: the file is that of one of them, whole.
func TestSaveAtOnce(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	c := Ceiling{Requests: 1, Events: 1, Machine: machine(host.This())}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			mine := c
			mine.Version = strings.Repeat("v", 1+i*10_000)
			for range 20 {
				if _, err := Save(mine); err != nil {
					t.Error(err)
				}
				if got, err := Saved(); err != nil || got == nil {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	all.Wait()
}
