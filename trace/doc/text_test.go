package doc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"reprise/trace/textpage"
)

// parts is a page that has other words in each place, and these words.
func parts() (*Document, []string) {
	var all []string
	word := func(place string) string {
		all = append(all, place+"Words")
		return place + "Words"
	}
	p := &Document{Title: "Title", Headline: word("headline"), Lead: word("lead"), Tag: word("tag"),
		Verdict: []Note{{Level: Bad, Text: word("verdict"), Items: []string{word("reason")}}},
		Notes:   []Note{{Level: Warn, Text: word("warning")}},
		Facts:   []Fact{{Label: word("label"), Value: word("value"), Note: word("note")}},
		Table: &Table{Head: []string{word("column"), "n"}, Rows: [][]string{{word("row"), "1"}},
			Align: []Align{Left, Right}},
		About: []Group{{Title: word("provenance"), Facts: []Fact{{Label: word("made"), Value: word("by")}}}},
		Sections: []Section{{Title: word("section"), Text: []string{word("text")},
			Notes: []Note{{Level: Info, Text: word("remark")}},
			Tables: []Table{{Caption: word("caption"), Head: []string{word("head"), "n"},
				Rows: [][]string{{word("cell"), "2"}}, Align: []Align{Left, Right}, Folded: true}}}}}
	return p, all
}

func TestEveryRendererWritesEveryPart(t *testing.T) {
	p, words := parts()
	var html, text, markdown bytes.Buffer
	for renderer, err := range map[string]error{
		"HTML":     p.Write(&html),
		"text":     p.WriteText(&text, textpage.Options{Details: true}),
		"Markdown": p.WriteMarkdown(&markdown),
	} {
		if err != nil {
			t.Fatalf("%s: %v", renderer, err)
		}
	}
	for _, word := range words {
		for renderer, out := range map[string]string{"HTML": html.String(), "text": text.String(),
			"Markdown": markdown.String()} {
			if !strings.Contains(strings.ToLower(out), strings.ToLower(word)) {
				t.Errorf("%s has no %s", renderer, word)
			}
		}
	}
}

func TestAnswersAreShortAndSayWhatIsLeftOut(t *testing.T) {
	p, _ := parts()
	for i := range 100 {
		p.Table.Rows = append(p.Table.Rows, []string{fmt.Sprint("row", i), "1"})
	}
	var text bytes.Buffer
	if err := p.WriteText(&text, textpage.Options{Rest: "restWords"}); err != nil {
		t.Fatal(err)
	}
	got := text.String()
	if n := strings.Count(got, "\n"); n > textpage.AnswerLines+1 {
		t.Errorf("an answer has %d lines, and may have %d:\n%s", n, textpage.AnswerLines, got)
	}
	for _, want := range []string{"headlineWords", "reasonWords", "warningWords", "more rows", "restWords"} {
		if !strings.Contains(got, want) {
			t.Errorf("an answer has no %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "captionWords") {
		t.Error("an answer has details")
	}
}

func TestTextAndMarkdownHoldNoMarkupOfAFile(t *testing.T) {
	p := everywhere("a\x1b[31m|<script>\nb")
	p.Table = &Table{Head: []string{"a|b", "n"}, Rows: [][]string{{"a|b\x1b", "1"}}, Align: []Align{Left, Right}}
	var text, markdown bytes.Buffer
	if err := p.WriteText(&text, textpage.Options{Details: true}); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteMarkdown(&markdown); err != nil {
		t.Fatal(err)
	}
	for renderer, out := range map[string]string{"text": text.String(), "Markdown": markdown.String()} {
		if strings.ContainsAny(out, "\x1b") {
			t.Errorf("%s has an escape sequence", renderer)
		}
	}
	for _, line := range strings.Split(markdown.String(), "\n") {
		if strings.HasPrefix(line, "| a") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 3 {
			t.Errorf("a bar in a cell is a column of its own: %s", line)
		}
	}
}
