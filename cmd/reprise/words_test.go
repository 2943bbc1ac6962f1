package main

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
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

// No text tells to type as a flag what is a setting: not a message, a page or an example.
func TestSettingsAreNoFlags(t *testing.T) {
	is := map[string]int{}
	for _, cmd := range allCommands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if cli.IsSetting(f) {
				is[f.Name] |= 1
			} else {
				is[f.Name] |= 2 // also a flag, of another command
			}
		})
	}
	typed := regexp.MustCompile(`--([a-z][a-z0-9-]*)`)
	eachFile(t, func(name string) bool {
		ext := filepath.Ext(name)
		return slices.Contains([]string{".md", ".go", ".sh", ".py", ".yaml", ".yml"}, ext) && name != "CHANGELOG.md" &&
			name != "migration.md" && !strings.HasSuffix(name, "_test.go")
	}, func(path string, text []byte) {
		for i, line := range strings.Split(string(text), "\n") {
			for _, m := range typed.FindAllStringSubmatch(line, -1) {
				if is[m[1]] == 1 {
					t.Errorf("%s:%d has --%s: it is a setting, %s", path, i+1, m[1], strings.TrimSpace(line))
				}
			}
		}
	})
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
	eachFile(t, func(name string) bool {
		return strings.HasSuffix(name, ".md") && name != "CHANGELOG.md" || strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
	}, func(path string, text []byte) {
		if strings.HasSuffix(path, ".md") {
			look(path, string(text))
			return
		}
		files := token.NewFileSet()
		var s scanner.Scanner
		s.Init(files.AddFile(path, -1, len(text)), text, nil, 0)
		for {
			pos, kind, literal := s.Scan()
			switch kind {
			case token.EOF:
				return
			case token.STRING:
				look(files.Position(pos).String(), literal)
			}
		}
	})
}
