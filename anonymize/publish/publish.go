// Package publish makes a folder of a released trace, ready to be pushed to a hub of data
// sets.
//
// The folder has the trace as it is, and beside it what others need to find, load, trust and
// cite it:
//
//	data/requests.parquet   the rows, byte for byte
//	README.md               the dataset card, with the front matter that Hugging Face reads
//	croissant.json          Croissant 1.0 (mlcommons.org/croissant), for loaders and search engines
//	privacy.json            the privacy card of the release
//	CITATION.cff            how to cite it, Citation File Format 1.2.0
//	SHA256SUMS              checksums of all of these, for sha256sum -c
//
// [Check] refuses what may not leave. What the operator alone can know, such as the licence
// and the authors, is in a [Statement]; nothing of it is made up. [Write] writes the folder:
// it appears whole or not at all.
//
// # Files
//
//   - publish.go: what may be published, writing the folder, checksums
//   - statement.go: the statement of the operator: authors, names on the hub
//   - license.go: licences by their SPDX ids, as hubs and metadata name them
//   - columns.go: the columns of the file in words, and their types
//   - readme.go: README.md
//   - croissant.go: croissant.json
//   - citation.go: CITATION.cff
package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reprise/anonymize"
	"reprise/trace"
)

// Names of the files in the folder.
const (
	dataFile      = "data/requests.parquet"
	readmeFile    = "README.md"
	croissantFile = "croissant.json"
	cardFile      = "privacy.json"
	citationFile  = "CITATION.cff"
	sumsFile      = "SHA256SUMS"
)

// errNotReleased says that a trace is no release.
var errNotReleased = errors.New("it was not released")

// Check says why a trace may not be published, and returns its privacy card: nil of what
// was made of a description, without anybody's traffic.
func Check(m trace.Meta) (*anonymize.Card, error) {
	switch {
	case m.Tier != anonymize.Public && m.Tier != anonymize.Partner:
		tier := m.Tier
		if tier == "" {
			tier = "no tier, and so counts as " + anonymize.Internal
		}
		return nil, fmt.Errorf("%w: it is of tier %s. Make a release of it: reprise anonymize --tier public",
			errNotReleased, tier)
	case m.Raw != "":
		return nil, fmt.Errorf("%w: its text was kept", errNotReleased)
	case m.Card == "" && m.SourceFormat == "spec" && m.Tier == anonymize.Public:
		return nil, nil
	case m.Card == "":
		return nil, fmt.Errorf("%w: it has no privacy card that says how it was made", errNotReleased)
	}
	c, err := anonymize.ParseCard(m.Card, m.CardHash)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNotReleased, err)
	case c.Tier != m.Tier:
		return nil, fmt.Errorf("%w: it claims tier %s, and its privacy card is of tier %s",
			errNotReleased, m.Tier, c.Tier)
	case c.Sessions == nil:
		return nil, fmt.Errorf("%w as releases are made now: an earlier version made it. Make a new one of the source",
			errNotReleased)
	}
	if wrong := c.Sessions.Wrong(); wrong != "" {
		return nil, fmt.Errorf("%w: %s", errNotReleased, wrong)
	}
	return &c, nil
}

// A Release is a trace to publish.
type Release struct {
	Trace *trace.Trace
	Bytes io.ReaderAt // of its file
	Size  int64
	Mode  os.FileMode // of the file with the rows
	Card  *anonymize.Card
	Tool  string // that writes the folder, and its version
}

// A Written is a file of the folder.
type Written struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Write makes the folder dir, which may not exist, or be empty.
func Write(dir string, r Release, s Statement) (files []Written, err error) {
	if before, err := os.ReadDir(dir); err == nil && len(before) > 0 {
		return nil, fmt.Errorf("%s is not empty: name a new folder", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	beside, err := os.MkdirTemp(parent, "."+filepath.Base(filepath.Clean(dir))+".part-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(beside))
		}
	}()
	if files, err = r.fill(beside, s); err != nil {
		return nil, err
	}
	if err := os.Chmod(beside, 0o755); err != nil {
		return nil, err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty one
		return nil, err
	}
	return files, os.Rename(beside, dir)
}

// fill writes all files below dir.
func (r *Release) fill(dir string, s Statement) (files []Written, err error) {
	write := func(name string, mode os.FileMode, f func(io.Writer) error) error {
		sum := tally{Hash: sha256.New()}
		err := trace.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), mode, func(w io.Writer) error {
			return f(io.MultiWriter(w, &sum))
		})
		files = append(files, Written{name, sum.bytes, hex.EncodeToString(sum.Sum(nil))})
		return err
	}
	text := func(name, content string) error {
		return write(name, 0o644, func(w io.Writer) error {
			_, err := io.WriteString(w, content)
			return err
		})
	}
	about, err := r.facts()
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		return nil, err
	}
	if err := write(dataFile, r.Mode, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(r.Bytes, 0, r.Size))
		return err
	}); err != nil {
		return nil, err
	}
	croissant, err := about.croissant(s, files[0])
	if err != nil {
		return nil, err
	}
	readme, err := about.readme(s)
	if err != nil {
		return nil, err
	}
	citation, err := about.citation(s)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, content string }{{readmeFile, readme}, {croissantFile, croissant},
		{citationFile, citation}, {cardFile, r.Trace.Meta.Card}} {
		if f.content == "" {
			continue // what nobody's traffic is in has no privacy card
		}
		if err := text(f.name, f.content); err != nil {
			return nil, err
		}
	}
	var sums strings.Builder
	listed := slices.Clone(files)
	slices.SortFunc(listed, func(a, b Written) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range listed {
		fmt.Fprintf(&sums, "%s  %s\n", f.SHA256, f.Name)
	}
	return files, text(sumsFile, sums.String())
}

// A tally hashes and counts what is written.
type tally struct {
	hash.Hash
	bytes int64
}

// Write implements io.Writer.
func (t *tally) Write(p []byte) (int, error) {
	t.bytes += int64(len(p))
	return t.Hash.Write(p)
}

// facts are what the files say of the rows.
type facts struct {
	*Release
	rows          int64
	spanNS        int64 // from the first arrival to the last
	input, output int64 // tokens
	columns       []column
}

// facts reads the rows once.
func (r *Release) facts() (*facts, error) {
	f := &facts{Release: r}
	rows, err := r.Trace.Reader()
	if err != nil {
		return nil, err
	}
	var first int64
	err = trace.Each(rows, func(n int64, row *trace.Request) error {
		if n == 0 {
			first = row.ArrivalNS
		}
		f.rows = n + 1
		f.spanNS = row.ArrivalNS - first
		f.input += int64(row.InputTokens)
		f.output += int64(row.OutputOr(0))
		return nil
	})
	if err == nil && f.rows == 0 {
		err = errors.New("the trace has no rows to publish")
	}
	if err != nil {
		return nil, err
	}
	f.columns, err = columnsOf(r.Bytes, r.Size, r.Card)
	return f, err
}
