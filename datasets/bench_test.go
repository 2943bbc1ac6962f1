package datasets

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"reprise/datasets/internal/record"
	"reprise/trace"
)

// benchmark reads in over and over; the throughput is that of one core.
func benchmark(b *testing.B, in []byte, slow bool) {
	batch := make([]trace.Entry, 128)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		s, err := Open(bytes.NewReader(in), Options{})
		if err != nil {
			b.Fatal(err)
		}
		if d, ok := s.dec.(*mooncakeDecoder); ok {
			d.slow = slow
		}
		for err == nil {
			_, err = s.Read(batch)
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
}

// mooncakeLog has rows like those of the published conversation trace, with 24
// ids on average.
func mooncakeLog() []byte {
	var log bytes.Buffer
	for i := range 10_000 {
		blocks := 1 + i*7%47
		fmt.Fprintf(&log, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [0`, i*300, blocks*MooncakeBlock-100, i%1000)
		for j := 1; j < blocks; j++ {
			fmt.Fprintf(&log, ", %d", 1000+i*40+j)
		}
		log.WriteString("]}\n")
	}
	return log.Bytes()
}

func BenchmarkMooncake(b *testing.B) { benchmark(b, mooncakeLog(), false) }

// BenchmarkMooncakeByJSON is the same without the parser by hand, which has to
// earn its place.
func BenchmarkMooncakeByJSON(b *testing.B) { benchmark(b, mooncakeLog(), true) }

func shareGPTLog() []byte {
	turn := func(from string, words int) string {
		return fmt.Sprintf(`{"from":"%s","value":"%s"}`, from, strings.Repeat(`The \"quick\" brown fox jumps over the lazy dog and back again.\n`, words/12))
	}
	one := `{"id":"x","conversations":[` + turn("human", 20) + "," + turn("gpt", 90) + "," + turn("human", 10) + "," + turn("gpt", 120) + "]}"
	return []byte("[" + strings.Repeat(one+",\n", 999) + one + "]")
}

// BenchmarkFormats reads the example of each format over and over. A format of which no example is a whole file has none.
func BenchmarkFormats(b *testing.B) {
	for _, of := range Formats() {
		in := of.Example + "\n"
		if header, row, ok := strings.Cut(in, "\n"); ok && row != "" {
			in = header + "\n" + strings.Repeat(row, 1000)
		} else {
			in = strings.Repeat(in, 1000)
		}
		if _, _, err := read(strings.NewReader(in), Options{}); err != nil {
			continue
		}
		b.Run(of.Name, func(b *testing.B) { benchmark(b, []byte(in), false) })
	}
	b.Run("sharegpt of many", func(b *testing.B) { benchmark(b, shareGPTLog(), false) })
}

func azureLog() []byte {
	return []byte(azureHeader + strings.Repeat("2023-11-16 18:17:03.9799600,4808,10\r\n", 20_000))
}

// BenchmarkDetect is what it costs to find the format of a file, which comes before each
// import: its size does not matter beyond the first 64 KiB.
func BenchmarkDetect(b *testing.B) {
	for name, in := range map[string][]byte{"Mooncake": mooncakeLog(), "ShareGPT": shareGPTLog(), "Azure": azureLog()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := detectFormat(in[:record.HeadBytes]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
