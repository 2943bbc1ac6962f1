package main

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// oldWords have a plain term that took their place.
var oldWords = map[string]string{
	"leave the house":              "share outside your organisation",
	"makes of a trace":             "turns a trace into",
	"what came of it":              "the result",
	"absolute due times":           "scheduled times",
	"lost to rounding":             "lost to block granularity",
	"tokens of template around":    "chat-template overhead",
	"what the verdict rests on":    "validity checks",
	"what the figures hint at":     "possible causes",
	"why the tuning stopped":       "rationale",
	"client stood still":           "the client was stalled",
	"so much in use":               "fails at or above",
	"what tells a from the others": "which differences are significant",
	"within chance":                "not statistically significant",
	"with the least to spare":      "tightest",
	"of no format that":            "unrecognised format",
	"close the loop":               "closed loop: keep N requests in flight",
	"default -1ns":                 "off",
	"went into no column":          "fields dropped",
	"how far the count is from":    "token-count error",
	"the same command goes on":     "run the same command again to continue",
	"both want stdout":             "both write to stdout",
	"empty takes":                  "by default",
	"has no meaning with":          "cannot be used with",
	"do nothing else":              "and exit",
	"stands still":                 "is stalled",
	"cannot be had":                "cannot be used",
	"lie beside":                   "beside",
}

// Words that were replaced do not come back: not in the strings of the program, which
// are its messages, help and pages, and not in its documents.
func TestOldWords(t *testing.T) {
	look := func(where, text string) {
		text = strings.ToLower(strings.Join(strings.Fields(text), " "))
		for old, better := range oldWords {
			if strings.Contains(text, old) {
				t.Errorf("%s says %q: say %q", where, old, better)
			}
		}
	}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md") && d.Name() != "CHANGELOG.md", strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || strings.HasSuffix(path, ".md") {
			look(path, string(text))
			return err
		}
		files := token.NewFileSet()
		var s scanner.Scanner
		s.Init(files.AddFile(path, -1, len(text)), text, nil, 0)
		for {
			pos, kind, literal := s.Scan()
			switch kind {
			case token.EOF:
				return nil
			case token.STRING:
				look(files.Position(pos).String(), literal)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
