package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A page of docs/ answers one question of a user, so it is short; what proves a claim is in
// docs/evidence. Formats and the schema are long lists.
const (
	pageBytes = 15_000
	docsBytes = 350_000
)

var longPages = map[string]int{"formats.md": 40_000, "schema.md": 21_000}

func TestDocsAreShort(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 30 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	all := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		all += len(text)
		most, long := longPages[filepath.Base(page)]
		if !long {
			most = pageBytes
		}
		if len(text) > most {
			t.Errorf("%s has %d bytes, %d at most: split it, or move what it proves to docs/evidence", page, len(text), most)
		}
	}
	if all > docsBytes {
		t.Errorf("the pages of docs have %d bytes together, %d at most", all, docsBytes)
	}
}

var (
	fenced    = regexp.MustCompile("(?ms)^```.*?^```")
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchorTag = regexp.MustCompile(`<a id="([^"]+)">`)
	docLink   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	linkText  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notSlug   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Each link between documents leads to a file, and each anchor to a heading of it.
func TestDocLinks(t *testing.T) {
	texts := map[string]string{}
	eachFile(t, func(name string) bool { return strings.HasSuffix(name, ".md") }, func(path string, text []byte) {
		texts[path] = fenced.ReplaceAllString(string(text), "")
	})
	for page, text := range texts {
		for _, m := range docLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], ":") {
				continue // an address
			}
			name, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if anchor != "" && strings.HasSuffix(target, ".md") && !hasAnchor(texts[target], anchor) {
				t.Errorf("%s links to %s: there is no such heading", page, m[1])
			}
		}
	}
}

// eachFile hands over the files of the repository whose names are wanted, without test data and hidden folders.
func eachFile(t *testing.T, wanted func(name string) bool, do func(path string, text []byte)) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !wanted(d.Name()):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			do(path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func hasAnchor(text, anchor string) bool {
	for _, m := range anchorTag.FindAllStringSubmatch(text, -1) {
		if m[1] == anchor {
			return true
		}
	}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		words := strings.ToLower(strings.TrimSpace(linkText.ReplaceAllString(m[1], "$1")))
		if strings.ReplaceAll(notSlug.ReplaceAllString(words, ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}
