package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// budgets are the lines of Go that each top-level folder may have, without tests and the
// packages that only tests import, whose names end in test. They only sink: a commit that raises
// one says why the code is worth more than what it adds to.
var budgets = map[string]int{
	"anonymize": 12_850,
	"cmd":       28_378,
	"datasets":  28_418,
	"examples":  1_000,
	"replay":    64_238,
	"synth":     16_402,
	"trace":     35_045,
}

// slack is how far below its budget a folder may be before the budget has to sink.
const slack = 2_000

// rootNames are the files and folders that stand in the root. What is not named here stands
// there by mistake, such as a download.
var rootNames = []string{".ci", ".github", ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
	"Makefile", "README.md",
	"SECURITY.md", "action.yml", "anonymize", "cmd", "datasets", "docs", "examples", "go.mod", "go.sum",
	"replay", "synth", "trace"}

// Lines beyond so many columns, a tab counting as four, are at most one in so many of a folder.
const (
	columns   = 120
	oneWideIn = 200
)

// A size is how many lines of Go a folder has, and how many of them are beyond [columns].
type size struct{ lines, wide int }

// lineBudgets finds folders that are larger than their budget, or so much smaller that it has
// to sink, and names that do not belong into the root.
func (m *module) lineBudgets() ([]fault, error) {
	names, err := m.tracked()
	if err != nil {
		return nil, err
	}
	sizes := map[string]size{}
	for _, name := range names {
		top, _, _ := strings.Cut(name, "/")
		of := sizes[top]
		if !strings.HasSuffix(name, ".go") || ofTests(name) {
			sizes[top] = of // it stands in the root all the same
			continue
		}
		data, err := os.ReadFile(filepath.Join(m.dir, name))
		if os.IsNotExist(err) {
			continue // deleted in the working tree
		}
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(data) {
			of.lines++
			if width := utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t")) - 1; width > columns {
				of.wide++
			}
		}
		sizes[top] = of
	}
	return budgetFaults(sizes), nil
}

// ofTests says whether a file belongs to tests: by its own name, or by that of its package.
func ofTests(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test")
}

// budgetFaults are the faults of the names in a root, with the lines of Go below each.
func budgetFaults(sizes map[string]size) (faults []fault) {
	say := func(name, format string, args ...any) {
		faults = append(faults, fault{name, fmt.Sprintf(format, args...)})
	}
	for name, of := range sizes {
		n := of.lines
		budget, ok := budgets[name]
		if of.wide*oneWideIn > n {
			say(name, "%d of its %d lines are beyond %d columns: break them where a thought ends", of.wide, n, columns)
		}
		switch {
		case !slices.Contains(rootNames, name):
			say(name, "it does not belong into the root: put it below a folder, or name it in rootNames")
		case !ok && n > 0:
			say(name, "it has Go files and no budget")
		case n > budget:
			say(name, "it has %d lines, and its budget is %d: take out unused code", n, budget)
		case budget-n > slack:
			say(name, "it has %d lines, and its budget is %d: lower that", n, budget)
		}
	}
	slices.SortFunc(faults, func(a, b fault) int { return strings.Compare(a.where, b.where) })
	return faults
}

// tracked lists the files that git tracks.
func (m *module) tracked() ([]string, error) {
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = m.dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files that git tracks: %w", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
}
