package trace_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"reprise/trace"
)

// What is appended in pieces is read back in the order of its extents, through
// a buffer of any size.
func TestSpill(t *testing.T) {
	dir := t.TempDir()
	s, err := trace.NewSpill(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := rand.New(rand.NewPCG(7, 8))
	const streams = 5
	var extents [streams][]trace.Extent
	var want, held [streams][]byte
	for range 3000 { // a number, its low byte as a length, and as many bytes
		i := r.IntN(streams)
		x := r.Uint64() >> r.IntN(64)
		piece := binary.AppendUvarint(nil, x)
		piece = append(piece, bytes.Repeat([]byte{byte(i)}, int(byte(x)))...)
		held[i] = append(held[i], piece...)
		want[i] = append(want[i], piece...)
		if r.IntN(4) == 0 {
			e, err := s.Append(held[i])
			if err != nil {
				t.Fatal(err)
			}
			extents[i], held[i] = append(extents[i], e), nil
		}
	}
	for i := range streams {
		e, err := s.Append(held[i])
		if err != nil {
			t.Fatal(err)
		}
		extents[i] = append(extents[i], e)
		for _, size := range []int{1, 100, 1 << 20} {
			var got []byte
			sr := s.Reader(size, extents[i]...)
			for {
				x, err := sr.Uvarint()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				b, err := sr.Next(int(byte(x)))
				if err != nil {
					t.Fatal(err)
				}
				got = append(binary.AppendUvarint(got, x), b...)
			}
			if !bytes.Equal(got, want[i]) {
				t.Fatalf("stream %d with a buffer of %d is not what was written", i, size)
			}
		}
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Error("the spill has a name")
	}
}

// What is cut off is no whole number and no whole piece.
func TestSpillCutOff(t *testing.T) {
	s, err := trace.NewSpill(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Append([]byte{0x80, 0x80}); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func(*trace.SpillReader) error{
		"number": func(r *trace.SpillReader) error { _, err := r.Uvarint(); return err },
		"piece":  func(r *trace.SpillReader) error { _, err := r.Next(3); return err },
		"size":   func(r *trace.SpillReader) error { _, err := r.Next(-1); return err },
		"file": func(*trace.SpillReader) error {
			_, err := s.Reader(16, trace.Extent{At: 1, Len: 9}).Next(9)
			return err
		},
	} {
		if err := f(s.Reader(16, trace.Extent{Len: 2})); err == nil || err == io.EOF {
			t.Errorf("%s: %v", name, err)
		}
	}
}
