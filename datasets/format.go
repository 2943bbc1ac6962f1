package datasets

import (
	"bufio"
	"bytes"
	"cmp"
	_ "embed"
	"strings"
	"sync"

	"reprise/datasets/internal/input"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/sniff"
	"reprise/trace/strictyaml"
)

// A Format is a log or trace format that can be read.
type Format struct {
	Name    string
	About   string // one line
	Example string // one record
	Tried   string // on which real files; empty where that is not noted, see also [fromDocumentation]

	reads  []SourceField  // what is read of it
	bodies []string       // what is read with all that is below it too, with [Options.Bodies]
	base   func() Mapping // in place of that, of a format whose mapping may be overridden

	timed  bool                          // has numeric times, so that a unit may be told
	dated  bool                          // may have dates in any layout, so that one may be told
	csv    bool                          // has columns, whose delimiter may be told
	mapped bool                          // takes a Mapping
	adds   bool                          // takes one that adds to it, see [Mapping.adds]
	labels bool                          // takes one of [labels] beside its own fields
	sized  bool                          // leaves the size of its blocks open, so that one may be told
	rows   bool                          // leaves open what a row holds of its session
	pool   bool                          // describes clients; a part of them is expanded to requests
	detect func(head *sniff.Sample) bool // nil when it must be asked for
	open   func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error)

	declared *declaredFormat // of a format that a user wrote; nil for others

	// A format whose source is several files that belong together, such as a
	// pool of clients or requests beside their responses, has these instead.
	detectFiles func(files []File) bool // by names and contents
	openFiles   func(files []File, o Options, s *Source) (decoder, error)
}

// A format that has a reader in Go is described in this file, under its name.
//
//go:embed readers.yaml
var readersText []byte

// A readerFile is the description of such a format.
type readerFile struct {
	About  string `yaml:"about"`
	Tried  string `yaml:"tried"`
	Sample string `yaml:"sample"` // one record
	Reads  []struct {
		At      string `yaml:"at"`      // paths with "|" between them
		Usage   string `yaml:"usage"`   // in place of that: paths of usage objects
		Columns string `yaml:"columns"` // with spaces between them
		How     string `yaml:"how"`     // a key of howWords, or said in words
	} `yaml:"reads"` // what is read, beside the fields of a mapping
}

var howWords = map[string]string{"decides": decides, "passed": passed, "tokenised": tokenised, "drawn": drawnFrom,
	"packed": packed}

// readers are the descriptions by name. A test shows that the file has no fault.
var readers = sync.OnceValue(func() (all map[string]readerFile) {
	if doc, err := strictyaml.Parse(readersText, strictyaml.Bounds{What: "the formats", Bytes: 1 << 20}); err == nil {
		_ = doc.Decode(&all)
	}
	return all
})

// described is the format with what the file says of it.
func (f Format) described(name string) Format {
	d := readers()[name]
	f.Name, f.About, f.Tried, f.Example = name, d.About, d.Tried, strings.TrimSuffix(d.Sample, "\n")
	for _, r := range d.Reads {
		field := fieldAt(r.At, r.Columns, cmp.Or(howWords[r.How], r.How))
		if r.Usage != "" {
			field = usageAt(strings.Split(r.Usage, "|")...)
		}
		f.reads = append(f.reads, field)
	}
	return f
}

// fromDocumentation is in [Format].Tried of a format whose reader no real file has tried.
const fromDocumentation = "from documentation"

// A recordsOpener decodes records of JSON.
type recordsOpener func(in record.Reader, o Options, s *Source) decoder

// file opens the records of one file.
func (open recordsOpener) file(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
	return open(record.NewJSON(in, head), o, s), nil
}

// lines opens the records of one file, one a line, so that a line that is broken is only itself.
func (open recordsOpener) lines(in *bufio.Reader, _ []byte, o Options, s *Source) (decoder, error) {
	return open(record.NewJSONLines(in), o, s), nil
}

// ofFiles completes a format whose source is one file of records, or several that belong together.
func (f Format) ofFiles(open recordsOpener) Format {
	f.open, f.detectFiles = open.file, eachFile(f.detect)
	f.openFiles = func(files []File, o Options, s *Source) (decoder, error) {
		return open(&fileRecords{rest: files, s: s}, o, s), nil
	}
	return f
}

// ofSessions completes a format of session files, told by their names, see [sessionFiles].
func (f Format) ofSessions(names string, open recordsOpener) Format {
	f = f.ofFiles(open)
	detect, openFiles := f.detectFiles, f.openFiles
	f.detectFiles = func(files []File) bool {
		sessions := sessionFiles(files, names)
		return len(sessions) > 0 && detect(sessions)
	}
	f.openFiles = func(files []File, o Options, s *Source) (decoder, error) {
		return openFiles(sessionsAmong(files, s, names), o, s)
	}
	return f
}

// eachFile makes a detector for several files. All must be detected, except
// empty ones.
func eachFile(detect func(head *sniff.Sample) bool) func(files []File) bool {
	return func(files []File) bool {
		some := false
		for _, file := range files {
			head, err := input.Head(file)
			empty := len(bytes.TrimSpace(head)) == 0
			if empty && err != nil || !empty && !detect(sniff.New(head)) {
				return false
			}
			some = some || !empty
		}
		return some
	}
}

// formatOf recognises a file by what it begins with, which is empty for one that is empty
// or cannot be read.
func formatOf(f File) (found Format, head []byte, err error) {
	if head, err = input.Head(f); err == nil || len(head) > 0 {
		found, err = detectFormat(head)
	}
	return found, head, err
}

// hasFormat tells files of a known format, or those of one that joins several files.
func hasFormat(file File, joined bool) bool {
	f, _, err := formatOf(input.Plain(file))
	return err == nil && (!joined || f.openFiles != nil)
}
