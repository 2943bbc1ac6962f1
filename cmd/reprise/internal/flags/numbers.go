package flags

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"reprise/trace/quantity"
)

// A number is the value of a flag that package quantity reads.
type number[T any] struct {
	to    *T
	kind  string // what help calls it
	def   string // as it is printed; it is taken when it is typed, also where it stands for none
	parse func(string) (T, error)
	print func(T) string
	none  T
}

// Set implements [pflag.Value].
func (n *number[T]) Set(text string) error {
	if text == n.def {
		*n.to = n.none
		return nil
	}
	v, err := n.parse(text)
	if err == nil && n.kind != "string" && strings.HasPrefix(text, "-") {
		return fmt.Errorf("%s is below zero", quantity.Quote(text))
	}
	if err == nil {
		*n.to = v
	}
	return err
}

// String implements [pflag.Value].
func (n *number[T]) String() string {
	if n.to == nil { // pflag makes a zero value to compare with
		return ""
	}
	return n.print(*n.to)
}

// Type implements [pflag.Value].
func (n *number[T]) Type() string { return n.kind }

func declare[T any](s Section, to *T, name, letter string, def T, usage, kind string, parse func(string) (T, error),
	print func(T) string) {
	*to = def
	s.fl.VarP(&number[T]{to, kind, print(def), parse, print, def}, name, letter, usage)
	s.mark(name)
}

// MetricVar declares a flag with the name of a metric, in any spelling; to gets the one that is printed.
func (s Section) MetricVar(to *string, name, usage string, parse func(string) (string, error)) {
	declare(s, to, name, "", "", usage, "string", parse, func(name string) string { return name })
}

// whole declares a flag with a whole number that fits its type.
func whole[T int | int32 | int64](s Section, to *T, name, letter string, def T, usage string) {
	parse := func(text string) (T, error) {
		n, err := quantity.Count(text)
		if err == nil && int64(T(n)) != n {
			err = &quantity.Error{Text: text, Want: "a number that small", Examples: [3]string{"500", "10k", "1M"}}
		}
		return T(n), err
	}
	declare(s, to, name, letter, def, usage, "number", parse, func(n T) string {
		return strconv.FormatInt(int64(n), 10)
	})
}

// IntVar declares a flag with a whole number, such as 500 or 10k.
func (s Section) IntVar(to *int, name string, def int, usage string) {
	whole(s, to, name, "", def, usage)
}

// Int32Var declares a flag with a whole number, such as 500 or 10k.
func (s Section) Int32Var(to *int32, name string, def int32, usage string) {
	whole(s, to, name, "", def, usage)
}

// Int64Var declares a flag with a whole number, such as 500 or 10k.
func (s Section) Int64Var(to *int64, name string, def int64, usage string) {
	whole(s, to, name, "", def, usage)
}

// Int64VarP is Int64Var with a letter.
func (s Section) Int64VarP(to *int64, name, letter string, def int64, usage string) {
	whole(s, to, name, letter, def, usage)
}

// Seed declares a flag with a seed, which is below 2^64.
func (s Section) Seed(to *uint64, name string, def uint64, usage string) {
	parse := func(text string) (uint64, error) {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return 0, &quantity.Error{Text: text, Want: "a seed, a whole number below 2^64",
				Examples: [3]string{"1", "42", "20261122"}}
		}
		return n, nil
	}
	declare(s, to, name, "", def, usage, "number", parse, func(n uint64) string { return strconv.FormatUint(n, 10) })
}

// DurationVar declares a flag with a duration, such as 60, 5min or 1h30m.
func (s Section) DurationVar(to *time.Duration, name string, def time.Duration, usage string) {
	declare(s, to, name, "", def, usage, "duration", quantity.Duration, time.Duration.String)
}

func (s Section) float(to *float64, name string, def float64, usage, kind string, parse func(string) (float64, error)) {
	declare(s, to, name, "", def, usage, kind, parse, func(v float64) string {
		return strconv.FormatFloat(v, 'g', -1, 64)
	})
}

// NumberVar declares a flag with a decimal number, such as a price.
func (s Section) NumberVar(to *float64, name string, def float64, usage string) {
	s.float(to, name, def, usage, "number", quantity.Number)
}

// FactorVar declares a flag with a factor, such as 2 or 2x.
func (s Section) FactorVar(to *float64, name string, def float64, usage string) {
	s.float(to, name, def, usage, "factor", quantity.Factor)
}

// RateVar declares a flag with a number per second, such as 5 or 300/min.
func (s Section) RateVar(to *float64, name string, def float64, usage string) {
	s.float(to, name, def, usage, "rate", quantity.Rate)
}

// ShareVar declares a flag with a share from 0 to 1, such as 5% or 0.05.
func (s Section) ShareVar(to *float64, name string, def float64, usage string) {
	s.float(to, name, def, usage, "share", func(text string) (float64, error) {
		v, err := quantity.Share(text)
		if err == nil && v > 1 {
			err = &quantity.Error{Text: text, Want: "a share from 0% to 100%",
				Examples: [3]string{"5%", "0.05", "100%"}}
		}
		return v, err
	})
}

// IntSliceVar declares a flag with whole numbers between commas. It may be repeated.
func (s Section) IntSliceVar(to *[]int, name string, usage string) {
	s.fl.Var(&wholeList{to: to}, name, usage)
	s.mark(name)
}

// A wholeList is the value of a flag with whole numbers.
type wholeList struct {
	to *[]int
}

var _ pflag.Value = (*wholeList)(nil)

// Set implements [pflag.Value]. Several add up.
func (l *wholeList) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		n, err := quantity.Count(word)
		if err != nil || n > 1<<31 {
			return &quantity.Error{Text: text, Want: "a list of whole numbers",
				Examples: [3]string{"8", "2,4,8", "500,1k"}}
		}
		*l.to = append(slices.Clone(*l.to), int(n))
	}
	return nil
}

// String implements [pflag.Value].
func (l *wholeList) String() string {
	var words []string
	for _, n := range *l.to {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ",")
}

// Type implements [pflag.Value].
func (l *wholeList) Type() string { return "numbers" }
