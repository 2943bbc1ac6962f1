package recording

import (
	"cmp"
	"fmt"
	"strings"

	"reprise/trace"
	"reprise/trace/objectstore"
)

// chains are the requests that go on from an earlier answer. Those of a chain
// that name no session are one, by the id of the first answer.
type chains struct {
	previous map[string]string // the answer before, by the one that goes on from it
	followed map[string]bool   // answers that a request goes on from
}

// A linkRow has the columns of a [Row] that chains need.
type linkRow struct {
	trace.Row `parquet:"-"`
	Links
}

// readChains reads the links of all files.
func readChains(files []string) (*chains, error) {
	c := &chains{previous: map[string]string{}, followed: map[string]bool{}}
	for _, name := range files {
		if err := c.readFile(name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return c, nil
}

func (c *chains) readFile(name string) error {
	f, err := objectstore.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if strings.HasSuffix(name, journalExt) {
		_, rows, err := readJournal(f)
		for i := range rows {
			c.note(&rows[i].Links)
		}
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	rows, err := trace.NewRowsReader[linkRow](f, info.Size())
	if err != nil {
		return err
	}
	return trace.Each(rows, func(_ int64, r *linkRow) error {
		c.note(&r.Links)
		return nil
	})
}

func (c *chains) note(l *Links) {
	if l.PreviousID == "" {
		return
	}
	c.followed[l.PreviousID] = true
	if l.ResponseID != "" {
		c.previous[l.ResponseID] = l.PreviousID
	}
}

// session is that of a request. An answer that was not recorded begins a chain all the
// same.
func (c *chains) session(l *Links) string {
	if l.SessionID != "" || l.PreviousID == "" && !c.followed[l.ResponseID] {
		return l.SessionID
	}
	first := l.PreviousID
	first = cmp.Or(first, l.ResponseID)
	for range len(c.previous) { // a file that was made by hand may go in circles
		before, ok := c.previous[first]
		if !ok {
			break
		}
		first = before
	}
	return first
}
