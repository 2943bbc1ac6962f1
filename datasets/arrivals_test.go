package datasets

import (
	"io"
	"strings"
	"testing"
	"time"

	"reprise/trace"
	"reprise/trace/arrival"
)

func processOf(t testing.TB, spec string) arrival.Process {
	t.Helper()
	s, err := arrival.ParseProcess(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s.New(arrival.Stream(1, "arrivals"))
}

func distOf(t testing.TB, spec, name string) arrival.Dist {
	t.Helper()
	s, err := arrival.ParseDist(spec)
	if err != nil {
		t.Fatal(err)
	}
	return s.New(arrival.Stream(1, name))
}

// entries yields a slice of entries a few at a time.
type entries []trace.Entry

func (e *entries) Read(batch []trace.Entry) (int, error) {
	n := copy(batch, *e)
	*e = (*e)[n:]
	if len(*e) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func TestTimed(t *testing.T) {
	turn := func(parents ...int64) trace.Entry { return trace.Entry{Parents: parents} }
	src := &entries{turn(), turn(0), turn(1), turn(), turn(), turn(2, 3), turn(99)}
	got, err := readAll(Timed(src, processOf(t, "constant:0.1"), distOf(t, "constant:2s", "service"), distOf(t, "constant:5s", "think")))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		at    time.Duration
		later bool
	}{{0, false}, {7 * time.Second, true}, {14 * time.Second, true}, {10 * time.Second, false}, {20 * time.Second, false},
		{21 * time.Second, true}, {30 * time.Second, false}} { // the last parent counts; one that is not there does not
		e := got[i]
		if at := e.Time.Sub(Epoch); at != want.at || (e.Think != nil) != want.later || want.later && *e.Think != 5*time.Second {
			t.Errorf("entry %d arrives at %v, think %v; want %v", i, at, e.Think, want.at)
		}
	}
}

// For any draws: a turn arrives after its parent by service and think, and
// first turns by the process, whatever the other streams do.
func TestTimedConversations(t *testing.T) {
	one := `{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"},{"from":"gpt","value":"d"}]}`
	in := "[" + strings.Repeat(one+",", 499) + one + "]"
	src, err := Open(strings.NewReader(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(Timed(src, processOf(t, "poisson:2"), distOf(t, "lognormal:4s,1", "service"), distOf(t, "lognormal:9s,1.5", "think")))
	if err != nil || len(got) != 1000 {
		t.Fatal(len(got), err)
	}
	process, service, think := processOf(t, "poisson:2"), distOf(t, "lognormal:4s,1", "service"), distOf(t, "lognormal:9s,1.5", "think")
	var start time.Duration
	for i := 0; i < len(got); i += 2 {
		if i > 0 {
			start += process.Next()
		}
		if at := got[i].Time.Sub(Epoch); at != start || got[i].Think != nil {
			t.Fatalf("entry %d arrives at %v, want %v", i, at, start)
		}
		pause := think.Draw()
		if gap := got[i+1].Time.Sub(got[i].Time); gap != service.Draw()+pause || *got[i+1].Think != pause {
			t.Fatalf("entry %d follows after %v", i+1, gap)
		}
	}
}

func TestTimedRefusesTimes(t *testing.T) {
	src := &entries{{}, {Time: Epoch}}
	got, err := readAll(Timed(src, processOf(t, "poisson:1"), distOf(t, "constant:0s", ""), distOf(t, "constant:0s", "")))
	if err == nil || !strings.Contains(err.Error(), "has its own times") || len(got) != 1 {
		t.Errorf("%d entries, %v", len(got), err)
	}
}
