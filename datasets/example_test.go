package datasets_test

import (
	"fmt"
	"io"
	"strings"

	"reprise/datasets"
	"reprise/trace"
)

// A log is read in batches; its format and the unit of its times are found
// from its content, and a bad line is located and skipped.
func Example() {
	log := inMemory("log.jsonl", `{"timestamp": 0, "input_length": 700, "output_length": 21, "hash_ids": [0, 1]}
{"timestamp": 900, "input_length": 700, "output_length": 34, "hash_ids": [0]}
{"timestamp": 1500, "input_length": 512, "output_length": 55, "hash_ids": [0]}
`)
	src, err := datasets.OpenFiles(log, datasets.Options{MaxBad: 0.5})
	if err != nil {
		fmt.Println(err)
		return
	}
	batch := make([]trace.Entry, 100)
	for err == nil {
		var n int
		n, err = src.Read(batch)
		for _, e := range batch[:n] {
			fmt.Println(e.Time.Sub(datasets.Epoch), *e.InputTokens, e.SourceBlocks)
		}
	}
	if err != io.EOF {
		fmt.Println(err)
		return
	}
	info := src.Info()
	fmt.Println(info.Format, info.TimeUnit, info.Records, info.Bad)
	fmt.Println(info.FirstBad[0])
	// Output:
	// 0s 700 [0 1]
	// 1.5s 512 [0]
	// mooncake ms 2 1
	// log.jsonl:2:1: its block ids are not one for each full block of the input length and one for the rest (--source-block-size tells another size, where a format leaves it open)
}

// inMemory is a source of one file. Those on disk come from datasets.Expand.
func inMemory(name, content string) []datasets.File {
	return []datasets.File{{Name: name, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}}
}

func ExampleParseMapping() {
	m, err := datasets.ParseMapping([]string{"time=when", "input_tokens=usage.in", "output_tokens=usage.out"})
	if err != nil {
		fmt.Println(err)
		return
	}
	log := inMemory("log", `{"when": "2026-01-02T03:04:05Z", "usage": {"in": 120, "out": 7}}`)
	src, err := datasets.OpenFiles(log, datasets.Options{Map: m})
	if err != nil {
		fmt.Println(err)
		return
	}
	batch := make([]trace.Entry, 1)
	if _, err := src.Read(batch); err != nil && err != io.EOF {
		fmt.Println(err)
	}
	fmt.Println(*batch[0].InputTokens, *batch[0].OutputTokens)
	// Output: 120 7
}
