package flags

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// numberFlags is a command with a flag of each kind.
func numberFlags() (*cobra.Command, *struct {
	n        int
	small    int32
	seed     uint64
	duration time.Duration
	speed    float64
	share    float64
	target   float64
	price    float64
	list     []int
	rate     string
	model    string
	urls     []string
	json     bool
}) {
	cmd := &cobra.Command{Use: "c"}
	v := new(struct {
		n        int
		small    int32
		seed     uint64
		duration time.Duration
		speed    float64
		share    float64
		target   float64
		price    float64
		list     []int
		rate     string
		model    string
		urls     []string
		json     bool
	})
	s, _ := Sections(cmd.Flags(), LoadFlags)
	s.IntVar(&v.n, "concurrency", 0, "")
	s.Int32Var(&v.small, "max-input", 10, "")
	s.Seed(&v.seed, "seed", 1, "")
	s.DurationVar(&v.duration, "duration", -1, "")
	s.FactorVar(&v.speed, "speed", 1, "")
	s.ShareVar(&v.share, "max-bad", 0.001, "")
	s.RateVar(&v.target, "target-rate", 0, "")
	s.NumberVar(&v.price, "watts", -1, "")
	s.IntSliceVar(&v.list, "gpus", "")
	s.RateFlag(&v.rate, "")
	s.StringVar(&v.model, "model", "", "`NAME` of it")
	s.StringArrayVar(&v.urls, "url", nil, "")
	s.BoolVar(&v.json, "json", false, "")
	return cmd, v
}

// Values are taken as people type them, and what a flag has printed is taken again.
func TestNumbersAsTyped(t *testing.T) {
	cmd, v := numberFlags()
	args := "--concurrency 10k --max-input 8Ki --seed 18446744073709551615 --duration 1h30m --speed 2x --max-bad 5% --target-rate 300/min --watts 2.5 --gpus 2,4 --gpus 8 --rate 5/s"
	if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
		t.Fatal(err)
	}
	if v.n != 10_000 || v.small != 8192 || v.seed != 1<<64-1 || v.duration != 90*time.Minute || v.speed != 2 || v.share != 0.05 || v.target != 5 ||
		v.price != 2.5 || len(v.list) != 3 || v.rate != "poisson:5" {
		t.Errorf("%+v", v)
	}
	for name, want := range map[string]string{"concurrency": "10000", "duration": "1h30m0s", "speed": "2", "max-bad": "0.05", "gpus": "2,4,8", "rate": "poisson:5"} {
		value := cmd.Flags().Lookup(name).Value
		if value.String() != want {
			t.Errorf("--%s is %s, want %s", name, value, want)
		}
		if err := value.Set(want); err != nil {
			t.Errorf("--%s: %v", name, err)
		}
	}
	// A default that stands for none is taken too.
	for name, none := range map[string]string{"duration": "-1ns", "watts": "-1"} {
		if err := cmd.Flags().Set(name, none); err != nil || v.duration != -1 && name == "duration" {
			t.Errorf("--%s %s: %v", name, none, err)
		}
	}
	for rate, want := range map[string]string{"300/min": "poisson:5", "gamma:5,burstiness=0.5": "gamma:5,burstiness=0.5", "inf": "inf", "ramp-up:linear,1-10": "ramp-up:linear,1-10"} {
		if err := cmd.Flags().Set("rate", rate); err != nil || v.rate != want {
			t.Errorf("--rate %s: %s, %v; want %s", rate, v.rate, err, want)
		}
	}
}

// What a person gets for a mistake.
func TestMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"--concurency 5":       "unknown flag: --concurency: did you mean --concurrency?",
		"--dur 5":              "unknown flag: --dur: did you mean --duration?",
		"--modle x":            "unknown flag: --modle: did you mean --model?",
		"--zzz":                "unknown flag: --zzz",
		"'--url http://x'":     `"--url http://x" is one word, with its quotes: write --url http://x`,
		"--concurrency 5.5":    `--concurrency: "5.5" is not a whole number of 0 or more: write 500, 10k or 1M`,
		"--concurrency -1":     `--concurrency: "-1" is not a whole number of 0 or more: write 500, 10k or 1M`,
		"--max-input 1T":       `--max-input: "1T" is not a number that small: write 500, 10k or 1M`,
		"--seed x":             `--seed: "x" is not a seed, a whole number below 2^64: write 1, 42 or 20261122`,
		"--duration 5parsec":   `--duration: "5parsec" is not a duration: write 60s, 5min or 1h30m`,
		"--speed fast":         `--speed: "fast" is not a factor above 0: write 2, 2x or 0.5`,
		"--max-bad 5":          `--max-bad: "5" is not a share from 0% to 100%: write 5%, 0.05 or 100%`,
		"--target-rate x":      `--target-rate: "x" is not a rate: write 5, 5/s or 300/min`,
		"--watts x":            `--watts: "x" is not a number: write 2, 0.5 or 1e-6`,
		"--gpus 2,x":           `--gpus: "2,x" is not a list of whole numbers: write 8, 2,4,8 or 500,1k`,
		"--rate fast":          `--rate: "fast" is not a rate or an arrival process: write 5, 300/min or gamma:5,cv=2`,
		"--rate gamma:5":       `--rate: "gamma:5" is not an arrival process: write gamma:RATE,cv=CV or gamma:RATE,burstiness=B, with RATE from 1e-6 to 100000 per second or as 300/min, and CV from 0.01 to 100`,
		"--json=maybe":         `--json: "maybe" is neither true nor false`,
		"--model":              "--model needs a value: --model NAME",
		"--url":                "--url needs a value: --url TEXT",
		"--duration":           "--duration needs a value: --duration DURATION",
		"--rate ramp-up:x,1-2": "--rate: " + errRampUp.Error(),
	} {
		cmd, _ := numberFlags()
		words := strings.Fields(args)
		if strings.HasPrefix(args, "'") {
			words = []string{strings.Trim(args, "'")}
		}
		err := cmd.ParseFlags(words)
		if err == nil {
			t.Errorf("%s is taken", args)
		} else if got := Mistake(cmd, err).Error(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", args, got, want)
		}
	}
}

// A rate alone says which arrivals it makes; a process that was named says nothing.
func TestPlainRateIsSaid(t *testing.T) {
	for rate, want := range map[string]string{
		"300/min":   "rate: Poisson arrivals, 5 requests/s on average; --rate constant:5 sends at equal gaps\n",
		"poisson:5": "",
	} {
		cmd, _ := numberFlags()
		var said strings.Builder
		cmd.SetErr(&said)
		if err := cmd.ParseFlags([]string{"--rate", rate}); err != nil {
			t.Fatal(err)
		}
		SayRate(cmd)
		if SayRate(cmd); said.String() != want { // and not twice
			t.Errorf("--rate %s: %q, want %q", rate, said.String(), want)
		}
	}
}
