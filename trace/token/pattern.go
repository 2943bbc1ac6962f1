package token

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dlclark/regexp2"
)

// A step of a tokenizer.json cuts each piece of the step before: by a splitter, or by a regular expression for which
// there is none. To either, the piece is the whole text.
type step struct {
	split   splitter
	pattern *regexp2.Regexp
}

// splitters are the patterns of published tokenizer.json files. The last four leave text between their matches, and
// make pieces of that too.
var splitters = map[string]splitter{
	// Llama 3, GPT-4
	cl100kHead + `\p{N}{1,3}` + cl100kTail: splitCL100K,
	// Qwen 2 and later: every digit is a piece
	cl100kHead + `\p{N}` + cl100kTail: func(t *classTable, s string, i int) int { return t.cl100k(s, i, 1) },
	// GPT-OSS, Llama 4
	o200kLower + o200kSuffix + `|` + o200kUpper + o200kSuffix + `|\p{N}{1,3}` + o200kTail: splitO200K,
	o200kLower + `|` + o200kUpper + `|\p{N}` + o200kTail: func(t *classTable, s string, i int) int {
		// Tekken of Mistral: no contractions, and every digit is a piece
		return t.o200k(s, i, 1, func(string, int) int { return 0 })
	},
	gpt2Pattern:     splitGPT2,
	`\p{N}{1,3}`:    splitNumbers(3),
	`\p{N}`:         splitNumbers(1),
	`[一-龥぀-ゟ゠-ヿ]+`:  splitHanKana,
	deepSeekPattern: splitDeepSeek,
}

const (
	cl100kHead = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`
	cl100kTail = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	o200kLower  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`
	o200kUpper  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`
	o200kSuffix = `(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
	o200kTail   = `| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`

	gpt2Pattern     = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	deepSeekPattern = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" +
		`|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// newStep gives the step that makes a piece of each match of a pattern, and of what lies between two.
func newStep(pattern string) (step, error) {
	// Some files have the line ends themselves in place of their escapes.
	if f := splitters[strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(pattern)]; f != nil {
		return step{split: f}, nil
	}
	if err := checkPattern(pattern); err != nil {
		return step{}, err
	}
	// To the reference's engine, Oniguruma, $ stands before every line end.
	re, err := regexp2.Compile(pattern, regexp2.Multiline)
	if err != nil {
		return step{}, errors.New("the regular expression is not supported")
	}
	return step{pattern: re}, nil
}

// checkPattern refuses what Oniguruma and the engine here understand differently, or may: sets within sets,
// intersections, most escapes by a letter or digit, groups with names or options, and an anchor at the start of lines.
// (Possessive repetition is an error to the engine.)
func checkPattern(p string) error {
	set := false
	for i := 0; i < len(p); i++ {
		rest := p[i:]
		bad := false
		switch {
		case p[i] == '\\':
			bad = len(rest) < 2 || (isASCIILetter(rest[1]) || isDigit(rest[1])) &&
				strings.IndexByte("dDsSpPrntfu", rest[1]) < 0
			i++
		case set:
			bad = p[i] == '[' || strings.HasPrefix(rest, "&&")
			set = p[i] != ']'
		case p[i] == '[':
			set = true
			bad = strings.HasPrefix(rest, "[]") || strings.HasPrefix(rest, "[^]")
			if strings.HasPrefix(rest, "[^") {
				i++
			}
		case p[i] == '{':
			bad = strings.HasPrefix(rest, "{,")
		case p[i] == '^':
			bad = true
		case strings.HasPrefix(rest, "(?"):
			bad = !hasPrefix(rest, "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:") &&
				(i > 0 || !hasPrefix(rest, "(?i)"))
		}
		if bad {
			return fmt.Errorf("regular expression engines disagree on what byte %d of the regular expression begins",
				i+1)
		}
	}
	return nil
}

func hasPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}
