package datasets

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"reprise/datasets/internal/fault"
	"reprise/trace/objectstore"
)

// A Share is one of several equal shares of a source of several files: a range of its
// files, so that all shares together are the source. It follows from the names and sizes of
// the files, and Index and Of alone.
//
// A source that is read by shares starts from what the beginning of its first files tells,
// such as the unit of the times, as a whole one does. Nothing else crosses from file to file:
// positions count in the file at hand, and a request that goes on from an answer in an
// earlier file (previous_response_id) is read as one whose answer is not in the log. A span
// that files of two shares have is a call in both.
type Share struct {
	Index, Of int // from 0
}

// A ShareFile is a file of a source that is read by shares.
type ShareFile struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	Entries int64  `json:"entries"` // of a share's own, once they were read
}

// ShareFiles returns all files of a source that is read by shares, those of no known format
// left out, and which of them are in this share: [from, to). Their Entries are complete when
// Read has returned io.EOF.
func (s *Source) ShareFiles() (all []ShareFile, from, to int) {
	return s.share.files, s.share.from, s.share.to
}

// Head reads a source that is read by shares from its beginning, whatever the share. It is to be
// closed by itself.
func (s *Source) Head() *Source { return s.share.head }

// A sharedChain is what a [fileChain] has in a share.
type sharedChain struct {
	files    []ShareFile
	from, to int
	at       int  // the file at hand
	begun    bool // the first of the share was asked for
	head     *Source
}

// openShare opens the share of a source of files of one format. It decodes the first record of
// the source for what all shares have to know, and then begins with its own files.
func (s *Source) openShare(files []File, o Options) (err error) {
	c := &fileChain{rest: files, options: o, s: s, found: o.detects()}
	share := &sharedChain{files: make([]ShareFile, len(files))}
	for i, f := range files {
		at, err := objectstore.Stat(f.Name)
		if err != nil || !at.Mode().IsRegular() {
			return fault.Usage("%s is no regular file: only files can be shared among processes", f.Name)
		}
		share.files[i] = ShareFile{Name: f.Name, Size: at.Size()}
	}
	share.from, share.to = o.Share.of(share.files)
	head := &Source{name: s.name, maxBad: 1}
	if share.head, err = head.start(head.openChain(files, o)); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, head.Close())
		}
	}()
	s.dec = c
	if err := c.advance(); err == io.EOF {
		return fault.Refuse(1, 1, "the input is empty")
	} else if err != nil {
		return err
	}
	for {
		out, err := c.decode(nil)
		f, faulty := err.(*fault.Fault)
		if err != nil && (!faulty || f.Stop) && err != io.EOF {
			return err
		}
		if len(out) > 0 || err == io.EOF {
			break
		}
	}
	switch c.dec.(type) {
	case *mappedDecoder, *mooncakeDecoder, *langfuseDecoder: // they go on without what they remember
	case continuing, mapping:
		return fault.Usage("the format %s links records from file to file: import it in one process", c.format.Name)
	}
	if !s.info.HasTimes || s.info.SessionTimes {
		return fault.Usage("%s does not say when requests arrived, and times that are made up depend on all files "+
			"before: import it in one process", c.format.Name)
	}
	if err := s.Close(); err != nil {
		return err
	}
	s.notes, s.spans = s.notes.Once(), knownSpans{} // without the counts of its first records
	c.rest, c.share, c.before, c.entries = files[share.from:share.to], share, 0, 0
	share.at = share.from - 1
	s.share = share
	return nil
}

// of returns which files are in the share: of all ways to cut their list into so many ranges,
// the one whose largest range has the fewest bytes, with ranges filled from the front.
func (h Share) of(files []ShareFile) (from, to int) {
	weight := func(f ShareFile) int64 { return f.Size + 1 } // so that empty files are spread too
	least, most := int64(0), int64(0)
	for _, f := range files {
		least, most = max(least, weight(f)), most+weight(f)
	}
	ranges := func(room int64) (starts []int) {
		left := int64(0)
		for i, f := range files {
			if w := weight(f); i == 0 || w > left {
				starts, left = append(starts, i), room-w
			} else {
				left -= w
			}
		}
		return starts
	}
	for least < most {
		if half := (least + most) / 2; len(ranges(half)) <= h.Of {
			most = half
		} else {
			least = half + 1
		}
	}
	starts := append(ranges(least), len(files))
	if h.Index >= len(starts)-1 {
		return len(files), len(files)
	}
	return starts[h.Index], starts[h.Index+1]
}

// restart makes a decoder forget what it remembers of the files before.
func restart(d decoder) {
	switch d := d.(type) {
	case *mappedDecoder:
		d.entries, d.chains = 0, responseChains{}
	case *mooncakeDecoder:
		restart(d.mapped)
	case *langfuseDecoder:
		restart(d.mappedDecoder)
	}
}

// JoinInfos is what the shares of a source found, each complete, as if they were one. It fails
// where more than maxBad of all records are bad.
func JoinInfos(shares []Info, maxBad float64) (Info, error) {
	var all Info
	var said fault.Notes
	for i, one := range shares {
		if i == 0 {
			all = one
			all.Records, all.Bad, all.FirstBad, all.Fields = 0, 0, nil, nil
		}
		all.HasUsers, all.HasSessions = all.HasUsers || one.HasUsers, all.HasSessions || one.HasSessions
		all.Records, all.Bad = all.Records+one.Records, all.Bad+one.Bad
		all.FirstBad = append(all.FirstBad, one.FirstBad[:min(len(one.FirstBad), firstBad-len(all.FirstBad))]...)
		for _, line := range one.Notes {
			text, n := line, int64(0)
			if at := strings.LastIndex(line, ": "); at >= 0 {
				if count, err := strconv.ParseInt(line[at+2:], 10, 64); err == nil {
					text, n = line[:at], count
				}
			}
			said.Add(text, n)
		}
		all.Fields = all.Fields.join(one.Fields)
	}
	all.Notes = said.Lines()
	name := "the source"
	if len(all.FirstBad) > 0 {
		name = fmt.Sprintf("%s and others", all.FirstBad[0].File)
	}
	s := Source{file: name, info: all}
	return all, s.verdict(maxBad, true)
}

// join adds what another share says of the fields. Dropped ones have no names, so that those
// of the share with the most stand for all.
func (f *Fields) join(other *Fields) *Fields {
	if f == nil || other != nil && other.Dropped > f.Dropped {
		f, other = other, f
	}
	if f != nil && other != nil && other.More {
		more := *f
		more.More = true
		return &more
	}
	return f
}
