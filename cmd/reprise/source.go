package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/objectstore"
)

// captureWords tell from when to when a trace was recorded, if that was declared.
func captureWords(c trace.Capture) string {
	begin, end := c.Texts()
	if end == "" {
		return ""
	}
	return fmt.Sprintf("capture declared: %v, from %s to %s; times count from its begin", c.Length(), begin, end)
}

// templatesName is the name of the file of templates beside a trace.
func templatesName(path string) string {
	return strings.TrimSuffix(path, ".parquet") + ".templates.json"
}

// writeTemplates writes the system prompts that many users share, for their owner alone.
func writeTemplates(cmd *cobra.Command, path string, t *anonymize.Templates) error {
	if t.Unit() == "" {
		cli.Notef(cmd, "templates: none, since the source names neither users nor sessions")
	} else {
		cli.Warnf(cmd, "templates: %d system prompts in %s; A PERSON MUST READ THEM before anybody else gets the file",
			t.Len(), path)
	}
	return trace.WriteFile(path, 0o600, t.WriteJSON)
}

// inputs are what import reads.
func (f *importFlags) inputs(files []datasets.File) []string {
	inputs := []string{f.FormatFile(), f.Tokenizer, f.Template}
	for _, file := range files {
		inputs = append(inputs, file.Name)
	}
	return inputs
}

// writes are what import writes.
func (f *importFlags) writes() []string {
	out := outputsOf(&f.tier, f.out)
	if f.tier.Tier == anonymize.Raw {
		out = append(out, rawName(f.out))
	}
	if f.KeepTemplates {
		out = append(out, templatesName(f.out))
	}
	return out
}

// reads are the inputs and what belongs to them.
func (f *importFlags) reads(files []datasets.File) []string {
	reads := f.inputs(files)
	if _, err := objectstore.Stat(f.Template); err == nil {
		reads = append(reads, objectstore.Dir(f.Template)) // a config may stand beside it
	}
	return reads
}

// logFiles turns the arguments of a command into the files of a source.
func logFiles(cmd *cobra.Command, args []string) ([]datasets.File, error) {
	var files []datasets.File
	for _, arg := range args {
		if arg == cli.Standard {
			files = append(files, datasets.File{Name: "stdin", Open: func() (io.ReadCloser, error) {
				return io.NopCloser(cmd.InOrStdin()), nil
			}})
			continue
		}
		if trace.IsPartitioned(arg) {
			return nil, cli.OurKind(arg)
		}
		more, err := datasets.Expand(arg)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	return files, nil
}

// rawName is the name of the raw file beside a trace.
func rawName(path string) string { return strings.TrimSuffix(path, ".parquet") + ".raw.parquet" }

var errNoText = errors.New("has no text to keep")

// keepRaw has an import keep the text, where the flags ask for it: beside the trace,
// for the eyes of its owner alone. It returns nil where no text is kept.
func (f *importFlags) keepRaw(info datasets.Info, p *anonymize.Policy) (*trace.File, error) {
	if f.tier.Tier != anonymize.Raw {
		return nil, nil
	}
	switch at, err := objectstore.Stat(f.out); {
	case f.out == "" || f.out == cli.Standard || err == nil && !at.Mode().IsRegular():
		return nil, cli.Usagef("--tier raw keeps text in a file beside the trace: give -o FILE.parquet, no pipe")
	case objectstore.IsURL(f.out):
		return nil, cli.Usagef("--tier raw keeps text beside the trace, and text goes into no store: give -o a file " +
			"of this machine")
	case strings.HasSuffix(f.out, ".raw.parquet"):
		return nil, cli.Usagef("--tier raw: a name that ends in .raw.parquet is for text; give the trace another")
	case !info.HasText:
		return nil, cli.Usagef("--tier raw: %s %w", info.Format, errNoText)
	}
	name := rawName(f.out)
	if at, err := os.Lstat(name); err == nil && !at.Mode().IsRegular() {
		return nil, cli.Usagef("--tier raw: %s is no regular file, and text goes nowhere else", name)
	}
	file, err := trace.CreateFile(name, 0o600)
	if err != nil {
		return nil, err
	}
	p.Raw = file
	return file, nil
}

// publishedDigest is the SHA-256 of the file that a trace is of as a whole, where that
// is of a format in which data sets are published, so that a scenario can tell which of
// them it is. It is empty for all else: stdin, several files, and a file with bad records.
func publishedDigest(ctx context.Context, files []datasets.File, info datasets.Info) (string, error) {
	if info.Format != "weka" || len(files) != 1 || info.Bad > 0 {
		return "", nil
	}
	if at, err := objectstore.Stat(files[0].Name); err != nil || !at.Mode().IsRegular() {
		return "", nil
	}
	in, err := objectstore.Open(files[0].Name)
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := sha256.New()
	for {
		_, err := io.CopyN(h, in, 64<<20)
		if err == io.EOF {
			return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return "", err
		}
	}
}

// readShare wraps files, so that share tells how much of the bytes of files[from:to] was read, from 0 to 1. It stays 0
// where the size of one is unknown, such as stdin's.
func readShare(files []datasets.File) (wrapped []datasets.File, share func(from, to int) float64) {
	sizes, read := make([]int64, len(files)), make([]atomic.Int64, len(files))
	for i, file := range files {
		at, err := objectstore.Stat(file.Name)
		if err != nil || !at.Mode().IsRegular() {
			return files, func(int, int) float64 { return 0 }
		}
		sizes[i] = at.Size()
		wrapped = append(wrapped, datasets.File{Name: file.Name, Open: func() (io.ReadCloser, error) {
			in, err := file.Open()
			if err != nil {
				return nil, err
			}
			read[i].Store(0)
			return &countedFile{in, &read[i]}, nil
		}})
	}
	return wrapped, func(from, to int) float64 {
		size, sum := int64(0), int64(0)
		for i := from; i < to; i++ {
			size, sum = size+sizes[i], sum+read[i].Load()
		}
		return float64(sum) / float64(max(1, size))
	}
}

// A countedFile counts what is read of it.
type countedFile struct {
	io.ReadCloser
	read *atomic.Int64
}

func (f *countedFile) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.read.Add(int64(n))
	return n, err
}
