package datasets

import (
	"bufio"
	"errors"
	"io"

	"reprise/trace"
)

// A chain decodes files of one format one after the other. The decoder of the
// first file goes on with the inputs of the others, and so knows all entries
// before: their positions, sessions and the unit of their times.
type chain struct {
	rest    []File
	options Options
	format  Format
	s       *Source
	dec     decoder
	found   bool  // format was found in a file, and is not told
	entries int64 // of dec so far
	before  int64 // of decoders before it, which it does not know of
}

const noteEmpty = "files that are empty"

// chain begins with the first file that is not empty.
func (s *Source) chain(files []File, o Options) error {
	c := &chain{rest: files, options: o, s: s, found: o.Format == "" && o.Map == nil}
	s.dec = c
	if err := c.advance(); err != io.EOF {
		return err
	}
	return refuse(1, 1, "the input is empty")
}

// advance opens the next file that is not empty; io.EOF behind the last.
func (c *chain) advance() error {
	for len(c.rest) > 0 {
		file := c.rest[0]
		c.rest = c.rest[1:]
		if err := c.s.Close(); err != nil {
			return err
		}
		c.s.file = file.Name
		r, err := file.Open()
		if err != nil {
			return err // it names the file
		}
		c.s.closer = r
		in, head, err := begin(r)
		if err != nil && len(head) == 0 {
			return broken(1, 1, err)
		} // else what there is comes first, and the error at its place
		if len(head) == 0 && (c.dec != nil || len(c.rest) > 0) {
			c.s.notes.count(noteEmpty)
			continue
		}
		opened := c.open(in, head)
		if opened != nil && err != nil {
			return broken(1, 1, err) // it is cut off within what the format is told by
		}
		return opened
	}
	if err := c.s.Close(); err != nil {
		return err
	}
	return io.EOF
}

// open begins to decode a file.
func (c *chain) open(in *bufio.Reader, head []byte) error {
	o := c.options
	if c.dec == nil {
		f, err := o.format(head)
		if err != nil {
			return err
		}
		if f.open == nil {
			return refuse(1, 1, f.Name+" is made of several files: give their directory")
		}
		c.format = f
		c.s.readAs(f, o)
		c.dec, err = f.open(in, head, o, c.s)
		return err
	}
	if c.found {
		if f, err := Detect(head); err != nil || f.Name != c.format.Name {
			return refuse(1, 1, "it is not "+c.format.Name+" as the files before it are: import each format by itself")
		}
	}
	size := c.s.info.BlockSize
	next, err := c.format.open(in, head, o, c.s)
	if err != nil {
		return err
	}
	if now := c.s.info.BlockSize; now != size && now != 0 {
		return refuse(1, 1, "its blocks are of another size than those of the files before it")
	}
	c.s.info.BlockSize = size
	if !goOn(c.dec, next) {
		c.dec, c.before, c.entries = next, c.before+c.entries, 0
	}
	return nil
}

func (c *chain) decode(dst []trace.Entry) ([]trace.Entry, error) {
	n := len(dst)
	for {
		out, err := c.dec.decode(dst)
		if err != io.EOF {
			c.entries += int64(len(out) - n)
			c.shift(out[n:])
			return out, err
		}
		if err := c.advance(); err != nil {
			return dst, err
		}
	}
}

// shift makes positions of a decoder's own entries those of the source.
func (c *chain) shift(entries []trace.Entry) {
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

// goOn makes a decoder go on with the input of another of its kind, if it can.
func goOn(dec, next decoder) bool {
	switch d := dec.(type) {
	case *mooncakeDecoder:
		n, ok := next.(*mooncakeDecoder)
		if ok {
			d.lines, d.mapped.rows = n.lines, n.mapped.rows
		}
		return ok
	case *shareGPTDecoder:
		n, ok := next.(*shareGPTDecoder)
		if ok {
			d.in = n.in
		}
		return ok
	case continuing:
		return d.goOn(next)
	case mapping:
		n, ok := next.(mapping)
		if ok {
			d.mapping().rows = n.mapping().rows
		}
		return ok
	}
	return false
}

// mapping is a decoder that takes rows by a mapping.
type mapping interface{ mapping() *mappedDecoder }

func (d *mappedDecoder) mapping() *mappedDecoder { return d }

// Close closes the file that is being read, if OpenFiles opened it. It need not
// be called at the end of the source.
func (s *Source) Close() error {
	if s.closer == nil {
		return nil
	}
	err := s.closer.Close()
	s.closer = nil
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // the reading has said so
	}
	return err
}
