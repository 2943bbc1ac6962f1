package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode"
	"unicode/utf8"

	"reprise/replay/compare"
)

// maxSideName is how long the name of a side may be: it is the head of a column.
const maxSideName = 32

// checkNames refuses names that would not be seen, or that nothing has.
func (f *compareFlags) checkNames() error {
	for i, name := range f.names {
		flag := "--name-" + [2]string{"a", "b"}[i]
		switch {
		case name == "":
		case len(f.arms) > 0 || f.production != "":
			return usagef("%s is of the sides A and B: --arm NAME=FILE names its servers itself, and --production has a trace and its replay", flag)
		case utf8.RuneCountInString(name) > maxSideName || !visible(name):
			return usagef("%s: want %d printed characters at most", flag, maxSideName)
		}
	}
	return nil
}

// visible says whether a name can be seen as it is.
func visible(s string) bool {
	seen := false
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return false
		}
		seen = seen || !unicode.IsSpace(r)
	}
	return seen
}

// call gives both sides the names that the flags give; else those that they had when
// the rounds in the directory were compared, "" being none; else A and B.
func (f *compareFlags) call(arms []recordedArm, dir string) error {
	var was [2]string
	if dir != "" {
		var err error
		if was, err = sideNames(filepath.Join(dir, "compare.json")); err != nil {
			return err
		}
	}
	for i := range arms {
		arms[i].name = cmp.Or(f.names[i], was[i], arms[i].name)
	}
	if arms[0].name == arms[1].name {
		return usagef("both sides are called %s: give them two names, by --name-a and --name-b", arms[0].name)
	}
	return nil
}

// sideNames are the names of the sides in a comparison that was kept, empty when none
// was.
func sideNames(path string) (names [2]string, err error) {
	doc, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return names, nil
	}
	if err != nil {
		return names, err
	}
	var c struct {
		Schema string `json:"schema"`
		A      string `json:"a"`
		Versus []struct {
			B string `json:"b"`
		} `json:"versus"`
	}
	if err := json.Unmarshal(doc, &c); err != nil || c.Schema != compare.Schema || len(c.Versus) != 1 {
		return names, fmt.Errorf("%s is no comparison of two sides: remove it, it is made anew of the rounds", path)
	}
	return [2]string{c.A, c.Versus[0].B}, nil
}
