package check

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"

	"reprise/replay/result"
	"reprise/trace/doc"
	"reprise/trace/textpage"
)

// Levels of a [Finding].
const (
	OK      = "ok"
	Note    = "note"    // worth knowing, and no fault
	Problem = "problem" // in the way of a replay whose figures hold
)

// A Finding says what one of the checks found.
type Finding struct {
	Check string `json:"check"`
	Level string `json:"level"`
	Says  string `json:"says"`
}

// Engines by the names of their metrics, and their flags by what these turn on.
var (
	engineNames = map[string]string{"vllm": "vLLM", "sglang": "SGLang", "llamacpp": "llama.cpp",
		"dynamo": "NVIDIA Dynamo", "trtllm": "TensorRT-LLM", "reprise": "reprise serve"}

	cachedTokensFlags = map[string]string{"vllm": "--enable-prompt-tokens-details", "sglang": "--enable-cache-report"}
	prefixCacheFlags  = map[string]string{"vllm": "--enable-prefix-caching",
		"sglang": "leave --disable-radix-cache out", "trtllm": "kv_cache_config.enable_block_reuse",
		"llamacpp": "--cache-prompt"}
)

// list takes a finding.
type list func(check, level, format string, args ...any)

// apis are those of a server.
type apis []API

func (r *Report) findings() (out []Finding) {
	add := list(func(check, level, format string, args ...any) {
		out = append(out, Finding{check, level, fmt.Sprintf(format, args...)})
	})
	var has, lacks []string
	for _, a := range r.APIs {
		if a.Has && a.Refused == "" {
			has = append(has, a.Name)
		} else {
			lacks = append(lacks, a.Name)
		}
	}
	which := strings.Join(has, ", ")
	if len(lacks) > 0 {
		which += "; not " + strings.Join(lacks, ", ")
	}
	add("APIs", OK, "%s", which)
	for _, a := range r.APIs {
		if a.Refused != "" {
			add("APIs", Note, "%s refuses a prompt of one word: %s", a.Name, a.Refused)
		}
	}
	for _, says := range r.Adapted {
		add("Fields", Note, "%s", says)
	}
	model := r.Model
	if n := len(r.Server.Models) + r.Server.Unlisted; n > 1 {
		model += fmt.Sprintf(", of %d", n)
	}
	if len(r.Server.Models) > 0 && r.Server.Models[0].MaxLen > 0 {
		model += fmt.Sprintf("; context %s tokens", doc.Brief(int64(r.Server.Models[0].MaxLen)))
	} else {
		model += "; the server does not state its context length"
	}
	add("Model", OK, "%s", model)
	if r.Auth == "a key is not needed" {
		add("Auth", Note, "the server answers without the API key that was sent")
	} else {
		add("Auth", OK, "%s", r.Auth)
	}
	apis(r.APIs).findings(add)
	for i := range r.Refuted {
		add("Counts", Problem, "%s: these counts are impossible, so a replay would not be trustworthy",
			r.Refuted[i].String())
	}
	r.Cache.findings(add, &r.Server)
	r.Tokenizer.findings(add, r.Model)
	perEvent := ""
	if r.PerEvent != nil {
		perEvent = fmt.Sprintf("; %.2f tokens an event", *r.PerEvent)
	}
	if r.Server.Speculates {
		add("Speculation", Note, "the server decodes speculatively%s: made-up prompts have another TPOT than real "+
			"text. --corpus, --verbatim or record --shadow send real text", perEvent)
	} else if r.PerEvent != nil && *r.PerEvent > 1.5 {
		add("Speculation", Note, "not stated%s: it may decode speculatively, and gaps are between events, not tokens",
			perEvent)
	} else {
		add("Speculation", OK, "none seen%s", perEvent)
	}
	if t := r.RoundTripMS; t != nil {
		add("Round trip", OK, "%s ms at the median of %d, %s at least", doc.Number(t.Median), t.N,
			doc.Number(t.Least))
	}
	r.Clock.findings(add)
	add("Sent", OK, "%s for %s of prompts and %s of answers", doc.Many(int64(r.Sent.Requests), "request"),
		doc.Many(r.Sent.PromptTokens, "token"), doc.Brief(r.Sent.OutputTokens))
	return out
}

// findings say how the server's clock differs from that of this machine; nil is not known.
func (c *Clock) findings(add list) {
	switch {
	case c == nil:
		add("Clock", Note, "not known: the server sends no Date header, or several that disagree")
	case c.FromS > 1:
		add("Clock", Note, "the server's clock is ahead by %.1f to %.1f s; Date headers have whole seconds. Its logs "+
			"stand beside a replay only after that is taken off", c.FromS, c.ToS)
	case c.ToS < -1:
		add("Clock", Note, "the server's clock is behind by %.1f to %.1f s; Date headers have whole seconds. Its "+
			"logs stand beside a replay only after that is added", -c.ToS, -c.FromS)
	default:
		add("Clock", OK, "the server's and this machine's agree within %.1f s (Date headers have whole seconds)",
			max(-c.FromS, c.ToS))
	}
}

// String says what cannot be, with the numbers that were claimed.
func (r *Refuted) String() string {
	var numbers []string
	for _, count := range []struct {
		n    *int64
		what string
	}{{r.Input, "prompt tokens"}, {r.Cached, "cached"}, {r.Output, "output tokens"}, {r.Bytes, "bytes of text"}} {
		if count.n != nil {
			numbers = append(numbers, doc.Count(*count.n)+" "+count.what)
		}
	}
	return fmt.Sprintf("%s has answers %s (%s)", r.API, strings.Join(r.says, " and "), strings.Join(numbers, ", "))
}

func (all apis) findings(add list) {
	var with, without, templates []string
	for _, a := range all {
		switch {
		case a.Usage == nil:
		case *a.Usage:
			with = append(with, a.Name)
		default:
			without = append(without, a.Name)
		}
		if t := a.Template; t != nil && a.Name != result.APIEmbeddings {
			says := fmt.Sprintf("%s %d", a.Name, t.Before+t.After)
			if t.After > 0 && t.Found != result.TemplateAssumed {
				says += fmt.Sprintf(" (%d before the prompt and %d after it, %s)", t.Before, t.After, t.Found)
			}
			templates = append(templates, says)
		}
	}
	switch {
	case len(with) == 0:
		add("Usage", Problem, "the server counts no tokens in its answers, so that a replay estimates them by the "+
			"tokenizer. Servers of OpenAI's API count where stream_options.include_usage is asked for, which it "+
			"was; a gateway may take it out")
	case len(without) > 0:
		add("Usage", Note, "%s return token counts, %s do not", strings.Join(with, ", "),
			strings.Join(without, ", "))
	default:
		add("Usage", OK, "all APIs return token counts")
	}
	if len(templates) > 0 {
		add("Template", OK, "tokens added to a prompt: %s", strings.Join(templates, "; "))
	}
}

func (c *Cache) findings(add list, s *result.ServerModels) {
	turnOn := ""
	if flag := prefixCacheFlags[s.Engine]; flag != "" {
		turnOn = " (" + flag + ")"
	}
	switch {
	case c.On == nil:
		add("Prefix cache", Note,
			"not known whether it is on%s: the server neither states it nor reports cached tokens", turnOn)
	case !*c.On:
		add("Prefix cache", Note, "off%s, %s: every prompt is computed whole", turnOn, c.OnFrom)
	default:
		found := ""
		if c.Found != nil {
			found = fmt.Sprintf("; %d of %d repeated tokens were hits", *c.Found, c.Sent)
		}
		add("Prefix cache", OK, "on, %s%s", c.OnFrom, found)
		if c.Found != nil && *c.Found <= 1 && c.OnFrom == "stated" {
			add("Prefix cache", Note,
				"a prompt of %d tokens that came again at once was not found: a router may spread prompts over "+
					"several engines", c.Sent)
		}
	}
	switch {
	case c.Reported == nil:
		add("Cached tokens", Note, "not known: a prompt of %d tokens was refused", c.Sent)
	case *c.Reported:
		add("Cached tokens", OK, "reported in usage")
	case cachedTokensFlags[s.Engine] != "":
		add("Cached tokens", Note,
			"not reported, so that hits come from the server's metrics alone: start it with %s",
			cachedTokensFlags[s.Engine])
	default:
		add("Cached tokens", Note,
			"not reported, so that hits come from the server's metrics alone, where it has any")
	}
	kv := "capacity not stated"
	if s.KVTokens > 0 {
		kv = doc.Brief(s.KVTokens) + " tokens"
		if s.Engine == "dynamo" {
			kv += " in each worker"
		}
	}
	switch {
	case s.Slots > 0:
		add("KV cache", OK, "%s, %d slots of one sequence each, which are reused by token", kv, s.Slots)
	case s.BlockSize > 0:
		add("KV cache", OK, "%s, in blocks of %d (%s)", kv, s.BlockSize, s.BlockFrom)
	default:
		add("KV cache", Note, "%s, block size not stated: a replay takes 16 for the expected hit ratio, and "+
			"--server-block-size names another", kv)
	}
}

func (t *Tokens) findings(add list, model string) {
	name := t.Name
	if t.Guessed {
		name += " (taken, since none was named)"
	}
	compared, kind, off := 0, "", 0.0 // the text that the counts differ most for
	for _, text := range t.Texts {
		if text.Counted == nil {
			continue
		}
		if compared++; math.Abs(*text.OffShare) > math.Abs(off) {
			kind, off = text.Kind, *text.OffShare
		}
	}
	switch {
	case compared == 0:
		add("Tokenizer", Note, "%s was not compared: the server counted none of the texts", name)
	case !t.differs(tokens):
		add("Tokenizer", OK, "%s counts as the server does, in %s", name, doc.Many(int64(compared), "text"))
	default:
		next := "name its own with --tokenizer, as the path of its tokenizer.json"
		if strings.Count(model, "/") == 1 {
			next += " or, when it is in Hugging Face's cache, as " + model
		}
		if t.Family != "" {
			next = "give --tokenizer " + t.Family + ", which counts as the server does"
		}
		level, so := Problem, "Prompts would not have the lengths of the workload: "
		if t.Guessed {
			level, so = Note, "A replay then makes prompts of words that the server counts as one token each. For a "+
				"corpus, "
		}
		add("Tokenizer", level, "the server counts %s %s tokens than %s for %s. %s%s", doc.Percent(math.Abs(off)),
			map[bool]string{true: "more", false: "fewer"}[off > 0], name, kind, so, next)
	}
}

// Problems are the findings in the way of a replay.
func (r *Report) Problems() (n int) {
	for _, f := range r.Findings {
		if f.Level == Problem {
			n++
		}
	}
	return n
}

// WriteText writes the report for a terminal: whether a replay can measure the server,
// the problems, all else that was found; and with details each text of the tokenizer.
func (r *Report) WriteText(w io.Writer, o textpage.Options) error {
	p := textpage.New(o)
	engine := strings.TrimSpace(cmp.Or(engineNames[r.Server.Engine], "a server") + " " + r.Server.Version)
	about := fmt.Sprintf("%s at %s, model %s", engine, r.URL, r.Model)
	switch n := r.Problems(); {
	case n == 0:
		p.Line("", "Ready for a replay: "+about+".")
	default:
		p.Line("", fmt.Sprintf("Not ready for a replay, for %s: %s.", doc.Many(int64(n), "reason"), about))
	}
	for _, level := range []string{Problem, Note, OK} {
		p.Blank()
		for _, f := range r.Findings {
			if f.Level == level {
				p.Line(fmt.Sprintf("%-14s ", f.Check), f.Says)
			}
		}
	}
	if o.Details && len(r.Tokenizer.Texts) > 0 {
		var rows [][]string
		for _, t := range r.Tokenizer.Texts {
			row := []string{t.Kind, fmt.Sprint(t.Tokens), "refused", ""}
			if t.Counted != nil {
				row[2], row[3] = fmt.Sprint(*t.Counted), doc.Percent(*t.OffShare)
			}
			rows = append(rows, row)
		}
		p.Blank()
		p.Table("Tokens of the same text", []string{"", r.Tokenizer.Name, "server", "off by"}, rows)
	}
	_, err := p.WriteTo(w)
	return err
}
