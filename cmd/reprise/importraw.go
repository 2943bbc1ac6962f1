package main

import (
	"os"
	"strings"

	"reprise/anonymize"
	"reprise/datasets"
	"reprise/trace"
)

// rawName is the name of the raw file beside a trace.
func rawName(path string) string { return strings.TrimSuffix(path, ".parquet") + ".raw.parquet" }

// A rawOutput is a raw file in the making; nil where no text is kept.
type rawOutput struct{ file *trace.File }

// keepRaw has an import keep the text, where the flags ask for it: beside the trace,
// for the eyes of its owner alone.
func (f *importFlags) keepRaw(info datasets.Info, p *anonymize.Policy) (*rawOutput, error) {
	if f.tier.tier != anonymize.Raw {
		return nil, nil
	}
	switch at, err := os.Stat(f.out); {
	case f.out == "" || f.out == standard || err == nil && !at.Mode().IsRegular():
		return nil, usagef("--tier raw keeps text in a file beside the trace: give -o FILE.parquet, no pipe")
	case strings.HasSuffix(f.out, ".raw.parquet"):
		return nil, usagef("--tier raw: a name that ends in .raw.parquet is for text; give the trace another")
	case !info.HasText:
		return nil, usagef("--tier raw: %s has no text to keep", info.Format)
	}
	name := rawName(f.out)
	if at, err := os.Lstat(name); err == nil && !at.Mode().IsRegular() {
		return nil, usagef("--tier raw: %s is no regular file, and text goes nowhere else", name)
	}
	file, err := trace.CreateFile(name, 0o600)
	if err != nil {
		return nil, err
	}
	p.Raw = file
	return &rawOutput{file}, nil
}

// commit makes the file appear, once its trace has.
func (o *rawOutput) commit() error {
	if o == nil {
		return nil
	}
	return o.file.Commit()
}

func (o *rawOutput) abort() {
	if o != nil {
		o.file.Abort()
	}
}
