package datasets

import "fmt"

// notes counts what happened by fixed sentences.
type notes struct {
	order []string
	n     map[string]int64
}

// say adds a sentence once.
func (t *notes) say(text string) { t.add(text, 0) }

// count counts one more record of which the sentence is true.
func (t *notes) count(text string) { t.add(text, 1) }

func (t *notes) add(text string, n int64) {
	if t.n == nil {
		t.n = map[string]int64{}
	}
	if _, ok := t.n[text]; !ok {
		t.order = append(t.order, text)
	}
	t.n[text] += n
}

func (t *notes) lines() []string {
	var out []string
	for _, text := range t.order {
		if n := t.n[text]; n > 0 {
			text = fmt.Sprintf("%s: %d", text, n)
		}
		out = append(out, text)
	}
	return out
}
