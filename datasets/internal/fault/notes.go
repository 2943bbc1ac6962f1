package fault

import (
	"fmt"
	"strings"
)

// Notes counts what happened by fixed sentences.
type Notes struct {
	order []string
	n     map[string]int64
}

// SayOnce adds a sentence once.
func (t *Notes) SayOnce(text string) { t.Add(text, 0) }

// Count counts one more record to which the sentence applies.
func (t *Notes) Count(text string) { t.Add(text, 1) }

// maxNamed bounds the sentences that [Notes.CountNamed] makes: names may be made of data.
const maxNamed = 100

// CountNamed does the same for a sentence with %s in the place of a name from the source. It
// repeats names as programs spell them, in small letters, and nothing else.
func (t *Notes) CountNamed(text, name string) {
	word := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == ""
	if !word || name == "" || len(name) > 40 || len(t.order) > maxNamed {
		name = "another name"
	}
	t.Count(fmt.Sprintf(text, name))
}

// Add counts n more records to which the sentence applies.
func (t *Notes) Add(text string, n int64) {
	if t.n == nil {
		t.n = map[string]int64{}
	}
	if _, ok := t.n[text]; !ok {
		t.order = append(t.order, text)
	}
	t.n[text] += n
}

// Lines are the sentences in the order in which they were said first, each with its count.
func (t *Notes) Lines() []string {
	var out []string
	for _, text := range t.order {
		if n := t.n[text]; n > 0 {
			text = fmt.Sprintf("%s: %d", text, n)
		}
		out = append(out, text)
	}
	return out
}

// Once are the sentences that were said once, without those that count records.
func (t *Notes) Once() Notes {
	var told Notes
	for _, text := range t.order {
		if t.n[text] == 0 {
			told.SayOnce(text)
		}
	}
	return told
}
