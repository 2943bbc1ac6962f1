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
	Of      Reach
}

// A Reach says which requests get a length.
type Reach int

// Values of Reach.
const (
	OfUnknown   Reach = iota // requests without a length
	OfUnbounded              // requests with neither a length nor a bound of their own
	OfEvery
)

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

// Replace tells whether a request gets a length, by the length and the bound that it has.
func (o Outputs) Replace(output, most *int32) bool {
	return o.Of == OfEvery || output == nil && (most == nil || o.Of == OfUnknown)
}

// Fill reads rows of src, from its row 0 on, with a length for each request that is to get one. Which
// length a row gets depends on the seed and on its number alone, so that every part and shard
// of a workload has the same. MaxTokens is the same length, so that it is asked for in place of what a recorded
// body asks. Where the server decides, OutputTokens are nil, and MaxTokens are the bound, or less where a row that
// keeps its own asks for less.
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
		switch {
		case !f.o.Replace(r.OutputTokens, r.MaxTokens):
		case f.o.ByServer():
			r.OutputTokens = nil
			if r.MaxTokens == nil || *r.MaxTokens > f.o.bound || f.o.Of == OfEvery {
				r.MaxTokens = trace.Ptr(f.o.bound)
			}
		default:
			lengths := f.o.lengths.New(rand.New(rand.NewPCG(f.seed^outputStream, f.row+uint64(i))))
			length := lengths.Draw()
			r.OutputTokens, r.MaxTokens = &length, &length
		}
	}
	f.row += uint64(n)
	return n, err
}
