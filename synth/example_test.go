package synth_test

import (
	"fmt"

	"reprise/synth"
	"reprise/synth/prompt"
	"reprise/trace"
	"reprise/trace/token"
)

// Two requests of one session: the second begins with the first block of the
// first, and so does its prompt.
func Example() {
	rows := []trace.Request{
		{InputTokens: 7, Blocks: []uint64{0, 1}},
		{ArrivalNS: 1e9, InputTokens: 8, Blocks: []uint64{0, 2}},
	}
	src := func() trace.Reader[trace.Request] { return &trace.SliceReader[trace.Request]{Rows: rows} }
	ids, err := synth.Count(src())
	if err != nil {
		fmt.Println(err)
		return
	}
	encoding, err := token.Open("o200k_base")
	if err != nil {
		fmt.Println(err)
		return
	}
	prompter, err := prompt.New(encoding.Words(), 1, 4)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = trace.Each(synth.NewMirror(1, ids).Reader(src()), func(row int64, r *trace.Request) error {
		text, err := prompter.Prompt(r, nil)
		fmt.Printf("%d: %d tokens: %s\n", row, len(encoding.Append(nil, string(text))), text)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0: 7 tokens: leng goog current rss execution functions amp
	// 1: 8 tokens: leng goog current rss cos iban textures sched
}
