package flags

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay"
	"reprise/replay/bench"
	"reprise/trace/quantity"
)

// Workload says which part of a workload is replayed, how often, and whether at
// all.
type Workload struct {
	Start, End       time.Duration
	Prime            string
	PrimeTokens      int64
	PrimeConcurrency int
	sample           string
	MaxRequests      int64
	Turns            int64 // only the first of each conversation; 0 is all
	Loop             string
	LoopSame         bool
	LoopQuiet        bool // of a trial, which is one of many
	Apart            bool // no request has a session, though its prompt may go on from another's
	outputs          string
	outputsOf        replay.Reach
}

// Values of prime.
const (
	primeLRU  = "lru"
	PrimeNone = "none"
)

// defaultPrimeTokens is about what the KV cache of one node of eight large
// accelerators holds for a 70-billion-parameter model.
const defaultPrimeTokens = 1_000_000

const defaultPrimeConcurrency = 8

// Register adds the flags.
func (f *Workload) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	everyday, rest := Sections(fl, PartFlags)
	everyday.DurationVar(&f.Start, "start", 0,
		"replay from this time of the workload. The server's cache is filled first, see the setting prime. 0s keeps "+
			"idle time before the first request")
	everyday.DurationVar(&f.End, "end", 0, "replay up to this time of the workload; 0 is its end")
	rest.StringVar(&f.Prime, "prime", primeLRU, "")
	rest.Int64Var(&f.PrimeTokens, "prime-tokens", defaultPrimeTokens, "")
	rest.IntVar(&f.PrimeConcurrency, "prime-concurrency", defaultPrimeConcurrency, "")
	everyday.StringVar(&f.sample, "sample", "",
		"replay this `share` of the sessions, such as 10% or 0.1, at their recorded times; the rate falls with it")
	everyday.StringVar(&f.outputs, "output-tokens", "",
		"output length of requests that are made, have none in the workload, or come from a file of prompts: "+
			"`tokens` such as 256, lognormal:300,1.2, or server:4096 to let the server end within a bound")
	everyday.Int64Var(&f.MaxRequests, "max-requests", 0, "replay only the first rows (also --requests); 0 is all")
	everyday.StringVar(&f.Loop, "loop", "", "repeat the workload: a number of `rounds`, or a duration such as 2h")
	rest.BoolVar(&f.LoopSame, "loop-same", false, "")
}

// Check refuses flags that have no meaning, alone or together.
func (f *Workload) Check() error {
	switch {
	case f.End > 0 && f.End <= f.Start:
		return cli.Usagef("the window from %v to %v is empty", f.Start, f.End)
	case f.Prime != primeLRU && f.Prime != PrimeNone:
		return cli.Usagef("--set prime: want %s or %s", primeLRU, PrimeNone)
	case f.PrimeTokens < 1 || f.PrimeConcurrency < 1:
		return cli.Usagef("--set prime-tokens and prime-concurrency: want a number above 0; --set prime=none sends " +
			"nothing before the run")
	case (f.Prime != primeLRU || f.PrimeTokens != defaultPrimeTokens ||
		f.PrimeConcurrency != defaultPrimeConcurrency) && f.Start == 0:
		return cli.Usagef("--set prime needs --start")
	case f.LoopSame && f.Loop == "":
		return cli.Usagef("--set loop-same needs --loop")
	}
	if _, err := f.Share(); err != nil {
		return err
	}
	if _, err := f.Outputs(); err != nil {
		return err
	}
	_, err := f.Rounds()
	return err
}

// Share reads --sample; 1 is everything.
func (f *Workload) Share() (float64, error) {
	if f.sample == "" {
		return 1, nil
	}
	share, err := quantity.Share(f.sample)
	if err != nil || share == 0 || share > 1 {
		return 0, cli.Usagef("--sample: want a share above 0, up to 1, such as 0.1 or 10%%")
	}
	return share, nil
}

// Outputs reads --output-tokens.
func (f *Workload) Outputs() (replay.Outputs, error) {
	o, err := replay.ParseOutputs(f.outputs)
	if err != nil {
		return o, cli.Usagef("--output-tokens: %v", err)
	}
	o.Of = f.outputsOf
	return o, nil
}

// LoopPrompts repeats a file of prompts for a time, as they are: what a server keeps of them after the first round is
// expected of it.
func (f *Workload) LoopPrompts(span time.Duration) {
	f.Loop, f.LoopSame = span.String(), true
}

// OutputsOfPrompts takes --output-tokens for the answers to a file of prompts, also where the file has lengths or
// bounds. Without the flag an answer is as long as the file says, or else as long as the server makes it.
func (f *Workload) OutputsOfPrompts() {
	if f.outputsOf = replay.OfEvery; f.outputs == "" {
		f.outputs, f.outputsOf = "server:1024", replay.OfUnbounded
	}
}

// Rounds reads --loop. The zero Span is one round.
func (f *Workload) Rounds() (replay.Span, error) {
	s, err := replay.ParseSpan(f.Loop)
	if err != nil || f.Loop != "" && s == (replay.Span{}) || s.Requests > math.MaxInt32 {
		return s, cli.Usagef("--loop: want a number of rounds, such as 3, or a duration, such as 2h")
	}
	return s, nil
}

// Take takes over what a trial sends, and how often.
func (f *Workload) Take(t bench.Trial) {
	f.MaxRequests = t.Rows
	if t.Loop {
		f.Loop, f.LoopQuiet = t.Duration.String(), true
	}
}
