package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"reprise/replay/peerfile"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/objectstore"
	"reprise/trace/recording"
	"reprise/trace/shard"
)

// OpenResults opens the results of a run. Of a file that holds something else, the error
// says what, and which command takes it.
func OpenResults(path string) (*result.File, error) {
	f, err := peerfile.Open(path)
	if peer := (*peerfile.Error)(nil); err != nil && !errors.As(err, &peer) {
		err = otherKind(path, err, "the results of a run", result.Schema)
	}
	return f, err
}

// fileKinds are what Parquet files of ours hold, by their schema, and the command that
// takes them.
var fileKinds = map[string][2]string{
	trace.Schema:         {"a trace or a workload", "reprise profile FILE describes it, reprise replay FILE sends it"},
	result.Schema:        {"the results of a run", "reprise report FILE reads them"},
	result.MetricsSchema: {"the server metrics of a run", "reprise report reads it beside the results"},
	"model/2":            {"a model of a trace", "reprise synth FILE -o w.parquet makes a workload of it"},
	"model/1": {"a model of an earlier version",
		"reprise synth fit makes one of the trace that this version reads, in place of FILE"},
	"histograms/1": {"the histograms of a profile", "reprise synth fit FILE -o m.model makes a model of them"},
	recording.Schema: {"a part of a recording",
		"reprise merge --finish FILE -o t.parquet makes a trace of it, and of the parts beside it"},
	shard.Schema: {"a shard of an import",
		"reprise merge --finish FOLDER -o t.parquet makes a trace of it, and of the other shards"},
	trace.PartitionSchema: {"one partition of a trace", "name its folder, which has the manifest"},
	"tables/1":            {"the tables of a profile", "name the trace that they were made of"},
}

// SchemaOf is the schema of one of our own Parquet files, or of the trace in a folder; empty of
// all else.
func SchemaOf(path string) string {
	if trace.IsPartitioned(path) {
		return trace.Schema
	}
	f, err := objectstore.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	p, err := trace.OpenParquet(f, info.Size())
	if err != nil {
		return ""
	}
	schema, _ := p.Lookup("reprise.schema")
	return schema
}

// IsLog tells whether a file is none of ours: the log of another tool, or a file of prompts. A Parquet file
// that cannot be opened is taken for one of ours that is broken.
func IsLog(path string) bool {
	info, err := objectstore.Stat(path)
	if err != nil || !info.Mode().IsRegular() || SchemaOf(path) != "" || filepath.Base(path) == trace.ManifestName {
		return false
	}
	ext := strings.ToLower(filepath.Ext(path))
	return ext != ".yaml" && ext != ".yml" && ext != ".parquet"
}

// OurKind is the error for a log that is one of our own Parquet files, or nil.
func OurKind(path string) error {
	if schema := SchemaOf(path); fileKinds[schema][0] != "" {
		return holds(path, schema, "a log")
	}
	return nil
}

// NotMerged is the error for a file that is neither results nor a trace nor histograms.
func NotMerged(path string) error {
	_, err := trace.Open(path)
	if err == nil { // a trace, after all
		err = errors.New("it cannot be merged")
	}
	err = otherKind(path, err, "results, a trace or histograms", "")
	if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
		err = fmt.Errorf("%w. The parts of a recording and the shards of an import are merged with --finish", err)
	}
	return err
}

// holds is the error for a file of a kind that was not wanted.
func holds(path, schema, wanted string) error {
	kind := fileKinds[schema]
	return fmt.Errorf("%s holds %s, not %s: %s", path, kind[0], wanted, strings.ReplaceAll(kind[1], "FILE", path))
}

// otherKind says what a file holds that could not be read as what was wanted, and what
// takes it. err is why, and stays where the file looks like what was wanted.
func otherKind(path string, err error, wanted, schema string) error {
	if trace.IsPartitioned(path) && schema != trace.Schema {
		return holds(path, trace.Schema, wanted)
	}
	if filepath.Base(path) == trace.ManifestName {
		return fmt.Errorf("%s is the manifest of a partitioned trace: name its folder, %s", path, objectstore.Dir(path))
	}
	f, openErr := objectstore.Open(path)
	if openErr != nil || errors.Is(err, trace.ErrRaw) {
		return err
	}
	defer f.Close()
	info, statErr := f.Stat()
	if statErr != nil || !info.Mode().IsRegular() {
		return err
	}
	begin := make([]byte, 4)
	n, readErr := io.ReadFull(f, begin)
	if readErr != nil && readErr != io.EOF && readErr != io.ErrUnexpectedEOF {
		return err
	}
	p, parquetErr := trace.OpenParquet(f, info.Size())
	if parquetErr == nil {
		found, _ := p.Lookup("reprise.schema")
		switch {
		case found == schema:
			return err
		case fileKinds[found][0] != "":
			return holds(path, found, wanted)
		case found == "":
			return fmt.Errorf("%s is a Parquet file of another tool, not %s: reprise import %[1]s -o t.parquet makes "+
				"a trace of a log", path, wanted)
		}
		return err
	}
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case errors.Is(parquetErr, trace.ErrPage):
		return fmt.Errorf("%s: %w", path, parquetErr)
	case n == 0:
		return fmt.Errorf("%s is empty", path)
	case string(begin) == "PAR1":
		return fmt.Errorf("%s is cut off: it begins as Parquet, and its end is missing. Copy or make it again", path)
	case string(begin) == "\xff\xff\xff\xff" && schema != result.Schema:
		return fmt.Errorf("%s is the journal of a run, not %s: reprise report %[1]s reads it", path, wanted)
	case schema == result.Schema && string(begin) == "\xff\xff\xff\xff": // a journal that is damaged
		return err
	case schema == result.Schema:
		return fmt.Errorf("%s is not %s: name the file that replay or simulate wrote with -o", path, wanted)
	case ext == ".yaml" || ext == ".yml":
		return fmt.Errorf("%s is YAML, not %s: reprise synth %[1]s -o w.parquet makes a workload of a description",
			path, wanted)
	}
	return fmt.Errorf("%s is not %s: reprise import %[1]s -o t.parquet makes a trace of a log", path, wanted)
}
