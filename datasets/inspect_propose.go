package datasets

import (
	"slices"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"

	"reprise/datasets/internal/row"
	"reprise/datasets/internal/stamp"
	tokenusage "reprise/trace/usage"
)

// words splits a name as people write them: prompt_tokens, promptTokens, Prompt Tokens (n).
func words(name string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	lower := false
	for _, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			flush()
			lower = false
			continue
		case unicode.IsUpper(c) && lower:
			flush()
		}
		lower = unicode.IsLower(c)
		word = append(word, c)
	}
	flush()
	return out
}

// wordsOf are words of names of fields, in English and German.
func wordsOf(list string) []string { return strings.Fields(list) }

var (
	promptWords = wordsOf("prompt input in context request ctx eingabe anfrage")
	answerWords = wordsOf("completion output out response generated generation gen reply answer ausgabe antwort")
	countWords  = wordsOf("token tokens tok toks len length count")
	beginWords  = wordsOf("timestamp time ts t start started begin created received requested arrival arrived date " +
		"datetime at datum zeit zeitstempel zeitpunkt beginn wann when")
	endWords = wordsOf("end ended finish finished completed updated modified first response latency duration " +
		"elapsed ttft ende dauer expires")
	lengthOfTime = wordsOf("latency duration elapsed e2e took dauer laufzeit")
	unitWords    = map[string]string{"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s",
		"sek": "s", "sekunden": "s",
		"ms": "ms", "msec": "ms", "millis": "ms", "milliseconds": "ms", "us": "us", "µs": "us", "microseconds": "us",
		"ns": "ns", "nanoseconds": "ns"}
)

func share(a, b []string) bool {
	return slices.ContainsFunc(a, func(w string) bool { return slices.Contains(b, w) })
}

// A candidate is a field that may be what a target wants.
type candidate struct {
	field *InspectedField
	words []string // of the last part of its path
	whole []string // of all of it
	count namedCount

	records    int  // of the source, as far as it was looked at
	characters bool // the numbers are the lengths of a text beside them
}

func (c candidate) is(types ...string) bool { return slices.Contains(types, c.field.Type) }

func (c candidate) named(names string) bool {
	return slices.Contains(strings.Fields(names), strings.Join(c.words, "_"))
}

// unit is that of a length of time, as the name has it.
func (c candidate) unit() string {
	for _, w := range c.words {
		if u := unitWords[w]; u != "" {
			return u
		}
	}
	return ""
}

// fits says how well a field fits a target; 0 is not at all.
func (c candidate) fits(target string) int {
	rule := fitsOf[target]
	if rule == nil {
		return 0
	}
	n := rule(c)
	if n > 0 {
		n = 100*n - strings.Count(c.field.Path, ".") // of two alike the one at the top
	}
	return n
}

// fitsOf are how well a field fits each target, from its name, kind and values: 0 not at all, 10 plainly.
var fitsOf = map[string]func(candidate) int{
	"time":          candidate.fitsTime,
	"input_tokens":  func(c candidate) int { return c.fitsTokens(tokenusage.Input, promptWords, answerWords) },
	"output_tokens": func(c candidate) int { return c.fitsTokens(tokenusage.Output, answerWords, promptWords) },
	"cached_tokens": func(c candidate) int { return plainly(c.count.is && c.count.kind == tokenusage.Cached) },
	"reasoning_tokens": func(c candidate) int {
		return plainly(c.count.is && (c.count.kind == tokenusage.Reasoning || c.count.kind == tokenusage.Thoughts))
	},
	"messages": func(c candidate) int {
		n := plainly(c.is(messagesType) && !share(c.whole, answerWords) && !share(c.whole, wordsOf("choices")))
		if n > 0 && share(c.words, wordsOf("messages prompt")) {
			n++
		}
		return n
	},
	"prompt": func(c candidate) int {
		n := plainly(c.is(textType) && c.named("prompt input input_text prompt_text question query instruction "+
			"user_prompt eingabe frage text"))
		if n > 0 && c.words[0] == "prompt" {
			n++
		}
		if stats := c.field.stats; stats.ids > 0 && stats.ids == stats.n &&
			c.named("prompt_token_ids token_ids input_ids prompt_ids input_token_ids prompt tokens") {
			n = 10
		}
		return n
	},
	"output": func(c candidate) int {
		return plainly(c.is(textType) && (c.named(
			"output response completion answer reply generated_text output_text response_text antwort ausgabe") ||
			c.named("content text") && share(c.whole, wordsOf("choices response output completion"))))
	},
	"user": func(c candidate) int {
		return plainly(c.is(textType, wholeType) &&
			c.named("user user_id userid end_user end_user_id user_name username customer customer_id tenant tenant_id "+
				"account_id client_id benutzer nutzer kunde"))
	},
	"session": func(c candidate) int {
		return plainly(c.is(textType, wholeType) &&
			c.named("session session_id sessionid conversation conversation_id chat_id thread_id dialog_id sitzung"))
	},
	"model": func(c candidate) int {
		return plainly(c.is(textType) && c.named("model model_name model_id modell modelname deployment used_model "+
			"model_used response_model requested_model request_model"))
	},
	"max_tokens": func(c candidate) int {
		return plainly(c.is(wholeType) && c.named("max_tokens max_output_tokens max_completion_tokens max_new_tokens"))
	},
	"stream": func(c candidate) int {
		return plainly(c.is(flagType) && c.named("stream streamed streaming is_stream is_streaming"))
	},
	"status": candidate.fitsStatus,
	"error":  candidate.fitsError,
	"finish_reason": func(c candidate) int {
		return plainly(c.is(textType) && c.named("finish_reason stop_reason done_reason"))
	},
	"e2e": func(c candidate) int {
		return plainly(c.is(wholeType, decimalType) && share(c.words, lengthOfTime) &&
			!share(c.words, wordsOf("ttft first token")) && c.unit() != "")
	},
	"ttft": func(c candidate) int {
		return plainly(c.is(wholeType, decimalType) && (slices.Contains(c.words, "ttft") ||
			slices.Contains(c.words, "first") && slices.Contains(c.words, "token")) && c.unit() != "")
	},
}

func plainly(fits bool) int {
	if fits {
		return 10
	}
	return 0
}

func (c candidate) fitsTime() (n int) {
	mostly := c.field.stats.dates > c.field.stats.texts // below them a row of totals, which is a bad record
	if share(c.words, endWords) || !c.is(dateType, wholeType, decimalType) && !mostly {
		return 0
	}

	epoch := !c.is(dateType) && stamp.EpochUnit(int64(c.field.stats.min)) != 0
	switch named := share(c.words, beginWords); {
	case c.is(dateType) || mostly:
		n = 20
		if named {
			n = 30
		}
	case named && epoch:
		n = 25
	case named && !slices.Contains(c.words, "count"):
		n = 10
	}
	if n > 0 && share(c.words, wordsOf("start started begin arrival arrived received requested beginn")) {
		n += 2
	}
	return n
}

func (c candidate) fitsTokens(kind tokenusage.Kind, own, other []string) int {
	if c.characters {
		return 0
	}
	n := plainly((c.is(wholeType) || c.field.stats.open > 0) && share(c.words, own) && !share(c.words, other) &&
		share(c.words, countWords) && !share(c.words, wordsOf("cached cache reasoning max details audio image")) &&
		!share(c.whole, noCountWords))
	if c.count.known {
		n = plainly(c.count.kind == kind)
	}
	if n > 0 && (c.count.known || share(c.words, wordsOf("token tokens"))) {
		n++
	}
	return n
}

func (c candidate) fitsStatus() int {
	stats := &c.field.stats
	return plainly(c.is(wholeType) && stats.min >= 100 && stats.max < 600 && c.named("status status_code statuscode "+
		"http_status http_status_code http_code response_code response_status code") ||
		c.is(textType) && c.named("status state outcome result") && stats.fates > 0 && stats.fates == stats.texts ||
		c.is(flagType) && c.named("success is_success successful succeeded ok"))
}

// fitsError tells fields that say of some requests that they failed, and of others nothing.
func (c candidate) fitsError() int {
	return plainly(c.is(flagType) && c.named("error is_error has_error errored failed is_failed failure") ||
		c.is(textType) && c.named("error error_message error_msg error_type error_code error_str exception err") &&
			(c.field.Present < c.records || c.field.stats.nones > 0) || c.is(wholeType) && c.field.stats.min == 0 &&
		c.named("error error_code err"))
}

// candidates are the fields that may be proposed.
func (i *Inspection) candidates() (all []candidate) {
	for k := range i.Fields {
		f := &i.Fields[k]
		path := strings.ReplaceAll(f.Path, row.ListMembers, "[0]")
		if strings.ContainsAny(path, "|") || pairAhead.MatchString(path) || f.Present == 0 ||
			strings.Contains(f.Path, row.ListMembers) && slices.Contains(i.columns, f.Path) {
			continue
		}
		last := path[strings.LastIndexByte(path, '.')+1:]
		if slices.Contains(i.columns, f.Path) { // which may have dots itself
			last = path
		}
		if w := words(last); len(w) > 0 {
			c := candidate{field: f, words: w, whole: words(path), records: i.Records}
			c.count = i.countOfName(c)
			c.characters = c.is(wholeType) && slices.ContainsFunc(i.Fields, func(text InspectedField) bool {
				return text.Type == textType && slices.Equal(text.stats.sizes, f.stats.sizes)
			})
			all = append(all, c)
		}
	}
	return all
}

// has reports whether a field by its name and type is what a target wants.
func (i *Inspection) has(target string) bool {
	return slices.ContainsFunc(i.candidates(), func(c candidate) bool {
		named := target != "time" || share(c.words, beginWords)
		return named && !strings.Contains(c.field.Path, row.ListMembers) && c.fits(target) > 0
	})
}

// propose fills in the flags with which a source can be imported, as far as the names
// and the types of its fields tell.
func (i *Inspection) propose() {
	all := i.candidates()
	taken := map[string]bool{}
	pick := func(target string) bool {
		best, most := candidate{}, 0
		for _, c := range all {
			// What stands in a list is a field of the request only where it is the answer.
			if strings.Contains(c.field.Path, row.ListMembers) && target != "output" || taken[c.field.Path] {
				continue
			}
			if n := c.fits(target); n > most {
				best, most = c, n
			}
		}
		if most == 0 {
			return false
		}
		taken[best.field.Path] = true
		if body, whole := i.bodyOf(best.field.Path); whole && (target == "messages" || target == "prompt") {
			i.Flags = append(i.Flags, "--map", "messages="+body)
			return true
		}
		if s := best.field.stats; s.open > 0 && !slices.Contains(i.Flags, "--decimal") &&
			(target == "input_tokens" || target == "output_tokens") {
			mark := "comma" // a count has thousands, and no decimals
			if s.commas {
				mark = "point"
			}
			i.Flags = append(i.Flags, "--decimal", mark)
		}
		if target == "e2e" || target == "ttft" {
			target += "_" + best.unit()
		}
		i.Flags = append(i.Flags, "--map", target+"="+strings.ReplaceAll(best.field.Path, row.ListMembers, "[0]"))
		return true
	}
	timed := i.proposeSplitTime(all, taken) || pick("time")
	text := pick("messages") || pick("prompt")
	sized := i.proposeSum("input_tokens", all, taken) || pick("input_tokens") || text // with both usage is the length
	for _, target := range []string{"output", "output_tokens", "cached_tokens", "reasoning_tokens", "user", "session",
		"model", "max_tokens", "stream", "status", "error", "finish_reason", "ttft", "e2e"} {
		if target != "output_tokens" || !i.proposeSum(target, all, taken) {
			pick(target)
		}
	}
	end := slices.IndexFunc(all, func(c candidate) bool {
		return !timed && c.is(dateType) && share(c.words, wordsOf("end ended finish finished completed ende"))
	})
	switch why := sums(all, timed); {
	case i.Records == 0 && i.Whole:
		i.Missing, i.Final = "it has no records", true
	case !sized:
		i.Missing = "no field looks like a prompt or its number of tokens"
	case slices.ContainsFunc(all, func(c candidate) bool {
		return (c.field.Path == "role" || c.field.Path == "from") && c.field.stats.answers > 0
	}):
		i.Missing, i.Final = "its rows are messages and no requests: put the messages of a conversation into one list", true
	case why != "" && !text:
		i.Missing, i.Final = why+": import a log of the single requests", true
	case end >= 0:
		i.ends, i.Final = all[end].field.Path, true
		i.Missing = "its only time, " + i.ends + ", is when a request ended: --inspect -o mine.yaml writes a format " +
			"file that says so, for --format mine.yaml"
	case !timed:
		i.Flags = append(i.Flags, "--arrivals", "poisson:2")
	}
}

// proposeSplitTime proposes the day and the time of day, where these stand in two fields, and no other
// has both.
func (i *Inspection) proposeSplitTime(all []candidate, taken map[string]bool) bool {
	day := slices.IndexFunc(all, func(c candidate) bool { return c.field.stats.days == i.Records })
	clock := slices.IndexFunc(all, func(c candidate) bool { return c.field.stats.clocks == i.Records })
	if day < 0 || clock < 0 || slices.ContainsFunc(all, func(c candidate) bool { return c.fitsTime() >= 20 }) {
		return false
	}
	paths := []string{all[day].field.Path, all[clock].field.Path}
	taken[paths[0]], taken[paths[1]] = true, true
	i.Flags = append(i.Flags, "--map", "time="+strings.Join(paths, "+"))
	return true
}

// bodyOf returns the path of the object that a prompt stands in, where a system prompt or tools
// stand beside it: then the whole object is the prompt. That of the record is a dot.
func (i *Inspection) bodyOf(path string) (body string, whole bool) {
	if slices.Contains(i.columns, path) {
		return "", false
	}
	at := strings.LastIndexByte(path, '.')
	if !slices.Contains([]string{"messages", "input", "prompt", "contents"}, path[at+1:]) {
		return "", false
	}
	beside := path[:at+1]
	for _, key := range []string{"system", "instructions", "systemInstruction", "system_instruction",
		"tools", "functions"} {
		whole = whole || slices.ContainsFunc(i.Fields, func(f InspectedField) bool {
			return f.Present > 0 && (f.Path == beside+key || strings.HasPrefix(f.Path, beside+key+row.ListMembers) ||
				strings.HasPrefix(f.Path, beside+key+"."))
		})
	}
	if body = strings.TrimSuffix(beside, "."); body == "" {
		body = "."
	}
	return strings.ReplaceAll(body, row.ListMembers, "[0]"), whole
}

// nearestName returns the name that is a likely misspelling away from the wanted one,
// or "".
func nearestName(wanted string, names []string) string {
	best, distance := "", len(wanted)/3+2
	for _, name := range names {
		a, b := strings.ToLower(wanted), strings.ToLower(name)
		d := levenshtein.ComputeDistance(a, b)
		switch last := b[strings.LastIndexByte(b, '.')+1:]; {
		case last == a:
			d = 0
		case len(a) > 2 && strings.Contains(b, a):
			d = 1
		}
		if d < distance {
			best, distance = name, d
		}
	}
	return best
}

// nearNames returns the names that share a word with the wanted one, such as openai-log
// with openai, else the one that is a likely misspelling of it.
func nearNames(wanted string, names []string) (near []string) {
	words := func(name string) []string {
		return strings.FieldsFunc(strings.ToLower(name), func(c rune) bool {
			return c == '-' || c == '_' || c == ' ' || c == '.'
		})
	}
	asked := words(wanted)
	for _, name := range names {
		if slices.ContainsFunc(words(name), func(word string) bool { return slices.Contains(asked, word) }) {
			near = append(near, name)
		}
	}
	if name := nearestName(wanted, names); len(near) == 0 && name != "" {
		near = append(near, name)
	}
	return near
}
