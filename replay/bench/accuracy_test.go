package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reprise/trace/textpage"
)

func TestRightAnswers(t *testing.T) {
	for _, c := range []struct {
		line, text string
		want       bool
	}{
		{`{"prompt":"p","answer":"Paris"}`, "\n  paris.\nand more", true},
		{`{"prompt":"p","answer":"Paris"}`, "It is Paris", false},
		{`{"prompt":"p","answers":["4","four"]}`, " Four!", true},
		{`{"prompt":"p","answer":"new  york"}`, "New York", true},
		{`{"prompt":"p","answer":"42"}`, "", false},
		{`{"prompt":"p","answer":"42"}`, "\n \n", false},
		{`{"prompt":"p","answer":"B","choices":["A","B","C"]}`, "The answer is (B), not C.", true},
		{`{"prompt":"p","answer":"B","choices":["A","B","C"]}`, "A good choice is B", false}, // A is first
		{`{"prompt":"p","answer":"B","choices":["A","B","C"]}`, "a good choice is B", true},  // a is no A
		{`{"prompt":"p","answer":"B","choices":["A","B","C"]}`, "Both", false},
		{`{"prompt":"p","answer":"b","choices":["a","b"]}`, "B", true},
		{`{"prompt":"p","answer":"yes","choices":["yes","no"]}`, "YES: no doubt", true},
		{`{"prompt":"p","answer":"yes","choices":["yes","no"]}`, "Nobody. No", false},
		{`{"prompt":"p","answer":"new york","choices":["new","new york"]}`, "New  York", true},
		{`{"prompt":"p","answer":"1","choices":["1","12"]}`, "12", false},
		{`{"prompt":"p","answer":"12","choices":["1","12"]}`, "İ 12", true},
	} {
		q, fault := parseQuestion([]byte(c.line))
		if fault != "" || q.right(c.text) != c.want {
			t.Errorf("%s: %q: %v %s", c.line, c.text, !c.want, fault)
		}
	}
}

// Faults name the line and quote nothing of it.
func TestQuestionFaults(t *testing.T) {
	const good = `{"prompt":"SECRET","answer":"SECRET"}` + "\n"
	for text, want := range map[string]string{
		"":         ": it has no questions",
		"\n \n":    ": it has no questions",
		"SECRET":   ":1: want a JSON object",
		"[1]":      ":1: want a JSON object",
		"\"\xff\"": ":1: want a JSON object",
		good + `{"prompt":"SECRET","answer":"SECRET","SECRET":1}`:               ":2: want a JSON object",
		good + `{"prompt":"SECRET","answer":7}`:                                 ":2: want a JSON object",
		good + `{"prompt":"SECRET","answer":"a"} {}`:                            ":2: want a JSON object",
		good + "\n" + `{"prompt":"SECRET"}`:                                     ":3: there is no answer",
		`{"prompt":" ","answer":"SECRET"}`:                                      ":1: the prompt is empty",
		`{"prompt":"SECRET","answer":"..."}`:                                    ":1: an answer is empty",
		`{"prompt":"SECRET","answer":"a","answers":["b"]}`:                      ":1: want answer or answers",
		`{"prompt":"SECRET","answer":"a","max_tokens":-1}`:                      ":1: max_tokens: want",
		`{"prompt":"SECRET","answer":"D","choices":["A","SECRET"]}`:             ":1: the answer is none of the choices",
		`{"prompt":"SECRET","answer":"A","choices":["A"]}`:                      ":1: want two choices",
		`{"prompt":"SECRET","answer":"A","choices":["A","a"]}`:                  ":1: a choice is empty, or there twice",
		`{"prompt":"` + strings.Repeat("SECRET", mostQuestionB/6+1) + `"}`:      ":1: a line has at most",
		good + good + `{"prompt":"` + strings.Repeat("S", mostQuestionB) + `"}`: ":3: a line has at most",
	} {
		_, err := readQuestions(strings.NewReader(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%.60q: %v; want %s", text, err, want)
		}
	}
	if _, err := ReadQuestions(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// Whatever a file holds, it has questions that can be judged, or an error with a line.
func FuzzQuestions(f *testing.F) {
	f.Add([]byte(`{"prompt":"p","answer":"B","choices":["A","B"]}`), "B")
	f.Add([]byte(`{"prompt":"p","answers":["a","b c"],"max_tokens":3}`+"\n\n{}"), "a")
	f.Fuzz(func(t *testing.T, text []byte, answer string) {
		q, err := readQuestions(bytes.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), ":") {
				t.Fatal(err)
			}
			return
		}
		for i := range q.all {
			one := &q.all[i]
			if one.right(answer); !one.right(one.Answers[0]) && len(one.Choices) == 0 && strings.TrimSpace(one.Answers[0]) == one.Answers[0] && !strings.ContainsAny(one.Answers[0], "\n\r") {
				t.Fatalf("%q is not right", one.Answers[0])
			}
		}
	})
}

// McNemar's test is that of the sum of the binomial distribution, and Wilson's interval has the
// share at its ends at 1.96 standard errors.
func TestAccuracyStatistics(t *testing.T) {
	for _, c := range [][2]int64{{0, 0}, {0, 5}, {5, 0}, {3, 12}, {8, 8}, {0, 8}, {40, 61}} {
		a := &Accuracy{Digest: "d", Each: strings.Repeat("1", int(c[0])) + strings.Repeat("0", int(c[1]))}
		b := &Accuracy{Digest: "d", Each: strings.Repeat("0", int(c[0])) + strings.Repeat("1", int(c[1]))}
		a.compare("b", b)
		want := min(1, 2*atMost(min(c[0], c[1]), c[0]+c[1], 0.5))
		if a.Against.Gained != c[0] || a.Against.Lost != c[1] || math.Abs(a.Against.P-want) > 1e-8 || a.Worse() != (c[1] > c[0] && want <= 0.01) {
			t.Errorf("%v: %+v, want p = %v", c, a.Against, want)
		}
	}
	for _, c := range [][2]int64{{0, 10}, {10, 10}, {3, 20}, {700, 1000}} {
		lo, hi := wilson(c[0], c[1])
		p := float64(c[0]) / float64(c[1])
		for _, end := range []float64{lo, hi} {
			if distance := math.Abs(p-end) - 1.959963984540054*math.Sqrt(end*(1-end)/float64(c[1])); math.Abs(distance) > 1e-6 && end > 0 && end < 1 {
				t.Errorf("%v: %v to %v", c, lo, hi)
			}
		}
		if lo > p || hi < p {
			t.Errorf("%v: %v to %v", c, lo, hi)
		}
	}
	other := &Accuracy{Digest: "x", Each: "1"}
	a := &Accuracy{Digest: "d", Each: "0"}
	if a.compare("x", other); a.Against != nil {
		t.Error("answers to other questions are compared")
	}
}

// answering is a server that answers questions, and is wrong in some.
type answering struct {
	wrong, fails float64
	asked        *int
}

func (a answering) Run(context.Context, Trial) error { return errors.New("no run") }

func (a answering) Asker(context.Context) (func(context.Context, string, int) (string, error), func(), error) {
	*a.asked++
	rng := rand.New(rand.NewPCG(1, 1))
	bad := map[string]float64{}
	for i := range 1000 {
		bad[fmt.Sprint("SECRET ", i)] = rng.Float64()
	}
	return func(_ context.Context, prompt string, most int) (string, error) {
		var i int
		fmt.Sscanf(prompt, "SECRET %d", &i)
		switch {
		case bad[prompt] < a.fails:
			return "", errors.New("HTTP 500")
		case bad[prompt] < a.wrong:
			return "SECRET", nil
		}
		return fmt.Sprint(i), nil
	}, func() {}, nil
}

// A server that answers wrongly is seen beside one that does not, and none of the text gets into
// what is written.
func TestAWrongServerIsSeen(t *testing.T) {
	var lines bytes.Buffer
	for i := range 200 {
		fmt.Fprintf(&lines, "{\"prompt\":\"SECRET %d\",\"answer\":\"%d\"}\n", i, i)
	}
	q, err := readQuestions(&lines)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var asked int
	run := func(wrong, fails float64) (SuiteResult, error) {
		r := SuiteRun{Dir: dir, Questions: q, Suite: Suite{Name: "s"}, Columns: []Column{{Name: "right", Target: answering{0.02, 0, &asked}}, {Name: fmt.Sprintf("fast-%v-%v", wrong, fails), Target: answering{wrong, fails, &asked}}}}
		return r.Run(t.Context())
	}
	for _, c := range []struct {
		wrong, fails float64
		worse        bool
	}{{0.02, 0, false}, {0.035, 0, false}, {0.2, 0, true}, {0.2, 0.2, true}} {
		out, err := run(c.wrong, c.fails)
		if err != nil {
			t.Fatal(err)
		}
		right, fast := out.Accuracy[0], out.Accuracy[1]
		if right.Questions != 200 || right.Share < 0.95 || right.Worse() || fast.Worse() != c.worse || out.LessAccurate() != c.worse || (fast.Failed > 0) != (c.fails > 0) {
			t.Errorf("%+v: %+v %+v", c, right, fast)
		}
		for _, details := range []bool{false, true} {
			var text, markdown bytes.Buffer
			if err := errors.Join(WriteSuite(&text, &out, textpage.Options{Details: details}), WriteMarkdown(&markdown, &out), out.Page(dir).Write(&markdown)); err != nil {
				t.Fatal(err)
			}
			if both := text.String() + markdown.String(); strings.Contains(both, "SECRET") || strings.Contains(text.String(), "LESS ACCURATE") != c.worse || !strings.Contains(text.String(), "of 200 questions right") {
				t.Errorf("%+v:\n%s", c, text.String())
			}
		}
	}
	if asked != 5 { // the first one once
		t.Errorf("asked %d times", asked)
	}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var text []byte
			if text, err = os.ReadFile(path); bytes.Contains(text, []byte("SECRET")) {
				t.Errorf("%s has text of the questions", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// Against an earlier run.
	before, err := ReadSuiteResult(dir)
	if err != nil {
		t.Fatal(err)
	}
	now := SuiteResult{Models: []string{"right"}, Accuracy: []*Accuracy{{Schema: accuracySchema, Model: "right", Digest: q.Digest, Questions: 200, Each: strings.Repeat("0", 200)}}}
	if now.Against(dir, before, -1); !now.LessAccurate() || now.Accuracy[0].Against.Lost < 190 {
		t.Errorf("%+v", now.Accuracy[0].Against)
	}
	// An engine in virtual time has no answers.
	r := SuiteRun{Dir: t.TempDir(), Questions: q, Columns: []Column{{Name: "a"}}}
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "answers no questions") {
		t.Error(err)
	}
}
