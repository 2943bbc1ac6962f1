package stage

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/importshard"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/shard"
)

// A Job is an import. It holds names and settings alone, since engines store and show it: of the
// key, where its file is.
type Job struct {
	Logs    []string // files, folders and patterns, as workers see them
	Flags   []string // of import: how the logs are read
	KeyFile string
	Work    string // folder for the shards
	Out     string // of the trace: a file, or a folder of partitions
	Parts   int    // of the folder; 0 for a file
	Shards  int
	OneIn   int // of the blocks, one in so many is in the sample of the LRU curve
	Tool    string
}

// FlagsOf are the flags that were given of those that say how a log is read.
func FlagsOf(fl *pflag.FlagSet) []string {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(flags.Log).Register(known)
	var given []string
	fl.Visit(func(f *pflag.Flag) {
		if known.Lookup(f.Name) == nil {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if slices.Contains([]string{"tokenizer", "template", "format"}, f.Name) {
				if _, err := os.Stat(v); err == nil { // a file, and no name of what is built in
					if at, err := filepath.Abs(v); err == nil {
						v = at
					}
				}
			}
			given = append(given, "--"+f.Name+"="+v)
		}
	})
	return given
}

// Files are those of the logs.
func (j *Job) Files() ([]datasets.File, error) {
	var files []datasets.File
	for _, name := range j.Logs {
		more, err := datasets.Expand(name)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// A Shard is a shard that was imported: its file, and how many rows it has of each file of the
// source from the first on.
type Shard struct {
	Index int
	Path  string
	First int
	Rows  []int64
}

// importOf is the import of one share of the files, and how they are read.
func (j *Job) importOf(index int) (*importshard.Import, map[string]string, error) {
	var log flags.Log
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	log.Register(fl)
	if err := fl.Parse(j.Flags); err != nil {
		return nil, nil, err
	}
	files, err := j.Files()
	if err != nil {
		return nil, nil, err
	}
	mapping, err := log.Mapping()
	if err != nil {
		return nil, nil, err
	}
	return &importshard.Import{Index: index, Of: j.Shards, KeyFile: j.KeyFile,
		Out:  filepath.Join(j.Work, shard.Name(index, j.Shards)),
		Tool: j.Tool, MaxBad: log.MaxBad, Mapping: mapping,
		Open: func(share *datasets.Share) (*datasets.Source, error) { return log.Open(files, share) },
		Policy: func(info datasets.Info) (anonymize.Policy, error) {
			if err := log.Capture.Check(info, false); err != nil {
				return anonymize.Policy{}, err
			}
			return log.Policy(info)
		}}, importshard.SetOptions(fl), nil
}

// Check opens the logs, and says why they cannot be imported, where their beginning tells.
func (j *Job) Check() error {
	s, _, err := j.importOf(0)
	if err != nil {
		return err
	}
	src, err := s.Open(&datasets.Share{Of: j.Shards})
	if err != nil {
		return err
	}
	_, err = s.Policy(src.Info())
	return errors.Join(err, src.Close(), src.Head().Close())
}

// Import imports one share of the files. It may be done again, also while it is being done: the file
// appears whole, with the same rows.
func (j *Job) Import(ctx context.Context, index int) (Shard, error) {
	s, options, err := j.importOf(index)
	if err != nil {
		return Shard{}, err
	}
	if err := os.MkdirAll(j.Work, 0o700); err != nil {
		return Shard{}, err
	}
	m, _, err := s.Write(ctx, options, nil)
	if err != nil {
		return Shard{}, err
	}
	out := Shard{Index: index, Path: s.Out, First: m.First}
	for _, f := range m.Files {
		out.Rows = append(out.Rows, f.Rows)
	}
	return out, nil
}

// Finish makes the trace of all shards, and its privacy card beside it. It may be done again.
func (j *Job) Finish(ctx context.Context, shards []Shard) error {
	var all importshard.Merge
	var paths []string
	rows := int64(0)
	for _, s := range shards {
		paths = append(paths, s.Path)
		for _, n := range s.Rows {
			rows += n
		}
	}
	if err := all.Open(paths); err != nil {
		return err
	}
	var text string
	write := func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		card, err := all.Write(ctx, nil, dst)
		if err != nil {
			return trace.Meta{}, err
		}
		card.Tool = j.Tool
		meta, err := flags.ImportedMeta(card, all.Info, all.Policy.Capture, "")
		meta.Captures, text = all.Captures, meta.Card
		return meta, err
	}
	return trace.WriteFile(j.beside(".privacy.json"), 0o644, func(w io.Writer) error {
		var err error
		if j.Parts > 0 {
			err = trace.CreatePartitioned(j.Out, j.Parts, rows, write)
		} else {
			err = trace.Create(j.Out, write)
		}
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, text)
		return err
	})
}

// beside is a file that goes with the trace.
func (j *Job) beside(extension string) string {
	return strings.TrimSuffix(filepath.Clean(j.Out), ".parquet") + extension
}
