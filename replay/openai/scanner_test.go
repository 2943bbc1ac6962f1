package openai

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// A wire gives one string for each Read, then err (io.EOF when nil). Its clock counts
// the Reads in milliseconds, from 1.
type wire struct {
	reads []string
	err   error
	n     int
}

func (w *wire) Read(p []byte) (int, error) {
	w.n++
	if len(w.reads) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		return 0, io.EOF
	}
	n := copy(p, w.reads[0])
	if w.reads[0] = w.reads[0][n:]; w.reads[0] == "" {
		w.reads = w.reads[1:]
	}
	return n, nil
}

func (w *wire) clock() time.Duration { return time.Duration(w.n) * time.Millisecond }

func noClock() time.Duration { return 0 }

// show scans to the end and writes each event as name|data, or #comment.
func show(s *Scanner) (events []string, err error) {
	for {
		ev, err := s.Scan()
		switch {
		case err != nil:
			return events, err
		case ev.Comment:
			events = append(events, "#"+string(ev.Data))
		default:
			events = append(events, string(ev.Name)+"|"+string(ev.Data))
		}
	}
}

var scannerRows = []struct {
	name, wire string
	want       []string
}{
	{"usual", "data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
	{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}},
	{"carriage returns", "data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
	{"mixed line ends", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", []string{"|a", "|b", "|c"}},
	{"no space", "data:a\n\n", []string{"|a"}},
	{"only one space is taken", "data:  a\n\n", []string{"| a"}},
	{"several lines", "data: a\ndata: b\ndata:\n\n", []string{"|a\nb\n"}},
	{"empty data", "data:\n\ndata: \n\ndata\n\n", []string{"|", "|", "|"}},
	{"comments", ":\n\n: ping\n\n:x\ndata: a\n\n", []string{"#", "# ping", "#x", "|a"}},
	{"comment between the lines of an event", "data: a\n: ping\ndata: b\n\n", []string{"# ping", "|a\nb"}},
	{"comment in data", "data: : keepalive\n\n", []string{"|: keepalive"}},
	{"event field", "event: ping\ndata: a\n\ndata: b\n\n", []string{"ping|a", "|b"}},
	{"event without data", "event: ping\n\ndata: b\n\n", []string{"|b"}},
	{"id and retry mean nothing", "id: 7\nretry: 10\ndata: a\n\n", []string{"|a"}},
	{"event named error without data", "data: a\n\nevent: error\n: it broke\n\ndata: b\n\n", []string{"|a", "# it broke", "error|", "|b"}},
	{"event named error at the end", "event: error\n", []string{"error|"}},
	{"JSON without its name, behind an event", "data: a\n\n{\"error\":1}\n\ndata: b\n\n", []string{"|a", "|{\"error\":1}", "|b"}},
	{"unknown field", "{\"error\":1}\ndat: a\n\n", nil},
	{"error field", "error: {}\n\ndata: b\n\n", []string{"error|{}", "|b"}},
	{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"|a"}},
	{"byte order mark later", "\n\xef\xbb\xbfdata: a\n\n", nil},
	{"no blank line at the end", "data: a\n\ndata: b\n", []string{"|a", "|b"}},
	{"no line end at the end", "data: a\n\ndata: b", []string{"|a", "|b"}},
	{"carriage return at the end", "data: a\r", []string{"|a"}},
	{"blank lines", "\n\n\r\n\rdata: a\n\n\n\n", []string{"|a"}},
	{"nothing", "", nil},
}

func TestScannerRows(t *testing.T) {
	for _, row := range scannerRows {
		t.Run(row.name, func(t *testing.T) {
			readers := map[string]io.Reader{
				"one read":      strings.NewReader(row.wire),
				"byte by byte":  iotest.OneByteReader(strings.NewReader(row.wire)),
				"half reads":    iotest.HalfReader(strings.NewReader(row.wire)),
				"data with EOF": iotest.DataErrReader(strings.NewReader(row.wire)),
			}
			for how, r := range readers {
				got, err := show(NewScanner(r, noClock, 0))
				if err != io.EOF || !slices.Equal(got, row.want) {
					t.Errorf("%s: got %q, %v, want %q", how, got, err, row.want)
				}
			}
		})
	}
}

func TestScannerInstants(t *testing.T) {
	w := &wire{reads: []string{
		"data: a\n\ndata: b\n\nda", // 1: two events and the beginning of the third
		"ta: c",                    // 2
		"\n",                       // 3
		"\n: ping\n",               // 4: the blank line completes c
		"data: d\r\n\r",            // 5: the blank line is complete at its \r
		"\ndata: e\n",              // 6: and then the stream ends, at 7
	}}
	s := NewScanner(w, w.clock, 0)
	want := []time.Duration{1, 1, 4, 4, 5, 6}
	for i, at := range want {
		ev, err := s.Scan()
		if err != nil || ev.At != at*time.Millisecond {
			t.Fatalf("event %d: at %v, %v, want %v ms", i, ev.At, err, int(at))
		}
	}
	for range 2 {
		if ev, err := s.Scan(); err != io.EOF || ev.At != 7*time.Millisecond {
			t.Fatalf("end: at %v, %v", ev.At, err)
		}
	}
}

// A delayedSource gives one read after another, and says when that was and how long its bytes had waited.
type delayedSource struct {
	reads  []string
	delays []time.Duration
	delay  time.Duration
}

func (d *delayedSource) Read(p []byte) (int, error) {
	if len(d.reads) == 0 {
		return 0, io.EOF
	}
	n := copy(p, d.reads[0])
	d.delay = d.delays[0]
	d.reads, d.delays = d.reads[1:], d.delays[1:]
	return n, nil
}

func (d *delayedSource) ReadInstant() (at, delay time.Duration) { return 7 * time.Second, d.delay }

// An event has the delay of the read that completed it, below zero where more of the
// stream came with that read.
func TestScannerReadDelays(t *testing.T) {
	s := NewScanner(&delayedSource{
		reads:  []string{"data: a\n\ndata: b\n\n", "data: c\r\n\r\n", "data: d", "\n\n:", "\ndata: e\n\n"},
		delays: []time.Duration{1500, 0, time.Second, 2 * time.Millisecond, -1},
	}, noClock, 0)
	for _, want := range []struct {
		data  string
		delay int32
	}{{"a", -2}, {"b", 2}, {"c", 1}, {"d", -2000}, {"", 0}, {"e", 0}} {
		if ev, err := s.Scan(); err != nil || string(ev.Data) != want.data || ev.ReadDelay != want.delay || ev.At != 7*time.Second {
			t.Errorf("event %q at %v has delay %d, %v; want %q, %d", ev.Data, ev.At, ev.ReadDelay, err, want.data, want.delay)
		}
	}
}

func TestScannerLimit(t *testing.T) {
	const limit = 10_000
	long := strings.Repeat("x", limit-len("data:"))
	for _, row := range []struct {
		name, wire string
		want       error
	}{
		{"longest line", "data:" + long + "\n\n", io.EOF},
		{"line too long", "data:" + long + "x\n\n", errEventTooLong},
		{"line without an end", strings.Repeat("x", 3*limit), errEventTooLong},
		{"longest event of two lines", "data:" + long + "\ndata:1234\n\n", io.EOF},
		{"event too long", "data:" + long + "\ndata:123456\n\ndata: never seen\n\n", errEventTooLong},
	} {
		for how, r := range map[string]io.Reader{
			"one read":     strings.NewReader(row.wire),
			"byte by byte": iotest.OneByteReader(strings.NewReader(row.wire)),
		} {
			s := NewScanner(r, noClock, limit)
			events, err := show(s)
			if err != row.want || err == io.EOF && len(events) != 1 || err != io.EOF && len(events) != 0 {
				t.Errorf("%s, %s: %d events, %v", row.name, how, len(events), err)
			}
			if _, again := s.Scan(); again != err {
				t.Errorf("%s, %s: then %v", row.name, how, again)
			}
		}
	}
}

func TestScannerReadErrors(t *testing.T) {
	broken := errors.New("broken")
	s := NewScanner(&wire{reads: []string{"data: a\n\ndata: b\n"}, err: broken}, noClock, 0)
	if got, err := show(s); err != broken || !slices.Equal(got, []string{"|a", "|b"}) {
		t.Errorf("broken connection: %q, %v", got, err)
	}
	if _, err := show(NewScanner(idle{}, noClock, 0)); err != io.ErrNoProgress {
		t.Errorf("reader that gives nothing: %v", err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestScannerReset(t *testing.T) {
	s := NewScanner(strings.NewReader("event: x\ndata: left over"), noClock, 0)
	for _, row := range scannerRows {
		s.Reset(strings.NewReader(row.wire))
		if got, err := show(s); err != io.EOF || !slices.Equal(got, row.want) {
			t.Errorf("%s: got %q, %v, want %q", row.name, got, err, row.want)
		}
		s.Reset(strings.NewReader("event: x\ndata: left over\r"))
		if _, err := s.Scan(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestScannerDoesNotAllocate(t *testing.T) {
	s := NewScanner(&endless{text: []byte(typical)}, noClock, 0)
	read := func() {
		if _, err := s.Scan(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		read()
	}
	if n := testing.AllocsPerRun(1000, read); n != 0 {
		t.Errorf("%v allocations for an event", n)
	}
}

// endless repeats a text.
type endless struct {
	text []byte
	i    int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.i:])
	e.i = (e.i + n) % len(e.text)
	return n, nil
}

// typical is a chunk as vLLM sends it, 236 bytes on the wire.
const typical = `data: {"id":"chatcmpl-8f5a3d0f6e0b4c1c9d6e2a7b5c4d3e2f","object":"chat.completion.chunk","created":1767225600,` +
	`"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" benchmark"},"logprobs":null,"finish_reason":null}]}` + "\n\n"

// reference reads a stream whose line ends are line feeds, the obvious way.
func reference(wire string) (data []string) {
	var lines []string
	has, isError := false, false
	for _, line := range append(strings.Split(strings.TrimPrefix(wire, "\ufeff"), "\n"), "") {
		field, value, _ := strings.Cut(line, ":")
		switch {
		case line == "" && (has || isError):
			data = append(data, strings.Join(lines, "\n"))
			lines, has, isError = nil, false, false
		case field == "event":
			isError = strings.TrimPrefix(value, " ") == "error"
		case len(data) > 0 && strings.HasPrefix(line, "{"):
			lines, has = append(lines, line), true
		case field == "data" || field == "error":
			lines, has = append(lines, strings.TrimPrefix(value, " ")), true
		}
	}
	return data
}

func FuzzScanner(f *testing.F) {
	for _, row := range scannerRows {
		f.Add([]byte(row.wire))
	}
	for _, row := range quirks {
		f.Add([]byte(strings.Join(row.reads, "")))
	}
	f.Add([]byte("event:#ping\ndata: "))
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 1 << 12
		whole, err := show(NewScanner(bytes.NewReader(stream), noClock, limit))
		bytewise, err2 := show(NewScanner(iotest.OneByteReader(bytes.NewReader(stream)), noClock, limit))
		if err != err2 || !slices.Equal(whole, bytewise) {
			t.Fatalf("one read: %q, %v\nbyte by byte: %q, %v", whole, err, bytewise, err2)
		}
		if err != io.EOF || bytes.IndexByte(stream, '\r') >= 0 {
			return
		}
		var data []string
		for _, ev := range whole {
			if _, d, ok := strings.Cut(ev, "|"); ok && ev[0] != '#' {
				data = append(data, d)
			}
		}
		// A name may itself hold a '|', or begin with the mark of a comment.
		if !bytes.ContainsAny(stream, "|#") && !slices.Equal(data, reference(string(stream))) {
			t.Fatalf("got %q, reference %q", data, reference(string(stream)))
		}
	})
}

// BenchmarkScanner: chunks as they come, one to a read of a pooled stream, and many to a read.
func BenchmarkScanner(b *testing.B) {
	for name, src := range map[string]io.Reader{
		"event-per-read": &endless{text: []byte(typical)},
		"4KiB-reads":     &endless{text: bytes.Repeat([]byte(typical), 100)},
	} {
		b.Run(name, func(b *testing.B) {
			s := NewScanner(src, noClock, 0)
			b.SetBytes(int64(len(typical)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Scan(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
