package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"reprise/trace"
	"reprise/trace/objectstore"
)

// A Set is the parts of one capture or of several.
type Set struct {
	files    []string
	captures []Meta
	journals int
}

var errNone = errors.New("it holds no parts of a recording (*.part.parquet)")

// Open finds the parts at paths: files, and folders of them. Parts of captures with
// other tokenizers, templates or block sizes do not go together. Errors name the file.
func Open(paths []string) (*Set, error) {
	s := new(Set)
	for _, path := range paths {
		files, err := filesAt(path)
		if err != nil {
			return nil, err
		}
		s.files = append(s.files, files...)
	}
	slices.Sort(s.files)
	s.files = slices.Compact(s.files)
	for _, file := range s.files {
		m, err := readMeta(file)
		if err == nil {
			err = s.join(m)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if strings.HasSuffix(file, journalExt) {
			s.journals++
		}
	}
	return s, nil
}

// filesAt lists the parts of a folder. A journal beside the part that was made of it is
// left out: the recorder was killed in between.
func filesAt(path string) ([]string, error) {
	info, err := objectstore.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	parts, err := objectstore.Glob(objectstore.Join(path, "*"+partExt))
	if err != nil {
		return nil, err
	}
	journals, err := objectstore.Glob(objectstore.Join(path, "*"+journalExt))
	if err != nil {
		return nil, err
	}
	for _, j := range journals {
		if !slices.Contains(parts, strings.TrimSuffix(j, journalExt)+partExt) {
			parts = append(parts, j)
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errNone)
	}
	return parts, nil
}

// join adds a file to what is known of captures.
func (s *Set) join(m Meta) error {
	for i := range s.captures {
		c := &s.captures[i]
		if c.CaptureID == m.CaptureID {
			if m.End.After(c.End) {
				c.End = m.End
			}
			if m.Counts.Passed() > c.Counts.Passed() { // it was written later
				c.Counts = m.Counts
				if m.Breakers != nil { // which a journal does not have
					c.Breakers = m.Breakers
				}
			}
			return nil
		}
	}
	if len(s.captures) > 0 && s.captures[0].Settings != m.Settings {
		return fmt.Errorf("it was recorded with another tokenizer, chat template, block size or --keep-model than "+
			"%s: merge them separately", s.files[0])
	}
	s.captures = append(s.captures, m)
	return nil
}

// Files are the names of the files, journals among them, which Journals counts.
func (s *Set) Files() (names []string, journals int) { return s.files, s.journals }

// Captures are what the files say of each capture, in the order of their names.
func (s *Set) Captures() []Meta { return s.captures }

// Meta is what the captures have in common: settings, the time from the first begin to
// the last end, and the sum of the counts. Breakers are those of the longest capture, by
// requests.
func (s *Set) Meta() Meta {
	m, most := s.captures[0], s.captures[0].Counts.Recorded
	if m.Keys = strings.Join(s.Keys(), ","); m.Keys == ephemeralKey { // as with any other source
		m.Keys = ""
	}
	for _, c := range s.captures[1:] {
		if c.Begin.Before(m.Begin) {
			m.Begin = c.Begin
		}
		if c.End.After(m.End) {
			m.End = c.End
		}
		m.Share = max(m.Share, c.Share)
		if c.Counts.Recorded > most {
			m.Breakers, most = c.Breakers, c.Counts.Recorded
		}
		sum := m.Counts.Outcomes()
		for i, of := range c.Counts.Outcomes() {
			*sum[i].N += *of.N
		}
		m.Counts.Usage.Join(c.Counts.Usage)
	}
	return m
}

// Keys are the ids of the keys of the captures, in the order of these; "ephemeral" for
// each that ended with its capture.
func (s *Set) Keys() (ids []string) {
	for _, c := range s.captures {
		if id := cmp.Or(c.KeyID, ephemeralKey); id == ephemeralKey || !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

const ephemeralKey = "ephemeral"

// readMeta reads what a file says of its capture. That of a journal ends with its last
// row.
func readMeta(path string) (Meta, error) {
	f, err := objectstore.Open(path)
	if err != nil {
		return Meta{}, err
	}
	defer f.Close()
	if strings.HasSuffix(path, journalExt) {
		m, rows, err := readJournal(f)
		m.End = m.Begin.Add(1)
		for i := range rows {
			if t := time.Unix(0, rows[i].Request.ArrivalNS+1); t.After(m.End) {
				m.End = t
			}
		}
		return m, err
	}
	info, err := f.Stat()
	if err != nil {
		return Meta{}, err
	}
	p, err := trace.OpenParquet(f, info.Size())
	if err != nil {
		return Meta{}, err
	}
	text, _ := p.Lookup(captureKey)
	return parseMeta([]byte(text))
}

// Reader reads the rows of all files, one file after the other: they are sorted within
// a file alone. Close ends it early.
func (s *Set) Reader() *Reader { return &Reader{files: s.files} }

// A Reader reads the rows of a [Set]. It implements [trace.Reader].
type Reader struct {
	files  []string
	file   objectstore.File
	rows   trace.Reader[Row]
	chains *chains // nil before the first row
}

// Read implements [trace.Reader].
func (r *Reader) Read(rows []Row) (int, error) {
	if r.chains == nil {
		var err error
		if r.chains, err = readChains(r.files); err != nil {
			return 0, err
		}
	}
	for {
		if r.rows == nil {
			if len(r.files) == 0 {
				return 0, io.EOF
			}
			if err := r.next(); err != nil {
				return 0, fmt.Errorf("%s: %w", r.files[0], err)
			}
		}
		file := r.files[0]
		n, err := r.rows.Read(rows)
		if err == io.EOF {
			err, r.rows, r.files = r.Close(), nil, r.files[1:]
		}
		if err != nil {
			return n, fmt.Errorf("%s: %w", file, err)
		}
		for i := range rows[:n] {
			if q := &rows[i].Request; q.InputTokens < 0 || q.OutputOr(0) < 0 || len(q.Blocks)%2 != 0 ||
				len(q.OutputBlocks)%2 != 0 {
				return i, fmt.Errorf("%s: a row has a negative token count or an incomplete block id", file)
			}
			rows[i].SessionID = r.chains.session(&rows[i].Links)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// next opens the next file.
func (r *Reader) next() (err error) {
	if r.file, err = objectstore.Open(r.files[0]); err != nil {
		return err
	}
	if strings.HasSuffix(r.files[0], journalExt) {
		_, rows, err := readJournal(r.file)
		r.rows = &trace.SliceReader[Row]{Rows: rows}
		return err
	}
	info, err := r.file.Stat()
	if err == nil {
		r.rows, err = trace.NewRowsReader[Row](r.file, info.Size())
	}
	return err
}

// Close closes the file that is being read.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	f := r.file
	r.file = nil
	return f.Close()
}
