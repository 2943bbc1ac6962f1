package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"reprise/trace"
	"reprise/trace/page"
)

// writePlots writes each plot of a page as an image and as its points, under a
// name made of its title, and says how many there were.
func writePlots(dir string, p *page.Page) (int, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	n := 0
	seen := map[string]int{}
	for i := range p.Sections {
		for j := range p.Sections[i].Plots {
			plot := &p.Sections[i].Plots[j]
			name := slug(plot.Title)
			if seen[name]++; seen[name] > 1 {
				name = fmt.Sprintf("%s-%d", name, seen[name])
			}
			path := filepath.Join(dir, name)
			if err := trace.WriteFile(path+".svg", 0o644, plot.WriteSVG); err != nil {
				return n, err
			}
			if err := trace.WriteFile(path+".csv", 0o644, plot.WriteCSV); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

// slug makes a file name of a title: letters and digits, the rest as hyphens.
func slug(title string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), "-")
}
