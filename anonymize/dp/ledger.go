package dp

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A Source is what a release is made of, by all that it can be known by.
type Source struct {
	Digest   string   `json:"source"`             // of the rows that were measured
	Captures []string `json:"captures,omitempty"` // ids of the captures that they are from, and of the keys that several captures share
	Arrivals string   `json:"arrivals,omitempty"` // digest of the times between them

	// The format of the log and the declared capture window. Relative says that this is
	// on a clock without dates, so that it tells nothing of another capture.
	Format   string    `json:"format,omitempty"`
	Begin    time.Time `json:"capture_begin,omitzero"`
	End      time.Time `json:"capture_end,omitzero"`
	Relative bool      `json:"capture_relative,omitempty"`
}

// Apart reports whether the declared windows of two sources of one capture have no
// instant in common, so that they have no row in common either.
func (s *Source) Apart(o *Source) bool {
	return !s.End.IsZero() && !o.End.IsZero() && s.Relative == o.Relative && !(s.Begin.Before(o.End) && o.Begin.Before(s.End))
}

// Meets says by what two sources are known to have people in common, or "" where
// nothing tells. What is left out of Source is not noticed: two imports of one log
// with other rows left out, and without a declared window of dates.
func (s *Source) Meets(o *Source) string {
	common := func(id string) bool { return slices.Contains(s.Captures, id) }
	switch {
	case s.Digest != "" && s.Digest == o.Digest:
		return "the same rows"
	case slices.ContainsFunc(o.Captures, common) || common(o.Digest): // earlier versions had a key for the digest
		return "the same capture"
	case s.Arrivals != "" && s.Arrivals == o.Arrivals:
		return "another import with the same arrivals"
	case s.Format != "" && s.Format == o.Format && !s.Relative && !o.Relative && s.Begin.Before(o.End) && o.Begin.Before(s.End):
		return "another import of the same format, whose capture window overlaps"
	}
	return ""
}

// A Release is one entry of a ledger: a release, or an attempt at one.
type Release struct {
	ID string `json:"id,omitempty"` // of the entry, which a later line with it replaces; earlier versions gave none
	Source
	Tier      string    `json:"tier,omitempty"`
	Release   string    `json:"release"` // digest of what was written, or a word that says why nothing was
	Time      time.Time `json:"time"`
	Budget              // as spent; 0 for a release without noise, of an earlier version
	Mechanism string    `json:"mechanism,omitempty"`
	// Rho is what it cost in all, but for a probability of Selection, the part of δ with
	// which prefixes are selected that one unit alone has; 0 where it is not known.
	Rho       float64 `json:"rho_zcdp,omitempty"`
	Selection float64 `json:"selection_delta,omitempty"`
	// Grid is of a release of rows without noise, as earlier versions made them: by which
	// cells their values were coarsened, in words.
	Grid string `json:"grid,omitempty"`
}

// Cancelled is the word for an entry that cost nothing after all.
const Cancelled = "cancelled"

// A Ledger is a list of files of releases, one JSON object a line, that are only
// ever appended to. All are read, and what is entered goes into each: an entry that
// several have counts once. The first must be writable, the others need not.
//
// Releases of one source add up, whoever has them: what each would have hidden, all
// of them together may show.
type Ledger struct{ Files []string }

// Enter adds r while no other process can, and waits until it is on disk. decide
// sees what was entered before of the same source, may complete r, and refuses the
// entry by an error. unwritten are the files that could not be written.
func (l Ledger) Enter(r *Release, decide func(before []Release) error) (unwritten []string, err error) {
	files, unwritten, err := l.open()
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close()) // and the lock with it
		}
	}()
	if err != nil {
		return unwritten, err
	}
	before, err := l.Before(&r.Source)
	if err != nil {
		return unwritten, err
	}
	before = slices.DeleteFunc(before, func(b Release) bool { return r.ID != "" && b.ID == r.ID })
	if err := decide(before); err != nil {
		return unwritten, err
	}
	line, err := json.Marshal(r)
	if err != nil {
		return unwritten, err
	}
	for _, f := range files {
		if _, err := f.Write(append(line, '\n')); err != nil {
			return unwritten, err
		}
		if err := f.Sync(); err != nil {
			return unwritten, fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return unwritten, nil
}

// open opens the files for appending, and locks them in the order of their names, so
// that no two processes wait for each other.
func (l Ledger) open() (files []*os.File, unwritten []string, err error) {
	seen := map[string]bool{}
	for _, path := range slices.SortedStableFunc(slices.Values(l.Files), func(a, b string) int { return cmp.Compare(absolute(a), absolute(b)) }) {
		if seen[absolute(path)] {
			continue
		}
		seen[absolute(path)] = true
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		switch {
		case err != nil && path == l.Files[0]:
			return files, unwritten, err
		case err != nil:
			unwritten = append(unwritten, path)
			continue
		}
		files = append(files, f)
		if err := lock(f); err != nil {
			return files, unwritten, fmt.Errorf("%s: it cannot be locked: %w", path, err)
		}
	}
	return files, unwritten, nil
}

func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}

// Before lists the releases of a source that were not cancelled. A file that does not
// exist is empty.
func (l Ledger) Before(s *Source) (list []Release, err error) {
	place := map[string]int{} // in list, by id
	most := map[string]int{}  // of each line without an id, in the files so far
	for i, path := range l.Files {
		if slices.ContainsFunc(l.Files[:i], func(p string) bool { return absolute(p) == absolute(path) }) {
			continue
		}
		here := map[string]int{}
		err := eachEntry(path, func(line []byte, r Release) {
			at, known := place[r.ID]
			switch {
			case r.ID == "": // a copied file is no second release, and two equal lines of one file are
				if here[string(line)]++; here[string(line)] > most[string(line)] {
					most[string(line)] = here[string(line)]
					list = append(list, r)
				}
			case known:
				list[at] = r
			default:
				place[r.ID] = len(list)
				list = append(list, r)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(list, func(r Release) bool { return r.Release == Cancelled || s.Meets(&r.Source) == "" }), nil
}

// maxEntry bounds a line: 30,000 captures have place in it.
const maxEntry = 1 << 20

// eachEntry reads a file of a ledger.
func eachEntry(path string, f func(line []byte, r Release)) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxEntry)
	for n := 1; lines.Scan(); n++ {
		var r Release
		if json.Unmarshal(lines.Bytes(), &r) != nil || !r.valid() {
			return fmt.Errorf("%s:%d: not a ledger entry", path, n)
		}
		f(bytes.Clone(lines.Bytes()), r)
	}
	if lines.Err() != nil {
		return fmt.Errorf("%s: not a ledger file", path)
	}
	return nil
}

// valid reports whether an entry can be counted.
func (r *Release) valid() bool {
	return (r.Epsilon > 0 || r.Epsilon == 0 && (r.Grid != "" || r.Release == Cancelled)) && r.Epsilon <= math.MaxFloat64 && r.Delta >= 0 && r.Rho >= 0 && r.Selection >= 0
}

// Spent adds up what releases of one source cost together: their ε and δ or, for
// those that state it, their ρ, converted at the largest δ among these, where that is
// less. Selections of prefixes add up as δ (Bun and Steinke 2016, section 8: approximate
// zCDP). A release without noise has no ε, and is not among the releases of the total.
func Spent(list []Release) Total {
	var sum, others Budget
	var rho, delta, selections float64
	n := 0
	for _, r := range list {
		if r.Epsilon == 0 {
			continue
		}
		n++
		sum.Epsilon, sum.Delta = sum.Epsilon+r.Epsilon, sum.Delta+r.Delta
		if r.Rho > 0 && r.Delta > r.Selection {
			rho, delta, selections = rho+r.Rho, max(delta, r.Delta-r.Selection), selections+r.Selection
		} else {
			others.Epsilon, others.Delta = others.Epsilon+r.Epsilon, others.Delta+r.Delta
		}
	}
	if rho > 0 {
		if eps := others.Epsilon + epsilon(rho, delta); eps < sum.Epsilon {
			sum = Budget{eps, others.Delta + delta + selections}
		}
	}
	return Total{sum, n}
}
