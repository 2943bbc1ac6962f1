package datasets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/sniff"
)

var errUnrecognised = errors.New("unrecognised format")

// A detected format is one that an input may have.
type detected struct {
	Format
	keys []string // of the input that its table names: those at the top, or columns
}

// detectFormat recognises the format of an input by its first bytes, 64 KiB or all of it.
func detectFormat(head []byte) (Format, error) {
	d, err := detectKeyed(head)
	return d.Format, err
}

// nothingIn says what an input is whose beginning has nothing but white space.
func nothingIn(head []byte) string {
	if len(head) < record.HeadBytes-len(record.ByteOrderMark) {
		return "the input is empty"
	}
	return "it begins with 64 KiB of blank lines or spaces: take them out, such as with grep -v '^[[:space:]]*$', or " +
		"name the format with --format"
}

// detectKeyed recognises a format and says by which keys. Of several that fit, the one
// that knows the most keys of the input is taken: a dialect knows those of the format
// that it extends and more. When two know keys that the other does not, the input may be
// either, and the error names both.
func detectKeyed(head []byte) (best detected, err error) {
	head = bytes.TrimPrefix(head, []byte(record.ByteOrderMark))
	if len(bytes.TrimSpace(head)) == 0 {
		return best, errors.New(nothingIn(head))
	}
	if list, records := record.EnvelopeList(head); list != "" {
		head = records
	}
	looked := sniff.New(head)
	keys := sampleKeys(looked)
	var all []detected
	for _, f := range Formats() {
		if f.detect != nil && f.detect(looked) {
			fields, _ := newFieldCounter(f, nil)
			unknown := func(key string) bool { return !fields.Knows(key) }
			all = append(all, detected{f, slices.DeleteFunc(slices.Clone(keys), unknown)})
		}
	}
	// Many inputs may look like a format with a mapping: it is taken where no other one fits.
	if some := slices.DeleteFunc(slices.Clone(all), func(d detected) bool { return d.mapped }); len(some) > 0 {
		all = some
	}
	if len(all) == 0 {
		return best, errUnrecognised
	}
	best = all[0]
	for _, d := range all[1:] {
		if len(d.keys) > len(best.keys) {
			best = d
		}
	}
	for _, d := range all {
		ours, theirs := without(best.keys, d.keys), without(d.keys, best.keys)
		if len(ours) > 0 && len(theirs) > 1 {
			return best, ambiguousError{best, d, ours, theirs}
		}
	}
	return best, nil
}

// An ambiguousError says that an input may have either of two formats. It names keys that
// their tables name, and none of the input's own.
type ambiguousError struct {
	a, b         detected
	aOnly, bOnly []string
}

func (e ambiguousError) Error() string {
	return fmt.Sprintf("it may be %s, which has %s, or %s, which has %s: say --format %s or --format %s",
		e.a.Name, listed(e.aOnly), e.b.Name, listed(e.bOnly), e.a.Name, e.b.Name)
}

// listed writes the first few of some names as a list in a sentence.
func listed(names []string) string {
	names = names[:min(len(names), 4)]
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func without(keys, others []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return slices.Contains(others, key) })
}

// sampleKeys are the keys at the top of the first records, or the columns. Of a record
// that is cut they are those before the cut.
func sampleKeys(head *sniff.Sample) (keys []string) {
	if !head.IsJSON {
		return head.Header()
	}
	for _, record := range head.Records() {
		for _, key := range record.Keys {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// A FormatsError is returned by [OpenFiles] for files of several formats, of which none
// is told. It matches [ErrUsage].
type FormatsError struct{ Formats []FormatFiles }

// FormatFiles are those of several files that have one format.
type FormatFiles struct {
	Format string
	Files  int
	First  string // the name of one
}

func (e *FormatsError) Error() string {
	var found []string
	for _, f := range e.Formats {
		found = append(found, fmt.Sprintf("%d of %s, such as %s", f.Files, f.Format, f.First))
	}
	return "the files are of several formats: " + strings.Join(found, "; ") + ". Import each format by itself"
}

// Is matches ErrUsage.
func (e *FormatsError) Is(target error) bool { return target == fault.ErrUsage }

// ofOneFormat are those of several files that belong together, when each is recognised by
// itself. Left out are files of no known format that are something else: their names end
// otherwise than those of the others, as that of a README does, or they are whole JSON, as
// settings are. Any other one is damaged, or lacks its header, and stays for the reading
// to say so; so does JSON in which there seem to be requests. A file that a format has
// beside its others stays too. With a format told,
// files of another one are left out.
func (o *Options) ofOneFormat(files []File, s *Source) ([]File, error) {
	if len(files) == 1 || o.Map != nil && !o.detects() {
		return files, nil
	}
	asked := o.named()
	joins := asked != nil && asked.openFiles != nil // it knows its own files
	var of Format                                   // that is told, or found first
	formats := make([]string, len(files))           // empty for none
	requests := make([]bool, len(files))            // JSON of no format that a mapping can read
	others := make([]bool, len(files))              // JSON of no format, which begins with a whole value
	var found []FormatFiles
	var endings []string
	for i, file := range files {
		f, head, err := formatOf(file)
		if asked != nil && len(head) > 0 && asked.detect != nil && asked.detect(sniff.New(head)) {
			f, err = *asked, nil
		}
		if errors.Is(err, errUnrecognised) && record.LooksLikeJSON(head) {
			cut := json.NewDecoder(bytes.NewReader(head)).Decode(new(json.RawMessage))
			others[i] = cut == nil || len(head) == record.HeadBytes && errors.Is(cut, io.ErrUnexpectedEOF)
			requests[i] = o.Format == "" && inspectHead(head, *o).Missing == ""
		}
		if err != nil || joins && f.mapped {
			continue
		}
		if formats[i] = f.Name; of.Name == "" || f.Name == o.Format {
			of = f
		}
		endings = append(endings, extension(file.Name))
		if k := slices.IndexFunc(found, func(of FormatFiles) bool { return of.Format == f.Name }); k >= 0 {
			found[k].Files++
		} else {
			found = append(found, FormatFiles{f.Name, 1, file.Name})
		}
	}
	switch {
	case len(found) == 0 || o.Format != "" && !slices.Contains(formats, o.Format):
		return files, nil
	case o.Format == "" && len(found) > 1:
		return nil, &FormatsError{found}
	}
	known := files[slices.Index(formats, of.Name)]
	var kept []File
	for i, file := range files {
		switch {
		case formats[i] == "" && of.detectFiles != nil && of.detectFiles([]File{known, file}): // which belongs to it
			kept = append(kept, file)
		case formats[i] == "" && !requests[i] &&
			(others[i] || !joins && !slices.Contains(endings, extension(file.Name))):
			s.info.LeftOut = append(s.info.LeftOut, file.Name)
		case formats[i] != "" && o.Format != "" && formats[i] != o.Format:
			s.notes.Count("files of another format were left out")
		default:
			kept = append(kept, file)
		}
	}
	return kept, nil
}

// extension is how the name of a file ends, beside that of its compression.
func extension(name string) string {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst")
	return filepath.Ext(name)
}

// named is the format that the options name; nil for none.
func (o *Options) named() *Format {
	if o.Own != nil {
		return o.Own
	}
	all := Formats()
	if i := slices.IndexFunc(all, func(f Format) bool { return f.Name == o.Format }); i >= 0 {
		return &all[i]
	}
	return nil
}
