package flags

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
)

// Spellings are the flags of `vllm bench serve` that replay, compare and sweep take as well, where
// they mean the same. They are translated into flags of ours before anything
// else looks at those. Where a spelling would mean something else it is not taken,
// and the error says what to use.
type Spellings struct {
	given map[string]*vllmValue
	Ready time.Duration // to wait for the endpoint
}

// OtherSpelling tells whether a flag stands for one of ours, which has its value once it is applied.
func OtherSpelling(f *pflag.Flag) bool {
	_, is := f.Value.(*vllmValue)
	return is
}

// A vllmValue is a flag as it was typed.
type vllmValue struct{ text, kind string }

func (v *vllmValue) Set(s string) error {
	if v.kind == "bool" {
		b, err := strconv.ParseBool(s)
		if err != nil {
			return errors.New("want true or false")
		}
		s = strconv.FormatBool(b)
	}
	v.text = s
	return nil
}

func (v *vllmValue) String() string { return v.text }

func (v *vllmValue) Type() string { return v.kind }

// A spelling is a flag of vLLM: a flag of ours with its value, or for more than
// that a rule of apply.
type spelling struct {
	name   string
	ours   string // our flag; the spelling is there when that is
	isBool bool
	told   bool                         // --help-all of our flag names it
	value  func(string) (string, error) // nil takes it as it is
}

// spellings are those that mean the same. Those without a value of their own are
// read together in apply.
var spellings = []spelling{
	{name: "base-url", ours: "url"},
	{name: "host", ours: "url"},
	{name: "port", ours: "url"},
	{name: "endpoint", ours: "api"},
	{name: "backend", ours: "api"},
	{name: "served-model-name", ours: "model"},
	{name: "request-rate", ours: "rate"},
	{name: "burstiness", ours: "rate"},
	{name: "ramp-up-strategy", ours: "rate"},
	{name: "ramp-up-start-rps", ours: "rate"},
	{name: "ramp-up-end-rps", ours: "rate"},
	{name: "max-concurrency", ours: "max-in-flight"},
	{name: "num-prompts", ours: "max-requests", value: aboveZero},
	{name: "requests", ours: "max-requests", value: aboveZero},
	{name: "request-count", ours: "max-requests", value: aboveZero},
	{name: "isl", ours: "input-tokens", told: true},
	{name: "osl", ours: "output-tokens", told: true},
	{name: "synthetic-input-tokens-mean", ours: "input-tokens", value: aboveZero},
	{name: "output-tokens-mean", ours: "output-tokens", value: aboveZero},
	{name: "vus", ours: "concurrency", value: aboveZero},
	{name: "max-seconds", ours: "duration", value: inSeconds},
	{name: "benchmark-duration", ours: "duration", value: inSeconds},
	{name: "input-len", ours: "input-tokens", value: aboveZero},
	{name: "random-input-len", ours: "input-tokens", value: aboveZero},
	{name: "output-len", ours: "output-tokens", value: aboveZero},
	{name: "random-output-len", ours: "output-tokens", value: aboveZero},
	{name: "random-prefix-len", ours: "shared-prefix", value: aboveZero},
	{name: "num-warmups", ours: "warmup", value: func(s string) (string, error) {
		if s == "0" {
			return "", nil
		}
		return aboveZero(s)
	}},
	{name: "ready-check-timeout-sec", ours: "url"},
	{name: "ignore-eos", ours: "force-output", isBool: true, told: true},
	{name: "insecure", ours: "tls-insecure", isBool: true},
	{name: "disable-tqdm", ours: "quiet", isBool: true},
}

// levelSpellings are flags of replay and compare as a command with several levels of load takes them: with a list.
var levelSpellings = []spelling{{name: "concurrency", ours: "concurrencies"}, {name: "rate", ours: "rates"}}

// together are the spellings that apply reads by rules of its own.
var together = []string{"host", "port", "endpoint", "backend", "served-model-name", "request-rate", "burstiness",
	"ramp-up-strategy", "ramp-up-start-rps", "ramp-up-end-rps", "max-concurrency", "ready-check-timeout-sec"}

// refused are spellings that would mean something else, with what to use.
var refused = map[string]string{
	"dataset-name": "name the file itself, whose format is detected: `reprise COMMAND FILE`; for random, leave it " +
		"out and give --input-tokens and --output-tokens",
	"dataset-path":       "name the file itself: `reprise COMMAND FILE`",
	"self-timed":         "recorded times are the default, and --rate replaces them",
	"no-self-timed":      "recorded times are replaced by --rate or --request-rate",
	"top-k":              "sampling parameters go into --extra-body, such as '{\"top_k\":20}'",
	"min-p":              "sampling parameters go into --extra-body, such as '{\"min_p\":0.1}'",
	"frequency-penalty":  "sampling parameters go into --extra-body, such as '{\"frequency_penalty\":1}'",
	"presence-penalty":   "sampling parameters go into --extra-body, such as '{\"presence_penalty\":1}'",
	"repetition-penalty": "sampling parameters go into --extra-body, such as '{\"repetition_penalty\":1.1}'",
	"plot-timeline":      "--html writes a page with plots",
	"no-ignore-eos":      "--ignore-eos=false lets the model end its answers",
	"streaming":          "answers are always streamed: leave it out",
	"extra-inputs":       "members of a request's body go into --extra-body, such as '{\"ignore_eos\":false}'",
}

// Register adds the spellings, hidden from the help, which would be twice as
// long. It comes after all flags of ours, since one without a counterpart, or
// that is already a flag of ours, is not added.
func (f *Spellings) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	f.given = map[string]*vllmValue{}
	add := func(name string, isBool bool) {
		v := &vllmValue{kind: "string"}
		if isBool {
			v.kind = "bool"
		}
		flag := fl.VarPF(v, name, "", "as in vllm bench serve")
		flag.Hidden = true
		if isBool {
			flag.NoOptDefVal = "true"
		}
		f.given[name] = v
	}
	for _, s := range slices.Concat(spellings, levelSpellings) {
		if fl.Lookup(s.ours) != nil && fl.Lookup(s.name) == nil {
			if add(s.name, s.isBool); s.told {
				fl.Lookup(s.ours).Usage += "; --" + s.name + " is the same"
			}
		}
	}
	for name := range refused {
		if fl.Lookup(name) == nil {
			add(name, slices.Contains([]string{"self-timed", "no-self-timed", "no-ignore-eos", "plot-timeline",
				"streaming"}, name))
		}
	}
}

func (f *Spellings) refuse(command string, fl *pflag.FlagSet) error {
	var names []string
	for name := range refused {
		if f.given[name] != nil && fl.Changed(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	name := slices.Max(names) // dataset-path before dataset-name
	return cli.Usagef("there is no --%s here: %s", name, strings.ReplaceAll(refused[name], "COMMAND", command))
}

// Apply translates what was given into our flags, and refuses what has another meaning.
func (f *Spellings) Apply(cmd *cobra.Command, result *VLLMResult) error {
	if err := f.refuse(cmd.Name(), cmd.Flags()); err != nil {
		return err
	}
	t := translation{fl: cmd.Flags(), given: f.given, result: result}
	ours := map[string]bool{} // flags of ours that the user gave
	t.fl.Visit(func(flag *pflag.Flag) { ours[flag.Name] = f.given[flag.Name] == nil })
	t.ours = ours
	for _, s := range slices.Concat(spellings, levelSpellings) {
		if _, ok := t.text(s.name); ok && !slices.Contains(together, s.name) {
			t.one(s)
		}
	}
	t.address()
	t.api()
	t.model()
	t.load()
	f.Ready = 0
	if value, ok := t.text("ready-check-timeout-sec"); ok {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 0 {
			t.fail("--ready-check-timeout-sec: want whole seconds")
		}
		f.Ready = time.Duration(n) * time.Second
	}
	return t.err
}

// A translation sets flags of ours.
type translation struct {
	fl     *pflag.FlagSet
	given  map[string]*vllmValue
	ours   map[string]bool
	result *VLLMResult
	err    error
}

func (t *translation) fail(format string, args ...any) {
	if t.err == nil {
		t.err = cli.Usagef(format, args...)
	}
}

// text is what was given under a spelling.
func (t *translation) text(name string) (string, bool) {
	v := t.given[name]
	if v == nil || !t.fl.Changed(name) {
		return "", false
	}
	return v.text, true
}

// set sets a flag of ours, unless the user did.
func (t *translation) set(name, ours, value string) {
	if t.ours[ours] {
		t.fail("give one of --%s and --%s", name, ours)
		return
	}
	if t.err == nil {
		if err := t.fl.Set(ours, value); err != nil {
			t.fail("--%s: not a value of --%s", name, ours)
		}
	}
}

func (t *translation) one(s spelling) {
	value, _ := t.text(s.name)
	if s.value != nil {
		v, err := s.value(value)
		if err != nil {
			t.fail("--%s: %v", s.name, err)
			return
		}
		value = v
	}
	t.set(s.name, s.ours, value)
}

// address makes a URL of host and port, whose defaults are vLLM's.
func (t *translation) address() {
	host, hasHost := t.text("host")
	port, hasPort := t.text("port")
	if !hasHost && !hasPort {
		return
	}
	if _, ok := t.text("base-url"); ok {
		t.fail("--base-url has the host and the port already")
		return
	}
	if !hasHost {
		host = "127.0.0.1"
	}
	if !hasPort {
		port = "8000"
	}
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	name := "host"
	if !hasHost {
		name = "port"
	}
	t.set(name, "url", "http://"+host+":"+port)
}

// backends and endpoints, and the API that each is.
var (
	backends = map[string]string{"vllm": result.APICompletions, "openai": result.APICompletions,
		"openai-chat": result.APIChat, "openai-embeddings": "embeddings"}
	endpoints = map[string]string{"/v1/completions": result.APICompletions, "/v1/chat/completions": result.APIChat,
		"/v1/embeddings": "embeddings"}
)

func (t *translation) api() {
	backend, hasBackend := t.text("backend")
	endpoint, hasEndpoint := t.text("endpoint")
	byBackend, known := backends[backend]
	if hasBackend && !known {
		t.fail("--backend: want vllm, openai, openai-chat or openai-embeddings; there is no request of another kind")
	}
	byEndpoint, known := endpoints[endpoint]
	if hasEndpoint && !known {
		t.fail("--endpoint: want /v1/completions, /v1/chat/completions or /v1/embeddings; a prefix before them " +
			"belongs to --base-url")
	}
	switch {
	case hasBackend && hasEndpoint && byBackend != byEndpoint:
		t.fail("--backend and --endpoint name different APIs, %s and %s", byBackend, byEndpoint)
	case hasBackend:
		t.result.Backend = backend
		t.set("backend", "api", byBackend)
	case hasEndpoint:
		t.set("endpoint", "api", byEndpoint)
	}
}

// model takes the name that is sent; --model beside it is the one in the JSON.
func (t *translation) model() {
	served, ok := t.text("served-model-name")
	if !ok {
		return
	}
	if t.ours["model"] {
		t.result.Model = t.fl.Lookup("model").Value.String()
		t.ours["model"] = false
	}
	t.set("served-model-name", "model", served)
}

// load is when requests are sent.
func (t *translation) load() {
	t.rampUp()
	rate, hasRate := t.text("request-rate")
	burstiness, hasBurstiness := t.text("burstiness")
	limit, hasLimit := t.text("max-concurrency")
	perSecond, shape := math.Inf(1), 1.0
	if hasRate {
		perSecond = t.positive("request-rate", rate)
	}
	if hasBurstiness {
		shape = t.positive("burstiness", burstiness)
	}
	_, ramps := t.text("ramp-up-strategy")
	all := hasRate && math.IsInf(perSecond, 1)
	switch {
	case ramps:
	case hasBurstiness && (!hasRate || all):
		t.fail("--burstiness is one of a finite --request-rate")
	case all && hasLimit: // the next is sent as one ends
	case all:
		t.set("request-rate", "rate", allAtOnce)
	case hasRate && math.IsInf(shape, 1):
		t.set("request-rate", "rate", "constant:"+plainFloat(perSecond))
	case hasRate && shape == 1:
		t.set("request-rate", "rate", "poisson:"+plainFloat(perSecond))
	case hasRate:
		t.set("request-rate", "rate", "gamma:"+plainFloat(perSecond)+",burstiness="+plainFloat(shape))
	}
	if !hasLimit {
		return
	}
	if _, err := aboveZero(limit); err != nil {
		t.fail("--max-concurrency: %v", err)
	}
	if all {
		t.set("max-concurrency", "concurrency", limit)
	} else {
		t.set("max-concurrency", "max-in-flight", limit)
	}
}

func (t *translation) rampUp() {
	strategy, ok := t.text("ramp-up-strategy")
	start, hasStart := t.text("ramp-up-start-rps")
	end, hasEnd := t.text("ramp-up-end-rps")
	switch _, hasRate := t.text("request-rate"); {
	case !ok && !hasStart && !hasEnd:
		return
	case !ok || !hasStart || !hasEnd:
		t.fail("--ramp-up-strategy, --ramp-up-start-rps and --ramp-up-end-rps go together")
		return
	case hasRate:
		t.fail("--ramp-up-strategy sets the rate, so --request-rate contradicts it")
		return
	}
	burstiness := "1"
	if b, ok := t.text("burstiness"); ok {
		burstiness = b
	}
	r, err := parseRampUp(fmt.Sprintf("%s:%s,%s-%s,burstiness=%s", rampUpKind, strategy, start, end, burstiness))
	if err != nil {
		t.fail("--ramp-up-strategy: %v", err)
		return
	}
	t.set("ramp-up-strategy", "rate", r.String())
}

func (t *translation) positive(name, value string) float64 {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v > 0) {
		t.fail("--%s: want a number above zero, or inf", name)
	}
	return v
}

func plainFloat(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// inSeconds takes a bare number for seconds.
func inSeconds(s string) (string, error) {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		s += "s"
	}
	return s, nil
}

func aboveZero(s string) (string, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 {
		return "", errors.New("want a whole number above zero")
	}
	return strconv.FormatInt(n, 10), nil
}

// listFlags are flags of vLLM that take several values after each other, and
// what such a value looks like.
var listFlags = map[string]*regexp.Regexp{
	"--goodput":  regexp.MustCompile(`^(ttft|tpot|e2el):[0-9.]+$`),
	"--metadata": regexp.MustCompile(`^[\w.-]+=`),
	"--header":   regexp.MustCompile(`^[\w.-]+=`),
}

// RepeatLists repeats the name of a flag before each of its values: "--goodput
// ttft:200 tpot:50" becomes "--goodput ttft:200 --goodput tpot:50".
func RepeatLists(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		out = append(out, args[i])
		value := listFlags[args[i]]
		if value == nil || i+1 == len(args) {
			continue
		}
		i++
		out = append(out, args[i])
		name := args[i-1]
		for i+1 < len(args) && value.MatchString(args[i]) && value.MatchString(args[i+1]) {
			i++
			out = append(out, name, args[i])
		}
	}
	return out
}

// An oldLimit is the hidden flag of one limit. Given twice, the later counts.
type oldLimit struct {
	trust *Trust
	limit limit
}

// Set implements [pflag.Value].
func (o *oldLimit) Set(s string) error { return o.trust.set(o.limit, s, o.limit.Key) }

// String implements [pflag.Value].
func (o *oldLimit) String() string { return o.limit.text(&o.trust.Limits) }

// Type implements [pflag.Value].
func (o *oldLimit) Type() string { return "limit" }
