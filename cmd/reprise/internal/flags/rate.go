package flags

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace/arrival"
	"reprise/trace/quantity"
)

// A rateFlag is the value of --rate: a process, or a rate alone, which means Poisson
// arrivals at that mean.
type rateFlag struct {
	to    *string // as [arrivals] reads it
	plain bool
}

// RateFlag declares --rate.
func (s Section) RateFlag(to *string, usage string) {
	s.Var(&rateFlag{to: to}, "rate", usage)
}

// Set implements [pflag.Value].
func (r *rateFlag) Set(text string) error {
	_, err := arrivals(text, arrival.Stream(1, "check"), 1)
	var unlike *quantity.Error
	if errors.As(err, &unlike) {
		return &quantity.Error{Text: text, Want: "a rate or an arrival process", Examples: unlike.Examples}
	}
	if err != nil {
		return err
	}
	*r.to, r.plain = text, false
	if rate, err := arrival.ParseProcess(text); err == nil && !strings.Contains(text, ":") {
		*r.to, r.plain = rate.String(), true
	}
	return nil
}

// String implements [pflag.Value].
func (r *rateFlag) String() string {
	if r.to == nil {
		return ""
	}
	return *r.to
}

// Type implements [pflag.Value].
func (r *rateFlag) Type() string { return "rate" }

// SayRate says which process --rate means where it was a number alone: once, however many runs there are.
func SayRate(cmd *cobra.Command) {
	flag := cmd.Flags().Lookup("rate")
	if flag == nil {
		return
	}
	if r, ok := flag.Value.(*rateFlag); ok && r.plain {
		r.plain = false
		mean := strings.TrimPrefix(*r.to, "poisson:")
		cli.Notef(cmd, "rate: Poisson arrivals, %s requests/s on average; --rate constant:%s sends at equal gaps", mean,
			mean)
	}
}
