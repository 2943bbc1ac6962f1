package picture

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"strings"
	"testing"
)

// Every image is a sound PNG of its size: the reader checks all checksums. The same seed is
// the same image, and another seed another.
func TestAppendURL(t *testing.T) {
	var m Maker
	for _, size := range []Size{{1, 1}, {28, 28}, {1, 9}, {640, 17}, {224, 448}, {22000, 3}} {
		var images []string
		for _, seed := range []uint64{1, 2, 1} {
			url := string(m.AppendURL(nil, size, seed))
			file, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(url, "data:image/png;base64,"))
			if err != nil {
				t.Fatal(err)
			}
			img, err := png.Decode(bytes.NewReader(file))
			if err != nil {
				t.Fatalf("%v: %v", size, err)
			}
			if b := img.Bounds(); b.Dx() != size.Width || b.Dy() != size.Height {
				t.Errorf("%v: %v", size, b)
			}
			images = append(images, url)
		}
		if images[0] != images[2] || images[0] == images[1] {
			t.Errorf("%v: the same seed must give the same image, and another seed another", size)
		}
	}
	again := new(Maker).AppendURL(nil, Size{28, 28}, 7)
	if got := m.AppendURL([]byte("x"), Size{28, 28}, 7); string(got) != "x"+string(again) {
		t.Error("the image depends on what was made before")
	}
}

// What is kept is bounded.
func TestKept(t *testing.T) {
	m := Maker{kept: maxKept + 1, below: map[Size]rows{{1, 1}: {}}}
	m.AppendURL(nil, Size{2, 2}, 1)
	if len(m.below) != 1 || m.kept > 1000 {
		t.Errorf("%d sizes, %d bytes", len(m.below), m.kept)
	}
}

func BenchmarkAppendURL(b *testing.B) {
	var m Maker
	var dst []byte
	for i := range b.N {
		dst = m.AppendURL(dst[:0], Size{896, 896}, uint64(i))
	}
	b.ReportMetric(float64(len(dst)), "bytes/image")
}
