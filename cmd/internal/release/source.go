package main

import (
	"bytes"
	"errors"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// rewritten is the source as a module of the path that it is published at, as a tar.gz: what git
// tracks, with today's path replaced wherever a file names a package. Pushed there and tagged, it is
// what go install finds.
func (r *release) rewritten() ([]byte, error) {
	list := exec.Command("git", "ls-files", "--stage", "-z")
	list.Dir = r.source
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	var entries []entry
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		about, name, _ := strings.Cut(line, "\t") // mode, digest and stage; name
		data, err := os.ReadFile(filepath.Join(r.source, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted in the working tree
		}
		if err != nil {
			return nil, err
		}
		if data, err = r.atHome(name, data); err != nil {
			return nil, err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(about, "100755") {
			mode = 0o755
		}
		entries = append(entries, entry{"reprise-" + r.version + "/" + name, mode, data})
	}
	data, err := tarball(entries, 0, r.when)
	if err != nil {
		return nil, err
	}
	return gzipped(data)
}

// atHome is a file in which packages of this module have the path that they are published at. A
// path of files, such as cmd/reprise/main.go, is none of a package. Imports are sorted by the new path.
func (r *release) atHome(name string, data []byte) ([]byte, error) {
	module := regexp.QuoteMeta(r.module)
	moved := regexp.MustCompile(`(?m)(^|[^\w/.-])`+module+`/([a-z."])`).
		ReplaceAll(data, []byte("${1}"+r.home+"/${2}"))
	if path.Base(name) == "go.mod" {
		return regexp.MustCompile(`(?m)^((?:module|require|replace)?\s+)`+module+`( |$)`).
			ReplaceAll(moved, []byte("${1}"+r.home+"${2}")), nil
	}
	if path.Ext(name) == ".go" && !bytes.Equal(moved, data) {
		return format.Source(moved)
	}
	return moved, nil
}
