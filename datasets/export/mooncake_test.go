package export

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"reprise/datasets"
	"reprise/trace"
)

// The published trace: its length and totals, computed independently, and every
// line written back byte for byte.
func TestMooncakePublished(t *testing.T) {
	want, err := os.ReadFile("../../../shared/data/mooncake_conversation.jsonl")
	if err != nil {
		t.Skip("the public trace mooncake_conversation.jsonl is not here")
	}
	all, info := readAll(t, string(want), datasets.Options{})
	var input, output, blocks int64
	var got bytes.Buffer
	w, err := NewWriter("mooncake", &got, Options{BlockSize: info.BlockSize})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		e := &all[i]
		input, output, blocks = input+int64(*e.InputTokens), output+int64(*e.OutputTokens), blocks+int64(len(e.SourceBlocks))
		row := trace.Request{ArrivalNS: int64(e.Time.Sub(datasets.Epoch)), InputTokens: *e.InputTokens, OutputTokens: trace.Ptr(*e.OutputTokens), Blocks: e.SourceBlocks}
		if _, err := w.Write([]trace.Request{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if len(all) != 12031 || blocks != 288500 || info.Bad != 0 || info.TimeUnit != "ms" ||
		fmt.Sprintf("%.2f %.2f", float64(input)/12031, float64(output)/12031) != "12035.06 342.62" {
		t.Errorf("%d rows, %d input, %d output, %d blocks, %+v", len(all), input, output, blocks, info)
	}
	if span := all[len(all)-1].Time.Sub(all[0].Time).Seconds(); span != 3536.999 {
		t.Errorf("it spans %v s", span)
	}
	if !bytes.Equal(bytes.TrimRight(got.Bytes(), "\n"), bytes.TrimRight(want, "\n")) {
		t.Error("the lines were not written as they were read")
	}
	if loss := w.Loss(); loss != nil {
		t.Errorf("loss: %q", loss)
	}
}

func TestMooncakeWriterSaysWhatIsLost(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter("mooncake", &out, Options{BlockSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	rows := []trace.Request{
		{ArrivalNS: 1_499_999, InputTokens: 17, OutputTokens: trace.Ptr[int32](1), Blocks: []uint64{0, 1}, Status: trace.StatusOK},
		{ArrivalNS: 1_500_000, InputTokens: 0, OutputTokens: trace.Ptr[int32](2), Session: trace.Ptr[int64](0), Model: "model-0", Status: trace.StatusFailed, OutputBlocks: []uint64{2}},
		{ArrivalNS: 3_000_000, InputTokens: 16, OutputTokens: new(int32), Blocks: []uint64{1}, Model: "model-0", Category: trace.Cold},
	}
	if n, err := w.Write(rows); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := w.Write([]trace.Request{{InputTokens: 16}}); n != 0 || err == nil || !strings.Contains(err.Error(), "row 3 ") {
		t.Errorf("a row without block ids: %d, %v", n, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	const want = `{"timestamp": 1, "input_length": 17, "output_length": 1, "hash_ids": [0, 1]}
{"timestamp": 2, "input_length": 0, "output_length": 2, "hash_ids": []}
{"timestamp": 3, "input_length": 16, "output_length": 0, "hash_ids": [1]}
`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
	loss := strings.Join(w.Loss(), "\n")
	for _, want := range []string{
		"2 of 3 arrivals were rounded to the millisecond", "512 tokens; here it is 16",
		"session (1), model (2), category (1), output_blocks (1), status (1)",
	} {
		if !strings.Contains(loss, want) {
			t.Errorf("%q is not in %q", want, loss)
		}
	}
	if _, err := NewWriter("mooncake", &out, Options{BlockSize: 0}); err == nil {
		t.Error("a trace without blocks was accepted")
	}
}
