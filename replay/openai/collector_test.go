package openai

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// collect reads a stream to its end and returns what became of the request.
func collect(s *Scanner, c *Collector) Outcome {
	for {
		ev, err := s.Scan()
		if err != nil {
			return c.Finish(ev.At, err)
		}
		c.Add(ev)
	}
}

// A Collector that was used before gives what a new one gives.
func TestCollectorReset(t *testing.T) {
	used := NewCollector(1 << 10)
	for _, row := range quirks {
		feed := func(c *Collector) Outcome {
			w := &wire{reads: append([]string(nil), row.reads...), err: row.err}
			return collect(NewScanner(w, w.clock, 0), c)
		}
		used.Reset()
		a, b := feed(used), feed(NewCollector(1<<10))
		if summary(a, true) != summary(b, true) || string(a.Text.Content) != string(b.Text.Content) ||
			string(a.Text.Reasoning) != string(b.Text.Reasoning) || string(a.Text.Tools) != string(b.Text.Tools) {
			t.Errorf("%s: %+v\nwant %+v", row.name, a, b)
		}
	}
}

// A long answer is decoded in several batches, and nothing is lost between them.
func TestCollectorBatches(t *testing.T) {
	c := NewCollector(0)
	largest := 0
	for i := range 2000 {
		c.Add(Event{At: time.Duration(i), Data: []byte(tokA[len("data: "):])})
		c.Add(Event{Comment: true})
		largest = max(largest, len(c.raw))
	}
	out := c.Finish(2000, nil)
	if out.TokenEvents != 2000 || len(out.Gaps) != 1999 || out.Comments != 2000 || out.LastToken != 1999 {
		t.Errorf("%s", summary(out, false))
	}
	if largest > batchBytes {
		t.Errorf("%d bytes held", largest)
	}
	c.Reset()
	for range 1_000_000 {
		c.Add(Event{Comment: true})
	}
	if cap(c.marks) > batchBytes {
		t.Errorf("%d comments held", cap(c.marks))
	}
}

// What a giant event made grow is not kept for the next answer.
func TestResetDropsGiantBuffers(t *testing.T) {
	giant := `data: {"choices":[{"index":0,"text":"` + strings.Repeat("x", 1<<20) + `"}]}` + "\n\n"
	s, c := NewScanner(strings.NewReader(giant), noClock, 0), NewCollector(0)
	if out := collect(s, c); out.TokenEvents != 1 {
		t.Fatalf("%s", summary(out, false))
	}
	s.Reset(strings.NewReader(""))
	c.Reset()
	if n := cap(s.buf) + cap(s.data) + cap(c.raw); n > 4*batchBytes {
		t.Errorf("%d bytes kept", n)
	}
}

func TestAddReportsDone(t *testing.T) {
	c := NewCollector(0)
	for _, row := range []struct {
		data string
		done bool
	}{{"{}", false}, {"[DONE]", true}, {"{}", true}} {
		if got := c.Add(Event{Data: []byte(row.data)}); got != row.done {
			t.Errorf("%s: %v", row.data, got)
		}
	}
}

func TestIDAndModel(t *testing.T) {
	long := strings.Repeat("é", 100)
	c := NewCollector(0)
	c.Add(Event{Data: []byte(`{"id":"","model":"` + long + `"}`)})
	c.Add(Event{Data: []byte(`{"id":"a\"b","model":"later"}`)})
	out := c.Finish(0, nil)
	if out.ID != `a"b` || out.Model != long[:128] {
		t.Errorf("id %q, model %q", out.ID, out.Model)
	}
}

func TestMissingDone(t *testing.T) {
	for _, row := range []struct {
		stream string
		want   bool
	}{{tokA + finish, true}, {tokA + finish + done, false}, {tokA, false}} {
		out := collect(NewScanner(strings.NewReader(row.stream), noClock, 0), NewCollector(0))
		if out.MissingDone() != row.want {
			t.Errorf("%q: %v", row.stream, out.MissingDone())
		}
	}
}

// The body of an answer that is no stream is one event.
func TestWholeAnswer(t *testing.T) {
	c := NewCollector(100)
	c.Add(Event{At: 5, Data: []byte(`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi there"},"finish_reason":"stop"}],` +
		`"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`)})
	out := c.Finish(6, io.EOF)
	if out.Err != nil || out.FirstToken != 5 || out.Done != 6 || string(out.Text.Content) != "Hi there" || !reflect.DeepEqual(out.EventTokens, []int32{2}) {
		t.Errorf("%+v", out)
	}
}

func TestText(t *testing.T) {
	stream := `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm\n","reasoning":"hm\n"}},{"index":1,"delta":{"content":"not kept"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"content":"caf\u00e9 \ud83d\ude00"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"id":"t","function":{"name":"f","arguments":"{\"a\""}},{"function":{"name":null,"arguments":":1}"}},7,{"function":null}]}}]}` + "\n\n"
	read := func(limit int) Text {
		return collect(NewScanner(strings.NewReader(stream), noClock, 0), NewCollector(limit)).Text
	}
	if got := read(1000); string(got.Content) != "café 😀" || string(got.Reasoning) != "hm\n" || string(got.Tools) != `f{"a":1}` || got.Truncated {
		t.Errorf("%+v", got)
	}
	full := read(1000)
	if got := read(full.size()); got.Truncated {
		t.Errorf("a limit that suffices truncates: %+v", got)
	}
	for limit := 1; limit < full.size(); limit++ {
		if got := read(limit); got.size() != limit || !got.Truncated || !bytes.HasPrefix(full.Tools, got.Tools) {
			t.Errorf("limit %d: %+v", limit, got)
		}
	}
	if got := read(0); got.size() != 0 || got.Truncated {
		t.Errorf("kept without being asked: %+v", got)
	}
}

func TestCollectorAllocations(t *testing.T) {
	var stream bytes.Buffer
	stream.WriteString(role)
	for range 500 {
		stream.WriteString(typical)
	}
	stream.WriteString(finish + counts + done)
	src := bytes.NewReader(nil)
	s, c := NewScanner(src, noClock, 0), NewCollector(0)
	run := func() {
		src.Reset(stream.Bytes())
		s.Reset(src)
		c.Reset()
		if out := collect(s, c); out.Err != nil || out.TokenEvents != 500 {
			t.Fatal(summary(out, false))
		}
	}
	run()
	// Id, model and usage of the whole answer; nothing for each event.
	if n := testing.AllocsPerRun(20, run); n > 8 {
		t.Errorf("%v allocations for an answer of 500 tokens", n)
	}
}

func FuzzCollector(f *testing.F) {
	for _, row := range quirks {
		f.Add([]byte(strings.Join(row.reads, "")))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		w := &wire{reads: []string{string(stream)}}
		out := collect(NewScanner(w, w.clock, 0), NewCollector(100))
		bytewise := collect(NewScanner(iotest.OneByteReader(bytes.NewReader(stream)), noClock, 0), NewCollector(100))
		if a, b := summary(out, false), summary(bytewise, false); a != b {
			t.Fatalf("one read: %s\nbyte by byte: %s", a, b)
		}
		tokens := out.TokenEvents > 0
		if tokens != (out.FirstToken != NoInstant) || tokens != (out.LastToken != NoInstant) || len(out.Gaps) != max(out.TokenEvents-1, 0) {
			t.Fatalf("tokens and instants disagree: %+v", out)
		}
		if n := len(out.EventTokens); n != 0 && n != out.TokenEvents {
			t.Fatalf("%d token counts for %d events", n, out.TokenEvents)
		}
		if out.TokenEvents+out.Malformed > out.Events || out.Text.size() > 100 || len(out.ID) > maxName {
			t.Fatalf("%+v", out)
		}
	})
}

// BenchmarkCollector folds an answer of 500 chunks, scanning included and left out.
func BenchmarkCollector(b *testing.B) {
	const events = 504
	stream := []byte(role + strings.Repeat(typical, 500) + finish + counts + done)
	perEvent := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events/1000, "µs/event")
	}
	for _, row := range []struct {
		name    string
		maxText int
	}{{"decode", 0}, {"decode+text", 1 << 20}} {
		b.Run(row.name, func(b *testing.B) {
			c := NewCollector(row.maxText)
			data := []byte(typical[len("data: "):])
			b.ReportAllocs()
			for b.Loop() {
				c.Reset()
				for range events {
					c.Add(Event{Data: data})
				}
				c.Finish(0, nil)
			}
			perEvent(b)
		})
	}
	b.Run("scan+decode", func(b *testing.B) {
		src := bytes.NewReader(nil)
		s, c := NewScanner(src, noClock, 0), NewCollector(0)
		b.ReportAllocs()
		for b.Loop() {
			src.Reset(stream)
			s.Reset(src)
			c.Reset()
			collect(s, c)
		}
		perEvent(b)
	})
}
