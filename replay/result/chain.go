package result

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"reprise/trace"
	"reprise/trace/objectstore"
)

// JournalName is the name of the journal of the results at path.
func JournalName(path string) string { return path + ".journal" }

// PartName is the name of the n-th journal of a run, n from 0. A run that was killed and
// resumed has a journal for each of its parts: the first, and after it .2, .3 and so on.
// Read by the name of the first, they are one.
func PartName(first string, n int) string {
	if n == 0 {
		return first
	}
	return first + "." + strconv.Itoa(n+1)
}

// parts lists the further journals after the first. One that is empty belongs to a run
// that was killed before it began.
func parts(first string) (names []string) {
	for n := 1; ; n++ {
		name := PartName(first, n)
		if fi, err := objectstore.Stat(name); err != nil || fi.Size() == 0 {
			return names
		}
		names = append(names, name)
	}
}

// A merged reader reads what several have, each in row order, in row order. A row
// that more than one has is read once, from the first of them.
type merged struct {
	side *trace.SideBySide[Result]
	last RequestKey // of the row that was read last
	any  bool
}

func mergeRows(readers []trace.Reader[Result]) *merged {
	return &merged{side: trace.NewSideBySide(readers, 64, func(_ int, a *Result, _ int, b *Result) int { return a.Key().Compare(b.Key()) })}
}

// Read implements trace.Reader.
func (m *merged) Read(rows []Result) (n int, err error) {
	for n < len(rows) {
		_, r, err := m.side.Next()
		if err != nil {
			return n, err
		}
		if m.any && r.Key() == m.last {
			continue
		}
		rows[n], m.last, m.any = *r, r.Key(), true
		n++
	}
	return n, nil
}

// LastWritten says when the journal first, or the last one of the run after it was
// resumed, was written to. It fails when a process still writes it.
func LastWritten(first string) (time.Time, error) {
	name := PartName(first, len(parts(first)))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	if !lock(f) {
		return time.Time{}, fmt.Errorf("%s: %w", name, ErrRunning)
	}
	fi, err := f.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return fi.ModTime(), nil
}
