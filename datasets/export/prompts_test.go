package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"reprise/datasets/export"
	"reprise/synth/prompt"
	"reprise/trace"
	"reprise/trace/token"
)

// The prompts in a file have exactly the tokens of their rows, and share what
// the blocks of their rows share.
func TestWrittenPromptsAreExact(t *testing.T) {
	tok, err := token.Open("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(9, 10))
	for _, size := range []int{16, 512} {
		prompter, err := prompt.New(tok.Words(), 1, size)
		if err != nil {
			t.Fatal(err)
		}
		rows := make([]trace.Request, 60)
		for i := range rows {
			r := &rows[i]
			r.InputTokens, r.OutputTokens, r.Model = int32(1+rng.IntN(4*size)), trace.Ptr(int32(rng.IntN(100))), "m"
			if i%3 == 0 {
				r.Kind = "completion"
			}
			for b := range (int(r.InputTokens) + size - 1) / size {
				r.Blocks = append(r.Blocks, uint64(b)) // the first blocks are shared by all
			}
			r.Blocks[len(r.Blocks)-1] = uint64(1000 + i)
		}
		for _, name := range []string{"vllm-custom", "openai-batch"} {
			var out bytes.Buffer
			w, err := export.NewWriter(name, &out, export.Options{BlockSize: size, Prompter: prompter})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(rows); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			for i, line := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
				want, err := prompter.Tokens(&rows[i], nil)
				if err != nil {
					t.Fatal(err)
				}
				got := tok.Append(nil, promptOf(t, line))
				if !slices.Equal(got, want) || len(got) != int(rows[i].InputTokens) {
					t.Fatalf("%s, row %d: %d tokens, want %d", name, i, len(got), rows[i].InputTokens)
				}
			}
		}
	}
}

// promptOf returns the prompt in a line of any of the formats that have one.
func promptOf(t *testing.T, line []byte) string {
	type prompt struct {
		Prompt   string
		Messages []struct{ Role, Content string }
	}
	var row struct {
		prompt
		Body prompt
	}
	if err := json.Unmarshal(line, &row); err != nil {
		t.Fatal(err)
	}
	if m := row.Body.Messages; len(m) == 1 && m[0].Role == "user" {
		return m[0].Content
	}
	return row.Prompt + row.Body.Prompt
}

// A trace is written for another tool, which is told what its format cannot say.
func ExampleNewWriter() {
	rows := []trace.Request{
		{ArrivalNS: 0, InputTokens: 40, OutputTokens: trace.Ptr[int32](21), Blocks: []uint64{0, 1, 2}, Session: trace.Ptr[int64](0)},
		{ArrivalNS: 61_114_000_000, InputTokens: 90, OutputTokens: trace.Ptr[int32](13), Blocks: []uint64{0, 1, 3, 4, 5, 6}, Session: trace.Ptr[int64](0),
			Parents: []int64{0}, ThinkNS: trace.Ptr[int64](60_000_000_000)},
	}
	w, err := export.NewWriter("bailian", os.Stdout, export.Options{BlockSize: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := w.Write(rows); err != nil {
		fmt.Println(err)
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	for _, l := range w.Loss() {
		fmt.Println(l)
	}
	// Output:
	// {"chat_id":0,"parent_chat_id":-1,"timestamp":0.0,"input_length":40,"output_length":21,"type":"text","turn":1,"hash_ids":[0,1,2]}
	// {"chat_id":1,"parent_chat_id":0,"timestamp":61.114,"input_length":90,"output_length":13,"type":"text","turn":2,"hash_ids":[0,1,3,4,5,6]}
	// columns left out, with the rows that had a value: think_ns (1)
}

func ExampleNewWriter_mooncake() {
	w, err := export.NewWriter("mooncake", os.Stdout, export.Options{BlockSize: 512})
	if err != nil {
		fmt.Println(err)
		return
	}
	row := trace.Request{ArrivalNS: 1_500_200_000, InputTokens: 700, OutputTokens: trace.Ptr[int32](21), Blocks: []uint64{0, 1}, Model: "model-0"}
	if _, err := w.Write([]trace.Request{row}); err != nil {
		fmt.Println(err)
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
	}
	for _, l := range w.Loss() {
		fmt.Println(l)
	}
	// Output:
	// {"timestamp": 1500, "input_length": 700, "output_length": 21, "hash_ids": [0, 1]}
	// 1 of 1 arrivals were rounded to the millisecond
	// columns left out, with the rows that had a value: model (1)
}
