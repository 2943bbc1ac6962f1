package datasets

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// A Format is a log or trace format that can be read.
type Format struct {
	Name    string
	About   string // one line
	Example string // one record

	reads []SourceField  // what is read of it
	base  func() Mapping // in place of that, of a format whose mapping may be overridden

	timed  bool                   // has numeric times, so that a unit may be told
	mapped bool                   // takes a Mapping
	sized  bool                   // leaves the size of its blocks open, so that one may be told
	rows   bool                   // leaves open what a row holds of its session
	pool   bool                   // describes clients, of which a part is expanded to requests
	detect func(head []byte) bool // nil when it must be asked for
	open   func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error)

	// A format whose source is several files that belong together, such as a
	// pool of clients or requests beside their responses, has these instead.
	detectFiles func(files []File) bool // by names and contents
	openFiles   func(files []File, o Options, s *Source) (decoder, error)
}

// Formats lists the formats in the order in which they are tried: a format
// that is told by more comes before one that is told by less.
func Formats() []Format {
	return slices.Concat(poolFormats(), traceFormats(), logFormats(), chatFormats(), genericFormats())
}

// genericFormats are tried last, or must be asked for.
func genericFormats() []Format {
	return []Format{openAILogFormat(), jsonlFormat(), csvFormat()}
}

// detectBytes is how much of an input its format and time unit are told from.
const detectBytes = 64 << 10

// byteOrderMark may stand before UTF-8 that was written on Windows.
const byteOrderMark = "\xef\xbb\xbf"

// Detect recognises the format of an input by its first bytes, 64 KiB or all
// of it. The error lists the known formats.
func Detect(head []byte) (Format, error) {
	head = bytes.TrimPrefix(head, []byte(byteOrderMark))
	if len(bytes.TrimSpace(head)) == 0 {
		return Format{}, errors.New("the input is empty")
	}
	for _, f := range Formats() {
		if f.detect != nil && f.detect(head) {
			return f, nil
		}
	}
	return Format{}, errors.New("the content is of no format that is recognised: name one with --format (" + formatNames() +
		") or say where the fields are with --map, such as --map input_tokens=usage.prompt_tokens")
}

// formatOf returns the format of a name.
func formatOf(name string) Format {
	all := Formats()
	return all[slices.IndexFunc(all, func(f Format) bool { return f.Name == name })]
}

func formatNames() string {
	var names []string
	for _, f := range Formats() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// generic is the format of an input with a mapping and no name.
func generic(head []byte) Format {
	if isParquet(head) {
		return parquetFormat()
	}
	if head = bytes.TrimSpace(head); len(head) > 0 && head[0] == '{' {
		return jsonlFormat()
	}
	return csvFormat()
}

// headLines yields the lines of head that are not blank, without a last one
// that may be cut, unless it is the only one.
func headLines(head []byte) [][]byte {
	whole := bytes.HasSuffix(head, []byte("\n"))
	lines := slices.DeleteFunc(bytes.Split(head, []byte("\n")), func(l []byte) bool { return len(bytes.TrimSpace(l)) == 0 })
	if !whole && len(lines) > 1 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// detectKeys makes a detector of JSON lines by the keys of an object: the
// first lines are tried in turn, since one of them may be at fault.
func detectKeys(match func(has func(key string) bool) bool) func(head []byte) bool {
	return func(head []byte) bool {
		lines := headLines(head)
		for _, line := range lines[:min(len(lines), 10)] {
			keys := objectKeys(line)
			if match(func(key string) bool { return slices.Contains(keys, key) }) {
				return true
			}
		}
		return false
	}
}

// objectKeys returns the keys of the object that b begins with, as far as b goes.
func objectKeys(b []byte) []string {
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var keys []string
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			break
		}
		keys = append(keys, key)
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break
		}
	}
	return keys
}
