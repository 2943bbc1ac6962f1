package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strconv"

	"reprise/trace/objectstore"
)

const (
	partitionKey  = metaPrefix + "partition"
	partitionsKey = metaPrefix + "partitions"
)

// A partitionWriter writes one partition.
type partitionWriter struct {
	out    *File
	sum    hash.Hash
	rows   *RowsWriter[Request]
	digest *Digest // of the whole trace; nil where others write partitions too
	before int64   // rows of the trace before this partition, where that is known
	begin  int64   // arrival of its first row
	last   int64   // arrival of the row before the next
	p      Partition
}

func createPartition(dir string, i, of int) (*partitionWriter, error) {
	if of < 1 || of > MaxPartitions || i < 0 || i >= of {
		return nil, fmt.Errorf("there is no partition %d of %d: they count from 0, and there are at most %d", i,
			of, MaxPartitions)
	}
	w := &partitionWriter{sum: sha256.New(), p: Partition{Name: PartitionName(i, of)}}
	var err error
	if w.out, err = CreateFile(objectstore.Join(dir, w.p.Name), private); err != nil {
		return nil, err
	}
	w.rows = newRequestRows(writerFunc(func(b []byte) (int, error) {
		n, err := w.out.Write(b)
		w.sum.Write(b[:n])
		w.p.Bytes += int64(n)
		return n, err
	}))
	w.rows.SetMetadata(metaPrefix+"schema", PartitionSchema)
	w.rows.SetMetadata(partitionKey, strconv.Itoa(i))
	w.rows.SetMetadata(partitionsKey, strconv.Itoa(of))
	return w, nil
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Write implements [Writer].
func (w *partitionWriter) Write(rows []Request) (int, error) {
	for i := range rows {
		if rows[i].ArrivalNS < w.last {
			return 0, fmt.Errorf("row %d arrives before the row above it: a trace must be sorted by arrival",
				w.before+w.p.Rows+int64(i))
		}
		w.last = rows[i].ArrivalNS
	}
	if len(rows) > 0 && w.p.Rows == 0 {
		w.begin = rows[0].ArrivalNS
	}
	if w.digest != nil {
		w.digest.Add(rows)
	}
	n, err := w.rows.Write(rows)
	w.p.Rows += int64(n)
	return n, err
}

// commit makes the partition appear.
func (w *partitionWriter) commit() (Partition, error) {
	if err := w.rows.Close(); err != nil {
		return w.p, err
	}
	if w.p.SHA256 = hex.EncodeToString(w.sum.Sum(nil)); w.p.Rows > 0 {
		w.p.FirstNS, w.p.LastNS = &w.begin, &w.last
	}
	return w.p, w.out.Commit()
}

// CreatePartition writes partition i of a partitioned trace into a folder, where it appears
// whole or not at all: f writes its rows, in order of arrival and not before those of the
// partition above it. Ids and Parents are those of the whole trace, so that Parents count its
// rows from 0, and not those of the partition. Several processes may write the partitions of one folder;
// one that is written again replaces itself. [Assemble] makes a trace of them. The file is its
// owner's alone.
func CreatePartition(dir string, i, of int, f func(Writer[Request]) error) (Partition, error) {
	w, err := createPartition(dir, i, of)
	if err != nil {
		return Partition{}, err
	}
	defer w.out.Abort()
	if err := f(w); err != nil {
		return Partition{}, err
	}
	return w.commit()
}

// CreatePartitioned writes a trace as a folder of partitions that have about as many rows
// each: f writes all rows, whose number must be rows, and returns the metadata. The partitions
// are written beside their place, and the manifest appears last. A partitioned trace in its place is
// replaced once f has succeeded. Until then, a failure changes nothing; a process that is killed
// leaves a hidden folder of partitions. The mode is that of [Create]. In a store nothing can be
// renamed: the manifest in the place goes first, and each partition appears when it is whole.
func CreatePartitioned(dir string, partitions int, rows int64, f func(Writer[Request]) (Meta, error)) (err error) {
	if objectstore.IsURL(dir) {
		return createInStore(dir, partitions, rows, f)
	}
	made := os.Mkdir(dir, 0o700)
	if made != nil && !errors.Is(made, os.ErrExist) {
		return made
	}
	hidden, err := os.MkdirTemp(dir, ".partial-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(hidden))
			if made == nil {
				os.Remove(dir) // which is empty, or holds what is not ours
			}
		}
	}()
	m, mode, err := writePartitions(hidden, partitions, rows, f)
	if err != nil {
		return err
	}
	if err := m.replace(hidden, dir); err != nil {
		return err
	}
	return m.share(dir, mode)
}

// writePartitions writes partitions and then their manifest into a folder.
func writePartitions(dir string, partitions int, rows int64,
	f func(Writer[Request]) (Meta, error)) (m Manifest, mode os.FileMode, err error) {
	w := &partitionsWriter{dir: dir, of: partitions, total: rows, digest: NewDigest()}
	defer w.abort()
	meta, err := f(w)
	if err != nil {
		return m, 0, err
	}
	if err := w.close(); err != nil {
		return m, 0, err
	}
	m.Partitions = w.done
	if err := m.setMeta(meta, w.digest.Sum()); err != nil {
		return m, 0, err
	}
	return m, meta.Mode(), m.write(dir, private)
}

// createInStore is [CreatePartitioned] in a store. A failure leaves what is there without a
// manifest, so that nobody takes it for a trace.
func createInStore(dir string, partitions int, rows int64, f func(Writer[Request]) (Meta, error)) error {
	before, err := partitionsIn(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := objectstore.Remove(objectstore.Join(dir, ManifestName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, name := range before {
		if err := objectstore.Remove(objectstore.Join(dir, name)); err != nil {
			return err
		}
	}
	if _, _, err = writePartitions(dir, partitions, rows, f); err == nil {
		return nil
	}
	left, _ := partitionsIn(dir)
	for _, name := range left {
		err = errors.Join(err, objectstore.Remove(objectstore.Join(dir, name)))
	}
	return err
}

// partitionsIn are the names of the partitions in a folder.
func partitionsIn(dir string) (names []string, err error) {
	entries, err := objectstore.ReadDir(dir)
	for _, e := range entries {
		if _, _, ours := parsePartitionName(e.Name()); ours {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// replace moves a partitioned trace into the place of another, or of nothing. The manifest of
// the other goes first and that of the new one comes last, so that no manifest stands beside
// partitions of another trace.
func (m *Manifest) replace(from, to string) error {
	if err := os.Remove(filepath.Join(to, ManifestName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	before, err := partitionsIn(to)
	if err != nil {
		return err
	}
	for _, name := range before {
		if err := os.Remove(filepath.Join(to, name)); err != nil {
			return err
		}
	}
	for _, p := range m.Partitions {
		if err := os.Rename(filepath.Join(from, p.Name), filepath.Join(to, p.Name)); err != nil {
			return err
		}
	}
	if err := os.Rename(filepath.Join(from, ManifestName), filepath.Join(to, ManifestName)); err != nil {
		return err
	}
	return os.Remove(from)
}

// share lets everybody read the folder, if its metadata say so.
func (m *Manifest) share(dir string, mode os.FileMode) error {
	if mode != shared || objectstore.IsURL(dir) {
		return nil
	}
	err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, ManifestName), shared))
	for _, p := range m.Partitions {
		err = errors.Join(err, os.Chmod(filepath.Join(dir, p.Name), shared))
	}
	return err
}

// A partitionsWriter deals rows out to partitions, one after the other.
type partitionsWriter struct {
	dir    string
	of     int
	total  int64 // rows that are to come
	rows   int64 // that came
	digest *Digest
	w      *partitionWriter
	last   int64 // arrival of the row before the current partition
	done   []Partition
}

// end is the number of the first row after the current partition.
func (w *partitionsWriter) end() int64 {
	i, n := int64(len(w.done)), int64(w.of)
	return (i+1)*(w.total/n) + (i+1)*(w.total%n)/n
}

// Write implements [Writer].
func (w *partitionsWriter) Write(rows []Request) (int, error) {
	written := 0
	for written < len(rows) {
		if w.rows == w.total {
			return written, fmt.Errorf("there are more than the %d rows that were announced", w.total)
		}
		for w.w == nil || w.rows == w.end() {
			if err := w.next(); err != nil {
				return written, err
			}
		}
		part := rows[written:]
		part = part[:min(int64(len(part)), w.end()-w.rows)]
		n, err := w.w.Write(part)
		written, w.rows = written+n, w.rows+int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// next ends the current partition, if there is one, and begins another.
func (w *partitionsWriter) next() (err error) {
	if err := w.finish(); err != nil {
		return err
	}
	if w.w, err = createPartition(w.dir, len(w.done), w.of); err != nil {
		return err
	}
	w.w.digest, w.w.before, w.w.last = w.digest, w.rows, w.last
	return nil
}

func (w *partitionsWriter) finish() error {
	if w.w == nil {
		return nil
	}
	p, err := w.w.commit()
	if err != nil {
		return err
	}
	w.last, w.done, w.w = w.w.last, append(w.done, p), nil
	return nil
}

// close writes the partitions that are left, which have no rows.
func (w *partitionsWriter) close() error {
	if w.rows != w.total {
		return fmt.Errorf("%d rows were announced, and %d came", w.total, w.rows)
	}
	for {
		if err := w.finish(); err != nil || len(w.done) == w.of {
			return err
		}
		if err := w.next(); err != nil {
			return err
		}
	}
}

func (w *partitionsWriter) abort() {
	if w.w != nil {
		w.w.out.Abort()
	}
}

// Assemble makes a partitioned trace of the partitions that several processes wrote into a
// folder, see [CreatePartition]: it writes the manifest, with the metadata of the whole, whose digest it
// fills in. The partitions must be all of one number, each once. It reads every row, for the
// digest, and refuses what [Trace.Reader] refuses: rows out of order, from one partition to the next too,
// and parents that are no rows. Errors name the partition.
func Assemble(dir string, meta Meta) (Manifest, error) {
	m, err := foundPartitions(dir)
	if err != nil {
		return m, err
	}
	set := &partitionSet{dir: dir, manifest: m, checked: make([]bool, len(m.Partitions))}
	for i := range m.Partitions {
		if err := set.measure(i); err != nil {
			return m, err
		}
		set.manifest.Rows += m.Partitions[i].Rows
	}
	t := &Trace{set: set, name: dir}
	defer t.Close()
	r, err := t.Reader()
	if err != nil {
		return m, err
	}
	digest, batch := NewDigest(), make([]Request, 1)
	at, left := -1, int64(0)
	err = Each(r, func(_ int64, q *Request) error {
		if left == 0 {
			for left == 0 { // some have no rows
				at++
				left = m.Partitions[at].Rows
			}
			m.Partitions[at].FirstNS = Ptr(q.ArrivalNS)
		}
		left--
		m.Partitions[at].LastNS = Ptr(q.ArrivalNS)
		batch[0] = *q
		digest.Add(batch)
		return nil
	})
	if err != nil {
		return m, err
	}
	if err := m.setMeta(meta, digest.Sum()); err != nil {
		return m, fmt.Errorf("%s: %w", dir, err)
	}
	if err := m.write(dir, meta.Mode()); err != nil {
		return m, err
	}
	return m, m.share(dir, meta.Mode())
}

// foundPartitions are the partitions in a folder, by their names, if there are all of them.
func foundPartitions(dir string) (m Manifest, err error) {
	entries, err := objectstore.ReadDir(dir)
	if err != nil {
		return m, err
	}
	first, have := "", map[int]bool{}
	total := 0
	for _, e := range entries {
		name := e.Name()
		i, of, ok := parsePartitionName(name)
		switch {
		case !ok && filepath.Ext(name) == ".parquet" && name[0] != '.':
			return m, fmt.Errorf("%s is no partition: it has not a name like %s", objectstore.Join(dir, name),
				PartitionName(0, 1))
		case !ok:
			continue
		case first == "":
			first, total = name, of
		case of != total:
			return m, fmt.Errorf("%s and %s are of two numbers of partitions: remove the files of the one that is "+
				"not wanted", objectstore.Join(dir, first), name)
		}
		have[i] = true
	}
	if first == "" {
		return m, fmt.Errorf("%s has no partitions of a trace, such as %s", dir, PartitionName(0, 1))
	}
	for i := range total {
		name := PartitionName(i, total)
		if !have[i] {
			return m, fmt.Errorf("%s: %s is missing: %d of %d partitions are there", dir, name, len(have), total)
		}
		m.Partitions = append(m.Partitions, Partition{Name: name})
	}
	return m, nil
}
