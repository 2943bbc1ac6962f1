// Command biglog writes a large made-up source log to stdout, to measure import
// with. It is not part of the tests:
//
//	go run ./anonymize/testdata/biglog -format mooncake -bytes 2e9 >big.jsonl
//	go run ./anonymize/testdata/biglog -format mooncake -hashed -bytes 2e9 >hashed.jsonl
//	go run ./anonymize/testdata/biglog -format sharegpt -bytes 2e9 -like sample.json >big.json
//	/usr/bin/time -v reprise import big.jsonl -o big.parquet
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
)

func main() {
	format := flag.String("format", "mooncake", "mooncake or sharegpt")
	size := flag.Float64("bytes", 1e6, "about how many bytes to write")
	like := flag.String("like", "", "ShareGPT file whose texts are used over and over, each time told apart")
	hashed := flag.Bool("hashed", false, "ids all over 63 bits, as hashes are, in place of numbers by first appearance")
	flag.Parse()
	out := &counter{w: bufio.NewWriterSize(os.Stdout, 1<<20)}
	var err error
	switch *format {
	case "mooncake":
		err = mooncake(out, int64(*size), *hashed)
	case "sharegpt":
		err = shareGPT(out, int64(*size), *like)
	default:
		err = fmt.Errorf("unknown format")
	}
	if err == nil {
		err = out.w.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "biglog:", err)
		os.Exit(1)
	}
}

type counter struct {
	w *bufio.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// mooncake writes rows like those of the published conversation trace: 24 ids
// on average. Some 60 in 100 are new, and most of those never occur again.
func mooncake(out *counter, size int64, hashed bool) error {
	rnd := rand.New(rand.NewPCG(1, 1))
	recent := make([][]uint64, 20_000) // prompts that later ones build on
	next := uint64(1)
	var row []byte
	for at := 0; out.n < size; at += rnd.IntN(3) {
		ids := []uint64{0}
		if old := recent[rnd.IntN(len(recent))]; old != nil && rnd.IntN(100) < 80 {
			ids = append(ids[:0], old[:1+rnd.IntN(min(len(old), 35))]...)
		}
		for range 1 + rnd.IntN(28) {
			ids = append(ids, next)
			next++
		}
		if len(ids) > 200 {
			ids = ids[:200]
		}
		recent[rnd.IntN(len(recent))] = ids
		row = fmt.Appendf(row[:0], `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [`, at, 512*len(ids)-rnd.IntN(512), 1+rnd.IntN(800))
		for i, id := range ids {
			if i > 0 {
				row = append(row, ", "...)
			}
			if hashed {
				id = id * 0x9e3779b97f4a7c15 % (1 << 63) // an odd factor: no two become one
			}
			row = strconv.AppendUint(row, id, 10)
		}
		row = append(row, "]}\n"...)
		if _, err := out.Write(row); err != nil {
			return err
		}
	}
	return nil
}

type conversation struct {
	ID            string              `json:"id"`
	Conversations []map[string]string `json:"conversations"`
}

// shareGPT writes the conversations of a file again and again, with a serial
// number before each text so that no prefix repeats.
func shareGPT(out *counter, size int64, like string) error {
	sample, err := conversations(like)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, "["); err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for n := 0; out.n < size; n++ {
		c := sample[n%len(sample)]
		again := conversation{ID: fmt.Sprint("c", n)}
		for i, turn := range c.Conversations {
			again.Conversations = append(again.Conversations, map[string]string{"from": turn["from"], "value": fmt.Sprint(n, " ", i, " ", turn["value"])})
		}
		if n > 0 {
			if _, err := io.WriteString(out, ","); err != nil {
				return err
			}
		}
		if err := enc.Encode(again); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, "]\n")
	return err
}

func conversations(like string) ([]conversation, error) {
	var sample []conversation
	if like != "" {
		b, err := os.ReadFile(like)
		if err != nil {
			return nil, err
		}
		return sample, json.Unmarshal(b, &sample)
	}
	words := []string{"the", "cache", "of", "a", "server", "keeps", "what", "it", "computed", "for", "earlier", "prompts,", "so", "that", "later", "ones", "are", "answered", "sooner.", "\n", "42", "Über", "数据"}
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 500 {
		var c conversation
		for i := range 2 + 2*rnd.IntN(5) {
			var text []byte
			for range 20 + rnd.IntN(300) {
				text = append(append(text, words[rnd.IntN(len(words))]...), ' ')
			}
			c.Conversations = append(c.Conversations, map[string]string{"from": []string{"human", "gpt"}[i%2], "value": string(text)})
		}
		sample = append(sample, c)
	}
	return sample, nil
}
