package trace

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"reprise/trace/objectstore"
)

// A partitioned trace is a folder: a manifest, and partitions that hold its rows one after
// the other.
const (
	// ManifestName is the file that makes a folder a partitioned trace. It is written last.
	ManifestName = "manifest.json"
	// ManifestSchema names the layout of that file.
	ManifestSchema = "manifest/1"
	// PartitionSchema names the Parquet files beside it: the columns of a trace, whose row
	// numbers are those of the whole trace.
	PartitionSchema = "partition/1"
)

// MaxPartitions is how many partitions a trace may have: what five digits name.
const MaxPartitions = 100_000

// A Manifest says what a partitioned trace is made of.
type Manifest struct {
	Schema     string            `json:"schema"` // always [ManifestSchema]
	Rows       int64             `json:"rows"`
	Metadata   map[string]string `json:"metadata"`   // that of a trace in one file, under the same keys
	Partitions []Partition       `json:"partitions"` // in the order of their rows
}

// A Partition is one file of a partitioned trace.
type Partition struct {
	Name    string `json:"name"` // see [PartitionName]
	Rows    int64  `json:"rows"`
	FirstNS *int64 `json:"first_arrival_ns"` // null without rows
	LastNS  *int64 `json:"last_arrival_ns"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"` // of the file, in hex
}

// PartitionName is the name of a partition, from 0, of so many.
func PartitionName(i, of int) string { return fmt.Sprintf("part-%05d-of-%05d.parquet", i, of) }

// parsePartitionName reads what [PartitionName] wrote.
func parsePartitionName(name string) (i, of int, ok bool) {
	_, err := fmt.Sscanf(name, "part-%05d-of-%05d.parquet", &i, &of)
	return i, of, err == nil && i >= 0 && i < of && of <= MaxPartitions && name == PartitionName(i, of)
}

// IsPartitioned reports whether path is a folder with a manifest.
func IsPartitioned(path string) bool {
	info, err := objectstore.Stat(path)
	if err != nil || !info.IsDir() {
		return false
	}
	info, err = objectstore.Stat(objectstore.Join(path, ManifestName))
	return err == nil && info.Mode().IsRegular()
}

// ErrPartition says that a file is a part of a trace alone.
var ErrPartition = errors.New("it is one partition of a trace: name its folder, which has the manifest")

var errManifest = errors.New("it is not the manifest of a partitioned trace")

// maxManifest bounds what is read of a file of that name.
const maxManifest = 64 << 20

// readManifest reads and checks the manifest in a folder, and the metadata in it.
func readManifest(dir string) (m Manifest, meta Meta, err error) {
	path := objectstore.Join(dir, ManifestName)
	f, err := objectstore.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return m, meta, noManifest(dir)
	}
	if err != nil {
		return m, meta, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifest+1))
	if err == nil {
		m, meta, err = parseManifest(text)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return m, meta, err
}

// noManifest says what a folder without a manifest is.
func noManifest(dir string) error {
	if found, _ := objectstore.Glob(objectstore.Join(dir, "part-*-of-*.parquet")); len(found) > 0 {
		return fmt.Errorf("%s has partitions of a trace and no %s: what writes them has not ended, or failed",
			dir, ManifestName)
	}
	return fmt.Errorf("%s is a directory: name a trace or a workload in it. It has no %s, so it is no "+
		"partitioned trace", dir, ManifestName)
}

// parseManifest reads a manifest that contradicts itself nowhere. Errors quote nothing of it.
func parseManifest(text []byte) (m Manifest, meta Meta, err error) {
	if len(text) > maxManifest || json.Unmarshal(text, &m) != nil || m.Schema == "" {
		return m, meta, errManifest
	}
	if m.Schema != ManifestSchema {
		if strings.HasPrefix(m.Schema, "manifest/") {
			return m, meta, fmt.Errorf("its schema has another version than %s", ManifestSchema)
		}
		return m, meta, errManifest
	}
	if n := len(m.Partitions); n < 1 || n > MaxPartitions {
		return m, meta, fmt.Errorf("it lists no partitions, or more than %d", MaxPartitions)
	}
	rows, last := int64(0), int64(0)
	for i, p := range m.Partitions {
		name := PartitionName(i, len(m.Partitions))
		sum, err := hex.DecodeString(p.SHA256)
		switch {
		case p.Name != name:
			return m, meta, fmt.Errorf("entry %d of %d is not %s: a partition is missing in it, repeated or of "+
				"another trace", i+1, len(m.Partitions), name)
		case p.Rows < 0 || p.Bytes < 0 || err != nil || len(sum) != 32 || rows+p.Rows < rows:
			return m, meta, fmt.Errorf("what it says of %s is impossible", name)
		case (p.Rows > 0) != (p.FirstNS != nil) || (p.Rows > 0) != (p.LastNS != nil):
			return m, meta, fmt.Errorf("it has no first or last arrival of %s, or one too many", name)
		case p.Rows > 0 && (*p.FirstNS < last || *p.LastNS < *p.FirstNS):
			return m, meta, fmt.Errorf("%s begins before the partition above it ends", name)
		}
		if rows += p.Rows; p.Rows > 0 {
			last = *p.LastNS
		}
	}
	if rows != m.Rows {
		return m, meta, fmt.Errorf("it says %d rows, and its partitions have %d", m.Rows, rows)
	}
	meta, err = parseMeta(func(key string) (string, bool) {
		value, ok := m.Metadata[key]
		return value, ok
	})
	return m, meta, err
}

// write writes the manifest into a folder, where it appears whole.
func (m *Manifest) write(dir string, mode os.FileMode) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if _, _, err := parseManifest(text); err != nil {
		return err
	}
	return WriteFile(objectstore.Join(dir, ManifestName), mode, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// setMeta puts metadata into the manifest, with the schema and the digest of its rows. Rows
// after the end of a declared capture are an error.
func (m *Manifest) setMeta(meta Meta, digest string) error {
	last := int64(0)
	for _, p := range m.Partitions {
		if m.Rows += p.Rows; p.Rows > 0 {
			last = *p.LastNS
		}
	}
	if err := meta.holds(m.Rows, last); err != nil {
		return err
	}
	m.Schema, m.Metadata = ManifestSchema, map[string]string{}
	meta.Schema, meta.Digest = Schema, digest
	meta.Each(func(key, value string) { m.Metadata[key] = value })
	return nil
}
