package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/parquet-go/parquet-go"

	"reprise/trace/objectstore"
)

// A partitionSet is an open partitioned trace. It opens a partition when a reader comes to it.
type partitionSet struct {
	dir      string
	manifest Manifest

	mu      sync.Mutex
	open    map[int]*openPartition
	checked []bool // whose bytes were held against the manifest
	closed  bool
}

type openPartition struct {
	f       objectstore.File
	readers int
}

// openPartitioned opens the partitioned trace in a folder. It looks at the end of each
// partition, where a missing one, a cut one, and one that has the place of another show. The
// bytes are held against the manifest when they are read first.
func openPartitioned(dir string) (*Trace, error) {
	m, meta, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	set := &partitionSet{dir: dir, manifest: m, checked: make([]bool, len(m.Partitions))}
	for i := range m.Partitions {
		if err := set.look(i); err != nil {
			return nil, err
		}
	}
	if err := set.onlyListed(); err != nil {
		return nil, err
	}
	return &Trace{Meta: meta, set: set, name: dir}, nil
}

// onlyListed refuses Parquet files beside the partitions.
func (s *partitionSet) onlyListed() error {
	entries, err := objectstore.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		if _, of, ok := parsePartitionName(name); ok && of == len(s.manifest.Partitions) || name[0] == '.' ||
			filepath.Ext(name) != ".parquet" {
			continue
		}
		return fmt.Errorf("%s is foreign: %s does not list it. Move it elsewhere", s.path(name), ManifestName)
	}
	return nil
}

func (s *partitionSet) path(name string) string { return objectstore.Join(s.dir, name) }

// look checks a partition by its size and its footer.
func (s *partitionSet) look(i int) error {
	p := &s.manifest.Partitions[i]
	f, err := s.file(i)
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := partitionRows(f, p.Bytes, i, len(s.manifest.Partitions))
	if err == nil && rows != p.Rows {
		err = fmt.Errorf("it is foreign: it has %d rows, and %s says %d", rows, ManifestName, p.Rows)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.path(p.Name), err)
	}
	return nil
}

// file opens the file of a partition, if it has the size that the manifest says.
func (s *partitionSet) file(i int) (objectstore.File, error) {
	p := &s.manifest.Partitions[i]
	path := s.path(p.Name)
	f, err := objectstore.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing, which %s lists: copy it again, or make the trace again",
			path, ManifestName)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.Size() < p.Bytes:
		err = fmt.Errorf("%s is cut off: it has %d bytes, and %s says %d. Copy it again", path, info.Size(),
			ManifestName, p.Bytes)
	case info.Size() > p.Bytes:
		err = fmt.Errorf("%s is foreign: it has %d bytes, and %s says %d", path, info.Size(), ManifestName, p.Bytes)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// partitionRows checks that a file is partition i of so many, and counts its rows.
func partitionRows(r io.ReaderAt, size int64, i, of int) (int64, error) {
	f, err := OpenParquet(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return 0, err
	}
	if schema, _ := f.Lookup(metaPrefix + "schema"); schema != PartitionSchema {
		return 0, fmt.Errorf("it is foreign: its schema is not %s", PartitionSchema)
	}
	index, _ := f.Lookup(partitionKey)
	number, _ := f.Lookup(partitionsKey)
	if index != strconv.Itoa(i) || number != strconv.Itoa(of) {
		if n, err := strconv.Atoi(index); err == nil && number == strconv.Itoa(of) {
			return 0, fmt.Errorf("it is partition %d under the name of %d: repeated, or renamed", n, i)
		}
		return 0, fmt.Errorf("it is foreign: it was not written as partition %d of %d", i, of)
	}
	if _, err := newColumnReader[Request](f); err != nil {
		return 0, err
	}
	return f.NumRows(), nil
}

// measure fills in what the manifest says of a partition, but for its arrivals.
func (s *partitionSet) measure(i int) error {
	p := &s.manifest.Partitions[i]
	err := func() error {
		f, err := objectstore.Open(s.path(p.Name))
		if err != nil {
			return err
		}
		defer f.Close()
		if p.SHA256, p.Bytes, err = sumOf(f); err == nil {
			p.Rows, err = partitionRows(f, p.Bytes, i, len(s.manifest.Partitions))
		}
		return err
	}()
	if err != nil {
		return fmt.Errorf("%s: %w", s.path(p.Name), err)
	}
	s.checked[i] = true
	return nil
}

// sumOf is the SHA-256 of a file in hex, and its size.
func sumOf(f objectstore.File) (sum string, size int64, err error) {
	h := sha256.New()
	size, err = io.Copy(h, io.NewSectionReader(f, 0, 1<<62))
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// acquire opens a partition for a reader, which gives it back by release. The first of all
// holds its bytes against the manifest.
func (s *partitionSet) acquire(i int) (f objectstore.File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, os.ErrClosed
	}
	at := s.open[i]
	if at == nil {
		if f, err = s.file(i); err != nil {
			return nil, err
		}
		if s.open == nil {
			s.open = map[int]*openPartition{}
		}
		at = &openPartition{f: f}
		s.open[i] = at
	}
	if !s.checked[i] {
		p := &s.manifest.Partitions[i]
		sum, _, err := sumOf(at.f)
		if err != nil {
			return nil, err
		}
		if sum != p.SHA256 {
			return nil, fmt.Errorf("%s is damaged or foreign: its SHA-256 is not that in %s. Copy it again",
				s.path(p.Name), ManifestName)
		}
		s.checked[i] = true
	}
	at.readers++
	return at.f, nil
}

func (s *partitionSet) release(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.open[i]
	if at == nil {
		return
	}
	if at.readers--; at.readers == 0 {
		delete(s.open, i)
		at.f.Close()
	}
}

// close closes all partitions.
func (s *partitionSet) close() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, at := range s.open {
		err = errors.Join(err, at.f.Close())
	}
	s.open = nil
	return err
}

// A partitionReader reads the rows of all partitions, one after the other.
type partitionReader[R TextFree] struct {
	set     *partitionSet
	at      int // partition
	current *columnReader[R]
	columns []string // that alone are read; nil for all
}

func (r *partitionReader[R]) rows() int64 { return r.set.manifest.Rows }

func (r *partitionReader[R]) only(columns []string) { r.columns = append([]string{}, columns...) }

func (r *partitionReader[R]) lookup(key string) (string, bool) {
	value, ok := r.set.manifest.Metadata[key]
	return value, ok
}

func (r *partitionReader[R]) holding(row int64) string {
	for _, p := range r.set.manifest.Partitions {
		if row < p.Rows {
			return p.Name
		}
		row -= p.Rows
	}
	return ""
}

// Read implements [Reader].
func (r *partitionReader[R]) Read(rows []R) (int, error) {
	n := 0
	for n < len(rows) {
		if r.current == nil {
			if r.at == len(r.set.manifest.Partitions) {
				return n, io.EOF
			}
			if err := r.begin(); err != nil {
				return n, err
			}
		}
		k, err := r.current.Read(rows[n:])
		n += k
		if err == io.EOF {
			r.current = nil
			r.set.release(r.at)
			r.at++
		} else if err != nil {
			return n, r.named(err)
		}
	}
	return n, nil
}

// begin opens the partition at hand.
func (r *partitionReader[R]) begin() error {
	p := &r.set.manifest.Partitions[r.at]
	f, err := r.set.acquire(r.at)
	if err != nil {
		return err
	}
	file, err := OpenParquet(f, p.Bytes, parquet.SkipBloomFilters(true))
	if err == nil {
		r.current, err = newColumnReader[R](file)
	}
	if err != nil {
		r.set.release(r.at)
		return r.named(err)
	}
	if r.columns != nil {
		r.current.only(r.columns)
	}
	return nil
}

func (r *partitionReader[R]) named(err error) error {
	return fmt.Errorf("%s: %w", r.set.manifest.Partitions[r.at].Name, err)
}
