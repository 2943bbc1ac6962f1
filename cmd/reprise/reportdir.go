package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reprise/replay"
)

// resultsNamed replaces a directory by the results file in it. One that has none, or
// several, is refused with what to name instead: which of them belong together the
// directory does not say.
func resultsNamed(paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, path := range paths {
		out[i] = path
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			continue // what cannot be read is said when it is opened
		}
		found, err := resultsIn(path)
		if err != nil {
			return nil, err
		}
		if len(found) != 1 {
			return nil, usagef("%s", severalResults(path, found))
		}
		out[i] = found[0]
	}
	return out, nil
}

// resultsIn finds the results files in a directory and those below it, in order.
func resultsIn(dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".parquet" {
			return err
		}
		if f, err := replay.OpenResults(path); err == nil { // other Parquet is no concern of a report
			found = append(found, path)
			return f.Close()
		}
		return nil
	})
	return found, err
}

// severalResults says what to name of a directory.
func severalResults(dir string, found []string) string {
	if len(found) == 0 {
		return dir + " is a directory without results: name the file that replay or simulate wrote with -o"
	}
	out := fmt.Sprintf("%s is a directory with %d results files: name one, or several to be set side by side, such as %s",
		dir, len(found), strings.Join(found[:2], " "))
	if _, err := os.Stat(filepath.Join(dir, roundsName)); err == nil {
		out += fmt.Sprintf(`; "reprise compare %s" says whether the two sides differ`, dir)
	}
	return out
}
