package replay

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/quantity"
)

// Outputs stands in for the output lengths that a workload does not tell. The zero Outputs
// leaves them unknown, and a replay refuses such rows rather than invent a length.
type Outputs struct {
	text    string
	lengths arrival.LengthSpec
	bound   int32 // tokens, within which the server ends by itself; 0 where lengths are drawn
	every   bool
}

// boundedByServer begins the text of Outputs that leave the length to the server.
const boundedByServer = "server:"

// ParseOutputs reads a number of tokens, a distribution of [arrival.ParseLength], or
// server:N: the server ends each answer by itself, within N tokens. The empty text is the zero
// Outputs.
func ParseOutputs(text string) (Outputs, error) {
	o := Outputs{text: text}
	if text == "" {
		return o, nil
	}

	if rest, ok := strings.CutPrefix(text, boundedByServer); ok {
		n, err := quantity.Count(rest)
		if err != nil || n < 1 || n > 1<<24 {
			return o, fmt.Errorf("%s is no bound: write it as server:4096, in tokens", quantity.Quote(text))
		}
		o.bound = int32(n)
		return o, nil
	}

	var err error
	o.lengths, err = arrival.ParseLength(text)
	return o, err
}

// String is the text that was read.
func (o Outputs) String() string { return o.text }

// Given tells whether there is anything in place of an unknown length.
func (o Outputs) Given() bool { return o.text != "" }

// ByServer tells whether the server decides how long its answers are.
func (o Outputs) ByServer() bool { return o.bound > 0 }

// OfEvery are the same lengths, in place of known ones too.
func (o Outputs) OfEvery() Outputs {
	o.every = true
	return o
}

// Every tells whether the lengths are also in place of known ones.
func (o Outputs) Every() bool { return o.every }

// Fill reads rows of src, from its row 0 on, with the lengths in place of unknown ones, or of all. Which
// length a row gets depends on the seed and on its number alone, so that every part and shard
// of a workload has the same. Where the server decides, OutputTokens stay nil, and MaxTokens
// are at most the bound.
func (o Outputs) Fill(src trace.Reader[trace.Request], seed uint64) trace.Reader[trace.Request] {
	if !o.Given() {
		return src
	}
	return &outputFill{src: src, o: o, seed: seed}
}

type outputFill struct {
	src  trace.Reader[trace.Request]
	o    Outputs
	seed uint64
	row  uint64
}

// outputStream tells these draws from other uses of a seed.
const outputStream = 0x6f757470757473

func (f *outputFill) Read(rows []trace.Request) (int, error) {
	n, err := f.src.Read(rows)
	for i := range rows[:n] {
		r := &rows[i]
		if f.o.every {
			r.OutputTokens = nil
		}
		switch {
		case r.OutputTokens != nil:
		case f.o.ByServer():
			if r.MaxTokens == nil || *r.MaxTokens > f.o.bound {
				r.MaxTokens = trace.Ptr(f.o.bound)
			}
		default:
			lengths := f.o.lengths.New(rand.New(rand.NewPCG(f.seed^outputStream, f.row+uint64(i))))
			r.OutputTokens = trace.Ptr(lengths.Draw())
		}
	}
	f.row += uint64(n)
	return n, err
}
