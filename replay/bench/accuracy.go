package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"gonum.org/v1/gonum/mathext"

	"reprise/replay/report"
	"reprise/trace/objectstore"
	"reprise/trace/page"
)

// Questions are prompts with known answers. Neither gets into errors or results.
type Questions struct {
	Digest string // of the file, SHA-256 in hexadecimal
	all    []question
}

// A question is a line of the file.
type question struct {
	Prompt    string   `json:"prompt"`
	Answer    string   `json:"answer"`
	Answers   []string `json:"answers"`    // in place of answer: any of them
	Choices   []string `json:"choices"`    // of a multiple choice: the answer is one of them
	MaxTokens int      `json:"max_tokens"` // of an answer; 0 is defaultAnswer
}

// Bounds of a file of questions.
const (
	mostQuestions   = 100_000
	mostQuestionB   = 1 << 20 // of a line
	defaultAnswer   = 32      // tokens
	questionsAtOnce = 8
)

// ReadQuestions reads a file of JSON lines, each an object with prompt and answer, answers, or
// choices and answer; max_tokens is 32 where it is left out. Errors name the file and the
// line, and quote nothing.
func ReadQuestions(path string) (*Questions, error) {
	f, err := objectstore.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	q, err := readQuestions(f)
	if err != nil {
		return nil, fmt.Errorf("%s%w", path, err)
	}
	return q, nil
}

func readQuestions(r io.Reader) (*Questions, error) {
	sum := sha256.New()
	lines := bufio.NewScanner(io.TeeReader(r, sum))
	lines.Buffer(nil, mostQuestionB)
	out := &Questions{}
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		one, fault := parseQuestion(line)
		if fault == "" && len(out.all) == mostQuestions {
			fault = "there are more than " + page.Many(mostQuestions, "question")
		}
		if fault != "" {
			return nil, fmt.Errorf(":%d: %s", n, fault)
		}
		out.all = append(out.all, one)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf(":%d: a line has at most %d bytes", n+1, mostQuestionB)
	case err != nil:
		return nil, fmt.Errorf(": %w", err)
	case len(out.all) == 0:
		return nil, errors.New(": it has no questions")
	}
	out.Digest = hex.EncodeToString(sum.Sum(nil))
	return out, nil
}

// parseQuestion reads a line; fault says what is wrong with it.
func parseQuestion(line []byte) (q question, fault string) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if !utf8.Valid(line) || d.Decode(&q) != nil || d.More() {
		return q, "want a JSON object with prompt and answer, and no more than answers, choices and max_tokens beside them"
	}
	given := q.Answers
	if q.Answer != "" {
		given = append([]string{q.Answer}, given...)
	}
	switch {
	case strings.TrimSpace(q.Prompt) == "":
		return q, "the prompt is empty"
	case len(given) == 0:
		return q, "there is no answer"
	case len(q.Answers) > 0 && q.Answer != "":
		return q, "want answer or answers, not both"
	case q.MaxTokens < 0 || q.MaxTokens > 1<<20:
		return q, "max_tokens: want a number above 0"
	case len(q.Choices) == 1:
		return q, "want two choices or more"
	}
	seen := map[string]bool{}
	for _, c := range q.Choices {
		if normal(c) == "" || seen[normal(c)] {
			return q, "a choice is empty, or there twice"
		}
		seen[normal(c)] = true
	}
	for _, a := range given {
		switch {
		case normal(a) == "":
			return q, "an answer is empty"
		case len(q.Choices) > 0 && !seen[normal(a)]:
			return q, "the answer is none of the choices"
		}
	}
	if q.Answers = given; q.MaxTokens == 0 {
		q.MaxTokens = defaultAnswer
	}
	return q, ""
}

// right says whether a text answers the question. Of a multiple choice the first of the choices
// in the text counts; else the first line that is not empty has to be the answer. Case, spaces
// and punctuation at the ends do not matter.
func (q *question) right(text string) bool {
	given := ""
	if len(q.Choices) > 0 {
		given = firstChoice(text, q.Choices)
	} else {
		for line := range strings.Lines(text) {
			if given = normal(line); given != "" {
				break
			}
		}
	}
	for _, a := range q.Answers {
		if given != "" && given == normal(a) {
			return true
		}
	}
	return false
}

// normal is a text in small letters, with one space between words, and without punctuation at
// its ends, unless it is nothing else.
func normal(s string) string {
	s = strings.ToLower(strings.Join(strings.Fields(s), " "))
	return strings.TrimFunc(s, func(r rune) bool { return strings.ContainsRune(`.,;:!?"'()[]*`+"`", r) || unicode.IsSpace(r) })
}

// firstChoice is the choice that stands first in a text as a word of its own, the longest of
// those that begin there; "" without one. A choice of one letter is meant as it is written: "a"
// is seldom an answer.
func firstChoice(text string, choices []string) string {
	text = strings.Join(strings.Fields(text), " ")
	small := strings.ToLower(text)
	if len(small) != len(text) { // letters whose two cases differ in length
		text = small
	}
	inWord := func(s string, last bool) bool {
		r, _ := utf8.DecodeRuneInString(s)
		if last {
			r, _ = utf8.DecodeLastRuneInString(s)
		}
		return s != "" && (unicode.IsLetter(r) || unicode.IsDigit(r))
	}
	at, found := len(text), ""
	for _, c := range choices {
		in, c := small, normal(c)
		want := c
		if utf8.RuneCountInString(c) == 1 && strings.ToUpper(c) != c {
			in, want = text, strings.ToUpper(c)
		}
		for from := 0; ; {
			i := strings.Index(in[from:], want)
			if i < 0 {
				break
			}
			i += from
			if !inWord(in[:i], true) && !inWord(in[i+len(want):], false) {
				if i < at || i == at && len(c) > len(found) {
					at, found = i, c
				}
				break
			}
			from = i + len(want)
		}
	}
	return found
}

// An asker is a target that answers questions, and not only in virtual time.
type asker interface {
	// Asker returns what sends a prompt and returns the text of the answer, of at most so
	// many tokens, by several goroutines at a time, until closing.
	Asker(ctx context.Context) (ask func(ctx context.Context, prompt string, most int) (string, error), closing func(), err error)
}

// accuracySchema names the layout of an [Accuracy] as JSON.
const accuracySchema = "accuracy/1"

// An Accuracy is how many questions a model answered rightly. It has no text.
type Accuracy struct {
	Schema    string   `json:"schema"`
	Model     string   `json:"model"`
	Digest    string   `json:"questions_sha256"`
	Questions int64    `json:"questions"`
	Right     int64    `json:"right"`
	Failed    int64    `json:"failed"` // without an answer; they are not right
	Failures  []string `json:"failures,omitempty"`
	Share     float64  `json:"share"`
	// Lo and Hi are the interval of Wilson (1927) of the share, at 95 %.
	Lo float64 `json:"lo"`
	Hi float64 `json:"hi"`
	// Each is 1 for a question that was answered rightly, and 0 for one that was not.
	Each string `json:"each"`

	// Against is how the answers are to those of the first model, or of the baseline.
	Against *AccuracyChange `json:"against,omitempty"`
}

// An AccuracyChange compares the answers of two models to the same questions. P is that of
// McNemar's exact test: the chance of a difference at least so large where each question that
// only one of the two answered rightly is as likely to be either's.
type AccuracyChange struct {
	Model  string  `json:"model"`
	Gained int64   `json:"gained"` // right here, and not there
	Lost   int64   `json:"lost"`   // right there, and not here
	P      float64 `json:"p"`
}

// mostP is up to what chance fewer right answers are taken to be no chance.
const mostP = 0.01

// Worse says that fewer questions were answered rightly, beyond chance.
func (a *Accuracy) Worse() bool {
	return a.Against != nil && a.Against.Lost > a.Against.Gained && a.Against.P <= mostP
}

// ask asks all questions, questionsAtOnce at a time: a server that errs where requests are
// batched is seen.
func (q *Questions) ask(ctx context.Context, ask func(context.Context, string, int) (string, error)) (*Accuracy, error) {
	out := &Accuracy{Schema: accuracySchema, Digest: q.Digest, Questions: int64(len(q.all))}
	each := make([]byte, len(q.all))
	failures := map[string]bool{}
	var mu sync.Mutex
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(questionsAtOnce, len(q.all)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(len(q.all)) {
					return
				}
				one := &q.all[i]
				text, err := ask(ctx, one.Prompt, one.MaxTokens)
				each[i] = '0'
				mu.Lock()
				switch {
				case err != nil:
					if out.Failed++; len(failures) < 4 && !failures[err.Error()] {
						failures[err.Error()], out.Failures = true, append(out.Failures, err.Error())
					}
				case one.right(text):
					each[i] = '1'
					out.Right++
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out.Each = string(each)
	out.Share = *report.Ratio(out.Right, out.Questions)
	out.Lo, out.Hi = wilson(out.Right, out.Questions)
	return out, nil
}

// wilson is the interval of a share at 95 % (Wilson 1927).
func wilson(right, of int64) (lo, hi float64) {
	const z = 1.959963984540054
	n, p := float64(of), float64(right)/float64(of)
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return *report.Rounded(max(middle-half, 0), 1e9), *report.Rounded(min(middle+half, 1), 1e9)
}

// compare sets the answers beside those of another model to the same questions.
func (a *Accuracy) compare(name string, other *Accuracy) {
	if other == nil || other.Digest != a.Digest || len(other.Each) != len(a.Each) {
		return
	}
	c := &AccuracyChange{Model: name, P: 1}
	for i := range a.Each {
		switch {
		case a.Each[i] == '1' && other.Each[i] == '0':
			c.Gained++
		case a.Each[i] == '0' && other.Each[i] == '1':
			c.Lost++
		}
	}
	if n, few := c.Gained+c.Lost, min(c.Gained, c.Lost); n > 0 {
		// Twice the chance of at most so few of n at one half.
		c.P = min(1, 2*mathext.RegIncBeta(float64(n-few), float64(few+1), 0.5))
	}
	a.Against = c
}

// String says how many questions were answered rightly, and whether that is less than another
// model did.
func (a *Accuracy) String() string {
	out := fmt.Sprintf("%s of %s right, %s (%s to %s)", page.Brief(a.Right), page.Many(a.Questions, "question"), page.Percent(a.Share), page.Percent(a.Lo), page.Percent(a.Hi))
	if a.Failed > 0 {
		out += fmt.Sprintf("; %s not answered", page.Brief(a.Failed))
	}
	if c := a.Against; c != nil && c.Gained+c.Lost > 0 {
		out += fmt.Sprintf("; %s lost and %s gained against %s", page.Brief(c.Lost), page.Brief(c.Gained), c.Model)
		if a.Worse() {
			out += fmt.Sprintf(": LESS ACCURATE, p = %.2g", c.P)
		}
	}
	return out
}

const accuracyName = "accuracy.json"

// readAccuracy reads that of a model in the directory of a suite, nil without one.
func readAccuracy(dir, model string) (*Accuracy, error) {
	path := objectstore.Join(dir, model, accuracyName)
	text, err := objectstore.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var a Accuracy
	if err := json.Unmarshal(text, &a); err != nil || a.Schema != accuracySchema {
		return nil, fmt.Errorf("%s: it has not the schema %s", path, accuracySchema)
	}
	return &a, nil
}

// accuracy asks a column the questions, or takes what was answered before.
func (r *SuiteRun) accuracy(ctx context.Context, c *Column) (*Accuracy, error) {
	if r.Questions == nil {
		return nil, nil
	}
	before, err := readAccuracy(r.Dir, c.Name)
	if err != nil {
		return nil, err
	}
	if before != nil && before.Digest == r.Questions.Digest && !r.Force {
		return before, nil
	}
	r.note("%s: %s", c.Name, page.Many(int64(len(r.Questions.all)), "question"))
	ask, closing, err := c.Target.(asker).Asker(ctx)
	if err != nil {
		return nil, err
	}
	defer closing()
	a, err := r.Questions.ask(ctx, ask)
	if err != nil {
		return nil, err
	}
	a.Model = c.Name
	if err := os.MkdirAll(objectstore.Join(r.Dir, c.Name), 0o755); err != nil {
		return nil, err
	}
	return a, writeIndented(objectstore.Join(r.Dir, c.Name, accuracyName), a)
}
