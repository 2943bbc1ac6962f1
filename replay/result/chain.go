package result

import (
	"fmt"
	"io"
	"os"
	"slices"
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
	heads []*head
	last  RequestKey // of the row that was read last
	any   bool
}

// A head is a reader with the next row that it has.
type head struct {
	r    trace.Reader[Result]
	rows []Result
	left []Result
	over bool
}

func mergeRows(readers []trace.Reader[Result]) *merged {
	m := new(merged)
	for _, r := range readers {
		m.heads = append(m.heads, &head{r: r, rows: make([]Result, 64)})
	}
	return m
}

// Read implements trace.Reader.
func (m *merged) Read(rows []Result) (n int, err error) {
	for n < len(rows) {
		if err := m.fill(); err != nil {
			return n, err
		}
		if len(m.heads) == 0 {
			return n, io.EOF
		}
		h := slices.MinFunc(m.heads, func(a, b *head) int { return a.left[0].Key().Compare(b.left[0].Key()) })
		r := h.left[0]
		h.left = h.left[1:]
		if m.any && r.Key() == m.last {
			continue
		}
		rows[n], m.last, m.any = r, r.Key(), true
		n++
	}
	return n, nil
}

// fill sees that every head has a row, and drops those that are over.
func (m *merged) fill() error {
	for _, h := range m.heads {
		for len(h.left) == 0 && !h.over {
			clear(h.rows)
			n, err := h.r.Read(h.rows)
			if err != nil && err != io.EOF {
				return err
			}
			h.left, h.over = h.rows[:n], err == io.EOF
		}
	}
	m.heads = slices.DeleteFunc(m.heads, func(h *head) bool { return len(h.left) == 0 })
	return nil
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
