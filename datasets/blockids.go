package datasets

import (
	"fmt"
	"slices"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

// blocksOf is how many blocks hold n tokens, the last of them perhaps in part.
func blocksOf(n int32, size int) int { return (int(n) + size - 1) / size }

const wrongBlocks = "its block ids are not one for each full block of the input length and one for the rest " +
	"(--source-block-size tells another size, where a format leaves it open)"

// A freshIDs yields ids for blocks that no other request holds, from the upper
// half of the 64-bit numbers. Sources number theirs from 0, so that they do not
// get there; one that does is at fault.
type freshIDs uint64

const firstFresh = 1 << 63

const reservedID = "blocks: want ids below 9223372036854775808, since some are added to them"

func (f *freshIDs) next() uint64 {
	*f++
	return firstFresh + uint64(*f) - 1
}

// reserved reports whether a source uses ids that are kept for fresh ones.
func reserved(ids []uint64) bool {
	return slices.ContainsFunc(ids, func(id uint64) bool { return id >= firstFresh })
}

// A blockIDs gives out ids for blocks, from 0 up, where a source tells its blocks by lengths or
// its ids are those of a part of it.
type blockIDs uint64

func (n *blockIDs) next() uint64 {
	*n++
	return uint64(*n) - 1
}

// fill adds new ids to a list until it has so many.
func (n *blockIDs) fill(ids []uint64, size int) []uint64 {
	for len(ids) < size {
		ids = append(ids, n.next())
	}
	return ids
}

// A restIDs says whether a source has an id for the rest of a prompt, behind its full blocks.
type restIDs int

const (
	unknownRest restIDs = iota
	withRest
	withoutRest
)

// completeBlocks gives the rest of a prompt a block that nothing shares, where the ids of a source
// cover full blocks only. The first prompt with a rest tells whether they do: a source that has it
// either way contradicts itself, and what differs from the first is at fault.
func (d *mappedDecoder) completeBlocks(e *trace.Entry) (why string) {
	if e.SourceBlocks == nil || e.InputTokens == nil || d.blockSize < 1 {
		return ""
	}
	n, found := blocksOf(*e.InputTokens, d.blockSize), unknownRest
	switch {
	case int(*e.InputTokens)%d.blockSize == 0:
		return ""
	case len(e.SourceBlocks) == n:
		found = withRest
	case len(e.SourceBlocks) == n-1:
		found = withoutRest
	}
	if d.s.rest == unknownRest {
		d.s.rest = found
	}
	if found != d.s.rest {
		return wrongBlocks
	}
	if found == withoutRest {
		e.SourceBlocks = append(e.SourceBlocks[:n-1:n-1], d.s.fresh.next())
		d.s.notes.Count(noteFullOnly)
	}
	return ""
}

const noteFullOnly = "requests whose ids cover full blocks only: the rest of each prompt is taken to be shared " +
	"with nothing"

// sourceIDs watches the ids that a source gives, whichever format it has, for those that cannot be of
// content: a hash of the begin of a block is another one than that of the whole, and prompts that
// differ differ in their blocks.
//
// It takes one pass, and memory for up to [watchedIDs] ids: of more, those whose hash begins with
// zeros, which are a fair sample.
type sourceIDs struct {
	forms map[uint64]idForm
	shift uint

	// Of ids by position. first has the id of each full block by its place, until a place has two.
	first    []uint64
	several  bool
	requests int64
	fell     int64 // requests with fewer full blocks than the one before, and some
	before   int
	full     map[int]bool   // how many full blocks requests have, of the first ones
	lengths  map[int32]bool // and how many tokens
}

const (
	watchedIDs    = 1 << 16
	watchedLength = 4096 // requests of which lengths are told apart
)

// An idForm is what an id stood for.
type idForm struct {
	whole bool  // a full block
	mixed bool  // and another time a block of other tokens
	rest  int32 // tokens of the last block of a prompt, if not a full one
	times int64 // that it was such a block
}

// see takes the next request of a source with blocks of so many tokens.
func (s *sourceIDs) see(ids []uint64, input int32, size int) {
	if len(ids) == 0 || size < 1 || len(ids) != blocksOf(input, size) {
		return
	}
	if s.forms == nil {
		s.forms, s.full, s.lengths = map[uint64]idForm{}, map[int]bool{}, map[int32]bool{}
	}
	full := int(input) / size
	for i, id := range ids {
		if !s.watched(id) {
			continue
		}
		f, known := s.forms[id]
		before := f
		if i < full {
			f.mixed, f.whole = f.mixed || f.times > 0, true
		} else {
			rest := input - int32(full*size)
			f.mixed = f.mixed || f.whole || f.times > 0 && f.rest != rest
			f.rest, f.times = rest, f.times+1
		}
		if f != before || !known {
			s.forms[id] = f
		}
	}
	for len(s.forms) > watchedIDs {
		s.shift++
		for id := range s.forms {
			if !s.watched(id) {
				delete(s.forms, id)
			}
		}
	}
	s.seePlaces(ids[:full], input)
}

// watched tells whether an id is in the sample.
func (s *sourceIDs) watched(id uint64) bool {
	const golden = 0x9e3779b97f4a7c15
	return s.shift == 0 || id*golden>>(64-s.shift) == 0
}

// seePlaces looks whether ids are the places of the blocks.
func (s *sourceIDs) seePlaces(ids []uint64, input int32) {
	if s.several {
		return
	}
	for i, id := range ids {
		if i == len(s.first) {
			s.first = append(s.first, id)
		}
		if s.several = s.first[i] != id; s.several {
			return
		}
	}
	s.requests++
	full := len(ids)
	if full > 0 && full < s.before {
		s.fell++
	}
	if s.before = full; s.requests <= watchedLength {
		s.full[full], s.lengths[input] = true, true
	}
}

// How prompts of one place each differ from one conversation that grows, and from many who send the
// same one: they are shorter than the one before again and again, and hardly two are as long.
const (
	leastPlaced   = 20  // requests
	leastFell     = 0.1 // of the requests
	leastFull     = 5   // numbers of full blocks
	leastDistinct = 0.6 // lengths, of the first requests
)

// refuse is an error for ids that are places of blocks, by which all prompts would begin alike.
func (s *sourceIDs) refuse() error {
	watched := float64(min(s.requests, watchedLength))
	if s.several || s.requests < leastPlaced || float64(s.fell) < leastFell*float64(s.requests) ||
		len(s.full) < leastFull ||
		float64(len(s.lengths)) < leastDistinct*watched {
		return nil
	}
	return fault.Usage("its block ids number places, not contents: the n-th block has the same id in all "+
		"of %d requests, so that each prompt would be the begin of every longer one; "+
		"give each block the hash of it and of all before it, or leave the ids out: --map with the fields of the "+
		"times and lengths", s.requests)
}

// notes say what was found.
func (s *sourceIDs) notes() []string {
	mixed := int64(0)
	for _, f := range s.forms {
		if f.mixed {
			mixed += f.times
		}
	}
	if mixed == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %d", noteMixed, mixed<<s.shift)}
}

const noteMixed = "requests that end within a block whose id stands for other tokens elsewhere, such as a full " +
	"block: no hash of contents does, and each such end is taken as a block of its own"

// idBlock is the size of the blocks that are made of token ids, in tokens.
const idBlock = 16

// blocksOfIDs are the prefix blocks of a prompt of token ids: two are equal where all tokens up to
// their ends are. They are numbers below [firstFresh].
func blocksOfIDs(ids []uint64, size int) []uint64 {
	blocks := make([]uint64, 0, blocksOf(int32(len(ids)), size))
	hash := uint64(14695981039346656037)
	for i, id := range ids {
		for range 8 {
			hash = (hash ^ id&0xff) * 1099511628211
			id >>= 8
		}
		if (i+1)%size == 0 || i+1 == len(ids) {
			block := hash
			if (i+1)%size != 0 { // a partial block is not the full block that begins like it
				block ^= uint64(size-(i+1)%size) * 0x9e3779b97f4a7c15
			}
			blocks = append(blocks, block&(firstFresh-1))
		}
	}
	return blocks
}
