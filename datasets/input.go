package datasets

import (
	"bufio"
	"fmt"
	"io"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/input"
	"reprise/datasets/internal/record"
	"reprise/trace"
)

// A File is one file of a source. Open may be called more than once. It is called
// once only for a source of a single file, such as stdin, in a format that is not
// made of several files.
type File = input.File

// Expand turns a path into files: a file into itself, a directory into the
// files in it, and a pattern of package path/filepath into those that it
// matches. Directories and patterns give files in lexical order, without hidden
// ones. What is in directories below is left out, but for those in which agents keep
// their sessions: all in a directory that has no file of its own or, like settings, none
// of a known format; and one that is named as a file beside it or in it, without the end
// of that name.
func Expand(path string) ([]File, error) { return input.Expand(path, hasFormat) }

// OpenFiles begins to read a source that is one file or several. Each may be
// compressed with gzip or zstd, as its first bytes tell. An archive that is cut off
// matches io.ErrUnexpectedEOF, at the place up to which it was read; one that holds
// more than 64 MiB and 1,000 times its own size is refused.
//
// Several files of a format whose sources are made of several are read as that
// format joins them. Of any other format they are read one after the other as
// one source, and what an entry refers to may be in a file before. The format is told
// or found in each file. Files of several formats are refused by a [*FormatsError], unless
// one is told, whose files are then read; files of no format are left out, which
// Info.LeftOut names. Empty files are passed over. Close the source when it is not read to its end.
//
// Errors of what was asked for match [ErrUsage]. Errors of the input have the type
// *trace.SourceError and name the file, here and from Read.
func OpenFiles(files []File, o Options) (*Source, error) {
	if len(files) == 0 {
		return nil, fault.Usage("there is no file to read")
	}
	all := make([]File, len(files))
	for i, f := range files {
		all[i] = input.Plain(f)
	}
	s := &Source{name: files[0].Name, file: files[0].Name, maxBad: o.MaxBad}
	if o.Own != nil {
		o.Format = o.Own.Name
	}
	f, joined, err := o.multiFileFormat(all)
	if err == nil && (!joined || o.Format != "" && f.detect != nil) {
		if all, err = o.ofOneFormat(all, s); err == nil && len(all) < len(files) {
			f, joined, err = o.multiFileFormat(all)
		}
	}
	if err != nil {
		return nil, err
	}
	if len(files) > 1 {
		s.name = fmt.Sprintf("%s and %d more", files[0].Name, len(files)-1)
	}
	switch {
	case joined && o.Share != nil:
		err = fault.Usage("the format %s links its files to each other: import it in one process", f.Name)
	case o.Share != nil:
		err = s.openShare(all, o)
	case joined:
		s.readAs(f, o)
		s.dec, err = f.openFiles(all, o, s)
	default:
		err = s.openChain(all, o)
	}
	return s.start(err)
}

// A fileChain decodes files of one format one after the other. The decoder of the
// first file goes on with the inputs of the others, and so knows all entries
// before: their positions, sessions and the unit of their times.
type fileChain struct {
	rest    []File
	options Options
	format  Format
	s       *Source
	dec     decoder
	found   bool         // format was found in a file, and is not told
	entries int64        // of dec so far
	before  int64        // of decoders before it, which it does not know of
	share   *sharedChain // nil where all files are read
}

const noteEmpty = "files that are empty"

// openChain begins with the first file that is not empty.
func (s *Source) openChain(files []File, o Options) error {
	c := &fileChain{rest: files, options: o, s: s, found: o.detects()}
	s.dec = c
	if err := c.advance(); err != io.EOF {
		return err
	}
	return fault.Refuse(1, 1, "the input is empty")
}

// advance opens the next file that is not empty; io.EOF after the last.
func (c *fileChain) advance() error {
	for len(c.rest) > 0 {
		file := c.rest[0]
		c.rest = c.rest[1:]
		if c.share != nil {
			c.share.at++
		}
		if err := c.s.Close(); err != nil {
			return err
		}
		c.s.file = file.Name
		r, err := file.Open()
		if err != nil {
			return err // it names the file
		}
		c.s.closer = r
		in, head, err := input.Begin(r)
		if err != nil && len(head) == 0 {
			return fault.Broken(1, 1, err)
		} // else what there is comes first, and the error at its place
		if len(head) == 0 && (c.dec != nil || len(c.rest) > 0) {
			c.s.notes.Count(noteEmpty)
			continue
		}
		opened := c.open(in, head)
		if opened != nil && err != nil {
			return fault.Broken(1, 1, err) // it is cut off within what the format is told by
		}
		return opened
	}
	if err := c.s.Close(); err != nil {
		return err
	}
	return io.EOF
}

// open begins to decode a file.
func (c *fileChain) open(in *bufio.Reader, head []byte) error {
	o := c.options
	o.inspect = func() *Inspection { return inspectHead(head, o) }
	if c.dec == nil {
		f, err := o.format(head)
		if err != nil {
			return err
		}
		if f.open == nil {
			return fault.Refuse(1, 1, f.Name+" is made of several files: give their directory")
		}
		c.format = f
		c.s.readAs(f, o)
		c.dec, err = f.open(in, head, o, c.s)
		return err
	}
	if c.found {
		if f, err := detectFormat(head); err != nil || f.Name != c.format.Name {
			return fault.Refuse(1, 1, "it is not "+c.format.Name+" as the files before it are: import each format "+
				"by itself")
		}
	}
	size := c.s.info.BlockSize
	next, err := c.format.open(in, head, o, c.s)
	if err != nil {
		return err
	}
	if now := c.s.info.BlockSize; now != size && now != 0 {
		return fault.Refuse(1, 1, "its blocks differ in size from the blocks of the files before it")
	}
	c.s.info.BlockSize = size
	continued := false
	switch d := c.dec.(type) {
	case continuing:
		continued = d.continueWith(next)
	case mapping:
		var n mapping
		if n, continued = next.(mapping); continued {
			d.mapping().rows = n.mapping().rows
		}
	}
	if !continued {
		c.dec, c.before, c.entries = next, c.before+c.entries, 0
	}
	if c.share != nil {
		restart(c.dec)
		c.before = 0
	}
	return nil
}

func (c *fileChain) decode(dst []trace.Entry) ([]trace.Entry, error) {
	n := len(dst)
	for {
		out, err := dst, error(io.EOF)
		if c.share == nil || c.share.begun {
			out, err = c.dec.decode(dst)
		}
		if err != io.EOF {
			c.entries += int64(len(out) - n)
			c.shift(out[n:])
			if c.share != nil {
				c.share.files[c.share.at].Entries += int64(len(out) - n)
			}
			return out, err
		}
		if c.share != nil {
			c.share.begun = true
		}
		if err := c.advance(); err != nil {
			return dst, err
		}
	}
}

// decodePlain implements [plainDecoder].
func (c *fileChain) decodePlain(p *trace.PlainEntries) bool {
	d, ok := c.dec.(plainDecoder)
	if !ok || c.share != nil && !c.share.begun || !d.decodePlain(p) {
		return false
	}
	if c.entries++; c.share != nil {
		c.share.files[c.share.at].Entries++
	}
	return true
}

// shift makes positions of a decoder's own entries those of the source.
func (c *fileChain) shift(entries []trace.Entry) {
	if c.before == 0 {
		return
	}
	for i := range entries {
		old := entries[i].Parents
		if len(old) == 0 {
			continue
		}
		parents := make([]int64, len(old)) // several entries may share them
		for k, p := range old {
			parents[k] = p + c.before
		}
		entries[i].Parents = parents
	}
}

// A continuing decoder goes on with the records of another one of its kind, those
// of the next file of a source. It returns false for another kind.
type continuing interface{ continueWith(next decoder) bool }

// goOn takes the records of the next decoder, if it is one of the same kind.
func goOn[D decoder](next decoder, take func(D)) bool {
	n, ok := next.(D)
	if ok {
		take(n)
	}
	return ok
}

// A mapping decoder takes rows by a mapping, and so can go on with other rows.
type mapping interface{ mapping() *mappedDecoder }

// fileRecords are the records of several files, one file after the other.
type fileRecords struct {
	rest []File
	in   record.Reader // of the current file
	s    *Source       // which closes the current file, and whose errors name it
}

func (f *fileRecords) Next() ([]byte, error) {
	for {
		if f.in == nil {
			if err := f.advance(); err != nil {
				return nil, err
			}
		}
		raw, err := f.in.Next()
		if err != io.EOF {
			return raw, err
		}
		f.in = nil
	}
}

// advance opens the next file; io.EOF after the last.
func (f *fileRecords) advance() error {
	if err := f.s.Close(); err != nil {
		return fault.Broken(1, 1, err)
	}
	if len(f.rest) == 0 {
		return io.EOF
	}
	file := f.rest[0]
	f.rest = f.rest[1:]
	f.s.file = file.Name
	r, err := file.Open()
	if err != nil {
		return fault.Broken(1, 1, err)
	}
	f.s.closer = r
	in, head, err := input.Begin(r)
	if err != nil && len(head) == 0 {
		return fault.Broken(1, 1, err)
	}
	f.in = record.NewJSON(in, head)
	return nil
}

func (f *fileRecords) Place(offset int) (line, col int64) { return f.in.Place(offset) }

func (f *fileRecords) Last() bool { return f.in.Last() }
