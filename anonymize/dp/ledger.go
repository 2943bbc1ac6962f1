package dp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Source is what a release is made of, by all that it can be known by.
type Source struct {
	Digest string `json:"source"` // of the rows that were measured
	// ids of the captures that they are from, and of the keys that several captures share
	Captures []string `json:"captures,omitempty"`
	Arrivals string   `json:"arrivals,omitempty"` // digest of the times between them

	// The format of the log and the declared capture window. Relative says that this is
	// on a clock without dates, so that it tells nothing of another capture.
	Format   string    `json:"format,omitempty"`
	Begin    time.Time `json:"capture_begin,omitzero"`
	End      time.Time `json:"capture_end,omitzero"`
	Relative bool      `json:"capture_relative,omitempty"`

	People
}

// People are whose requests a source has.
type People struct {
	Unit string `json:"unit,omitempty"` // of privacy; earlier versions did not say, and it may have been a user
	// Population is a digest of the name that was given to all the users that there are,
	// with a salt of its own, so that a ledger does not tell the name; empty without one.
	Population string `json:"population,omitempty"`

	name string // itself, of the release at hand
	// elsewhere says that an entry is known from the ledger of the user alone, which has
	// the releases of every population.
	elsewhere bool
}

// users is the unit of privacy whose releases add up over captures. A session or a request
// is in one capture alone.
const users = "user"

// NewPeople are the units of the population with a name. White space and capitals do not
// tell names apart. An empty name is that of no population.
func NewPeople(unit, population string) People {
	p := People{Unit: unit, name: strings.ToLower(strings.Join(strings.Fields(population), " "))}
	if p.name != "" {
		salt := make([]byte, 16)
		rand.Read(salt)
		p.Population = populationDigest(salt, p.name)
	}
	return p
}

func populationDigest(salt []byte, name string) string {
	sum := hmac.New(sha256.New, salt)
	io.WriteString(sum, "reprise: population of a ledger\x00"+name)
	return hex.EncodeToString(salt) + ":" + hex.EncodeToString(sum.Sum(nil))
}

// of reports whether an entry names this population.
func (p *People) of(o *People) bool {
	salt, _, _ := strings.Cut(o.Population, ":")
	b, err := hex.DecodeString(salt)
	return err == nil && p.name != "" && o.Population == populationDigest(b, p.name)
}

// strangers reports whether both name their population, and not the same.
func (p *People) strangers(o *People) bool {
	return p.Population != "" && o.Population != "" && !p.of(o)
}

// mayMeet says why both may have users in common, or "" where they cannot. Who names no
// population may have anybody's users; but that is held against a population with a name
// only in a ledger that was chosen for it.
func (p *People) mayMeet(o *People) string {
	switch {
	case p.Unit != users || o.Unit != users && o.Unit != "":
		return ""
	case p.of(o):
		return "the same population"
	case p.strangers(o), o.elsewhere && (p.Population == "") != (o.Population == ""):
		return ""
	}
	return "other captures that may have the same users"
}

// Apart reports whether the declared windows of two sources of one capture have no
// instant in common, so that they have no row in common either.
func (s *Source) Apart(o *Source) bool {
	return !s.End.IsZero() && !o.End.IsZero() && s.Relative == o.Relative &&
		!(s.Begin.Before(o.End) && o.Begin.Before(s.End))
}

// Meets says by what two sources are known to have people in common, or may have them, and
// is "" where nothing tells. Releases by user add up over all captures of a population:
// any user may be in each. What is left out of Source is not noticed: two imports of one
// log with other rows left out, by session or request and without a declared window of
// dates.
func (s *Source) Meets(o *Source) string {
	common := func(id string) bool { return slices.Contains(s.Captures, id) }
	switch {
	case s.Digest != "" && s.Digest == o.Digest:
		return "the same rows"
	case slices.ContainsFunc(o.Captures, common) || common(o.Digest): // earlier versions had a key for the digest
		return "the same capture"
	case s.Arrivals != "" && s.Arrivals == o.Arrivals:
		return "another import with the same arrivals"
	case s.Format != "" && s.Format == o.Format && !s.Relative && !o.Relative && s.Begin.Before(o.End) &&
		o.Begin.Before(s.End) && !s.strangers(&o.People):
		return "another import of the same format, whose capture window overlaps"
	}
	return s.mayMeet(&o.People)
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

// cancelled is the word for an entry that cost nothing after all.
const cancelled = "cancelled"

// A Ledger is a list of files of releases, one JSON object a line, that are only
// ever appended to. All are read, and what is entered goes into each: an entry that
// several have counts once. The first must be writable, the others need not.
//
// Releases of one source add up, whoever has them: what each would have hidden, all
// of them together may show.
type Ledger struct {
	Files []string
	// User is the file that has all releases of whoever runs the program, whatever they
	// were of; empty where there is none. It comes behind the others.
	User string
	// Waits, when not nil, is called once for each file that another process has.
	Waits func(file string)
}

// All are the files, each once.
func (l Ledger) All() (files []string) {
	seen := map[string]bool{}
	for _, path := range append(slices.Clone(l.Files), l.User) {
		if path != "" && !seen[absolute(path)] {
			seen[absolute(path)] = true
			files = append(files, path)
		}
	}
	return files
}

// String names the files.
func (l Ledger) String() string { return strings.Join(l.All(), " and ") }

// Enter adds r while no other process can, and waits until it is on disk. decide
// sees what was entered before of the same source, may complete r, and refuses the
// entry by an error. unwritten are the files that could not be written. After an error
// nothing is entered: a part of a line, which a full disk or a kill leaves, is no entry.
func (l Ledger) Enter(ctx context.Context, r *Release,
	decide func(before []Release) error) (unwritten []string, err error) {
	files, unwritten, err := l.open(ctx)
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
	var undo []func()
	for _, f := range files {
		back, err := appendLine(f, line)
		undo = append(undo, back)
		if err != nil {
			for _, back := range undo {
				back()
			}
			return unwritten, fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return unwritten, nil
}

// appendLine adds a line to a file, and waits until it is on disk. back takes it off again,
// if it can.
func appendLine(f *os.File, line []byte) (back func(), err error) {
	info, err := f.Stat()
	if err != nil {
		return func() {}, err
	}
	size := info.Size()
	last, err := unended(f, size)
	switch {
	case err != nil:
		return func() {}, err
	case torn(last):
		size -= int64(len(last))
		if err := f.Truncate(size); err != nil {
			return func() {}, err
		}
	case len(last) > 0: // somebody wrote it by hand
		line = slices.Concat([]byte("\n"), line)
	}
	back = func() { f.Truncate(size) }
	if _, err := f.Write(append(line, '\n')); err != nil {
		return back, err
	}
	return back, f.Sync()
}

// unended is what is behind the last end of a line. It is no entry unless it is a whole one:
// noise is drawn only when a line and its end are on disk.
func unended(f *os.File, size int64) ([]byte, error) {
	n := min(size, 2*maxEntry)
	tail := make([]byte, n)
	if _, err := f.ReadAt(tail, size-n); err != nil && err != io.EOF {
		return nil, err
	}
	return tail[bytes.LastIndexByte(tail, '\n')+1:], nil
}

// open opens the files for appending, and locks them in the order of their names, so
// that no two processes wait for each other. A lock ends with the process that has it.
func (l Ledger) open(ctx context.Context) (files []*os.File, unwritten []string, err error) {
	all := l.All()
	for _, path := range slices.SortedStableFunc(slices.Values(all),
		func(a, b string) int { return cmp.Compare(absolute(a), absolute(b)) }) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		switch {
		case err != nil && path == all[0]:
			return files, unwritten, err
		case err != nil:
			unwritten = append(unwritten, path)
			continue
		}
		files = append(files, f)
		if err := l.wait(ctx, f); err != nil {
			return files, unwritten, fmt.Errorf("%s: it cannot be locked: %w", path, err)
		}
	}
	return files, unwritten, nil
}

// wait waits until no other process has the file, and takes it until it is closed.
func (l Ledger) wait(ctx context.Context, f *os.File) error {
	for said := false; ; said = true {
		if taken, err := lock(f); taken || err != nil {
			return err
		}
		if !said && l.Waits != nil {
			l.Waits(f.Name())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(betweenTries):
		}
	}
}

// betweenTries is the time until a file is tried again that another process has.
const betweenTries = 20 * time.Millisecond

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
	for _, path := range l.All() {
		here := map[string]int{}
		elsewhere := l.User != "" && absolute(path) == absolute(l.User)
		err := eachEntry(path, func(line []byte, r Release) {
			at, known := place[r.ID]
			r.elsewhere = elsewhere && (r.ID == "" || !known || list[at].elsewhere)
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
	return slices.DeleteFunc(list, func(r Release) bool { return r.Release == cancelled || s.Meets(&r.Source) == "" }),
		nil
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
			info, err := file.Stat()
			if err != nil {
				return err
			}
			if last, err := unended(file, info.Size()); err == nil && bytes.Equal(last, lines.Bytes()) && torn(last) {
				return nil
			}
			return fmt.Errorf("%s:%d: not a ledger entry", path, n)
		}
		f(bytes.Clone(lines.Bytes()), r)
	}
	if lines.Err() != nil {
		return fmt.Errorf("%s: not a ledger file", path)
	}
	return nil
}

// torn reports whether the end of a file, behind the last end of a line, is what a full disk
// or a kill left of an entry.
func torn(last []byte) bool {
	const begin = `{"id":"`
	ours := bytes.HasPrefix(last, []byte(begin)) || bytes.HasPrefix([]byte(begin), last)
	return len(last) > 0 && ours && !json.Valid(last)
}

// valid reports whether an entry can be counted.
func (r *Release) valid() bool {
	return (r.Epsilon > 0 || r.Epsilon == 0 && (r.Grid != "" || r.Release == cancelled)) &&
		r.Epsilon <= math.MaxFloat64 && r.Delta >= 0 && r.Rho >= 0 && r.Selection >= 0
}

// Sum is the sum of what releases state as their ε, which a limit holds for. [Spent] is what
// all of them show together, which is less.
func Sum(list []Release) (epsilon float64) {
	for _, r := range list {
		epsilon += r.Epsilon
	}
	return epsilon
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
