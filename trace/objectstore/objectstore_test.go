package objectstore

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		name, canonical, dir string
		url                  bool
	}{
		{"s3://b/f/t.parquet", "s3://b/f/t.parquet", "s3://b/f", true},
		{"s3:/b/f/t.parquet", "s3://b/f/t.parquet", "s3://b/f", true}, // as filepath.Join leaves it
		{"gs://b", "gs://b", "gs://", true},
		{"az://b/k?sig=SECRET", "az://b/k?…", "az://b", true},
		{"az://b?sig=SECRET/k", "az://b?…", "", true},
		{"f/t.parquet", "f/t.parquet", "f", false},
		{"s3", "s3", ".", false},
		{"http://b/k", "http://b/k", "", false},
	} {
		if got := IsURL(c.name); got != c.url {
			t.Errorf("IsURL(%s) = %v", c.name, got)
		}
		if got := canonical(c.name); got != c.canonical {
			t.Errorf("canonical(%s) = %s, want %s", c.name, got, c.canonical)
		}
		if got := Dir(c.name); c.dir != "" && got != c.dir {
			t.Errorf("Dir(%s) = %s, want %s", c.name, got, c.dir)
		}
	}
	for _, c := range [][]string{
		{"s3://b/f", "t.parquet", "s3://b/f/t.parquet"}, {"s3://b/f/", "t.parquet", "s3://b/f/t.parquet"},
		{"s3://b", "x", "s3://b/x"}, {"s3:/b/f", "..", "s3://b"}, {"f", "t", filepath.Join("f", "t")},
	} {
		if got := Join(c[0], c[1]); got != c[2] {
			t.Errorf("Join(%s, %s) = %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// Of the machine, each function is that of package os.
func TestOfTheMachine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := f.(*os.File); !ok {
		t.Errorf("%T", f)
	}
	if f, err := Open(name + "2"); f != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v", f, err)
	}
	if linked {
		return
	}
	for _, try := range []func(string) error{
		func(u string) error { _, err := Open(u); return err },
		func(u string) error { _, err := Stat(u); return err },
		func(u string) error { _, err := ReadDir(u); return err },
		func(u string) error { _, err := ReadFile(u); return err },
		func(u string) error { _, err := Glob(u); return err },
		func(u string) error { return Put(u, nil, 0) },
		func(u string) error { return Start("x", u) },
		Remove,
	} {
		if err := try("s3://b/*"); err == nil || !strings.Contains(err.Error(), "reprise-cloud") {
			t.Errorf("without stores: %v", err)
		}
	}
}

// A fake is a fetch process with one object.
type fake struct {
	mu    sync.Mutex
	data  []byte
	reads []int64 // their sizes
	fail  func(m *message) *Error
	parts []byte
}

func (f *fake) client(t *testing.T) *client {
	ask, asked := io.Pipe()
	answers, answer := io.Pipe()
	t.Cleanup(func() { asked.Close() })
	go func() {
		defer answer.Close()
		for {
			var m message
			if m.Read(ask) != nil {
				return
			}
			got := f.do(&m)
			got.ID = m.ID
			got.Write(answer)
		}
	}()
	return newClient(asked, answers)
}

func (f *fake) do(m *message) (got message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		if got.Error = f.fail(m); got.Error != nil {
			return got
		}
	}
	switch m.Op {
	case opRead:
		f.reads = append(f.reads, m.Size)
		got.Data = f.data[m.Offset : m.Offset+m.Size]
	case opPut:
		f.parts = []byte{}
	case opData:
		f.parts = append(f.parts, m.Data...)
	case opCommit:
		f.data = f.parts
	case opAbort:
		f.parts = nil
	}
	return got
}

func bytesOf(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func opened(c *client, size int) *object {
	return &object{client: c, info: info{entry{Name: "k", Bytes: int64(size)}, "s3://b/k"}, chunks: map[int64]*chunk{}}
}

func TestReadAt(t *testing.T) {
	f := &fake{data: bytesOf(50*chunkBytes + 123)}
	o := opened(f.client(t), len(f.data))
	// A footer takes one request, however it is read.
	for _, n := range []int{8, 1000, 100_000} {
		at := len(f.data) - n
		b := make([]byte, n)
		if got, err := o.ReadAt(b, int64(at)); got != n || err != nil || !bytes.Equal(b, f.data[at:]) {
			t.Fatalf("the last %d bytes: %d, %v", n, got, err)
		}
	}
	if len(f.reads) > 2 || f.reads[0] > chunkBytes {
		t.Errorf("a footer was read by %v", f.reads)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		at, b := r.IntN(len(f.data)), make([]byte, r.IntN(3*chunkBytes))
		n, err := o.ReadAt(b, int64(at))
		want := min(len(b), len(f.data)-at)
		if n != want || !bytes.Equal(b[:n], f.data[at:at+n]) || (err == io.EOF) != (n < len(b)) {
			t.Fatalf("%d bytes at %d: %d, %v", len(b), at, n, err)
		}
	}
	if n := len(o.chunks); n > keptChunks {
		t.Errorf("%d chunks are kept", n)
	}
}

// What is read in sequence is asked for in large pieces, each once.
func TestReadAhead(t *testing.T) {
	f := &fake{data: bytesOf(70*chunkBytes + 5)}
	o := opened(f.client(t), len(f.data))
	got, err := io.ReadAll(o)
	if err != nil || !bytes.Equal(got, f.data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	sum := int64(0)
	for _, n := range f.reads {
		sum += n
	}
	if sum != int64(len(f.data)) || len(f.reads) > 2+70/(ahead/2) {
		t.Errorf("%d bytes were asked for in %d requests", sum, len(f.reads))
	}
	if at, err := o.Seek(-5, io.SeekEnd); at != 70*chunkBytes || err != nil {
		t.Error(at, err)
	}
	if got, err := io.ReadAll(o); err != nil || !bytes.Equal(got, f.data[70*chunkBytes:]) {
		t.Error(got, err)
	}
	o.Seek(0, io.SeekStart)
	o.Close()
	if _, err := o.Read(got); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// A store that answered before is asked again; one that never did is not.
func TestAgain(t *testing.T) {
	failing := 0
	f := &fake{data: bytesOf(3 * chunkBytes)}
	f.fail = func(m *message) *Error {
		if failing--; failing < 0 {
			return nil
		}
		return &Error{URL: m.URL, Kind: Later, Text: "it restarts"}
	}
	c := f.client(t)
	failing = 1
	if _, err := opened(c, len(f.data)).ReadAt(make([]byte, 10), 0); err == nil {
		t.Error("the first request was asked again")
	}
	o := opened(c, len(f.data))
	if _, err := o.ReadAt(make([]byte, 10), 0); err != nil {
		t.Fatal(err)
	}
	failing = 2
	b := make([]byte, 10)
	if _, err := o.ReadAt(b, 2*chunkBytes); err != nil || !bytes.Equal(b, f.data[2*chunkBytes:][:10]) {
		t.Error(err)
	}
	// An upload that fails on its way is sent again from its beginning.
	want := bytesOf(maxData + 1000)
	n := 0
	f.fail = func(m *message) *Error {
		if n++; n == 3 { // its second piece
			return &Error{URL: m.URL, Kind: Later, Text: "it restarts"}
		}
		return nil
	}
	err := c.again("s3://b/k", func() error { return c.put("s3://b/k", bytes.NewReader(want), int64(len(want))) })
	if err != nil || !bytes.Equal(f.data, want) {
		t.Errorf("%v, %d bytes", err, len(f.data))
	}
	// What is refused for good is not.
	n = 0
	f.fail = func(m *message) *Error { n++; return &Error{URL: m.URL, Kind: Denied, Text: "no"} }
	if _, err := opened(c, 10).ReadAt(b, 0); !errors.Is(err, fs.ErrPermission) || n != 1 {
		t.Errorf("%v after %d requests", err, n)
	}
}

// When the fetch process ends, whoever waits is told.
func TestEnds(t *testing.T) {
	answers, answer := io.Pipe()
	c := newClient(io.Discard, answers)
	time.AfterFunc(10*time.Millisecond, func() { answer.Close() })
	for range 2 {
		if _, err := c.ask(message{Op: opStat, URL: "s3://b/k"}); err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Error(err)
		}
	}
}

func FuzzMessage(f *testing.F) {
	var b bytes.Buffer
	m := message{ID: 3, Op: opRead, URL: "s3://b/k", Data: []byte("abc"), Error: &Error{Text: "x"}}
	if err := m.Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte{0, 0, 0, 2, 0, 0, 0, 0, '{', '}'})
	f.Add([]byte{255, 255, 255, 255, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var m message
		if m.Read(bytes.NewReader(data)) != nil {
			return
		}
		var b bytes.Buffer
		if err := m.Write(&b); err != nil {
			t.Fatal(err)
		}
		var again message
		if err := again.Read(&b); err != nil || again.ID != m.ID || again.URL != m.URL || !bytes.Equal(again.Data, m.Data) {
			t.Fatalf("%v: %+v became %+v", err, m, again)
		}
	})
}
