package profile

import (
	"math"

	"reprise/trace"
	"reprise/trace/block"
)

// A Categorizer gives requests their reuse category, as [trace.CategoryDefinitions] defines
// them, in one pass over the rows in order of arrival. Only what came before a row decides,
// and of sessions what the row says: a request without one counts as a session of its own.
//
// Only prompts make blocks known. Output blocks are ignored, so that traces with
// and without them are classified by the same rule: either way the hit of the next
// turn of a chat ends at the last full block of the earlier prompt.
//
// Of each block it knows the first two sessions that had it, and whether there were more.
// A session had a block, then, if it is one of these two, or if its last prompt had the block
// as its last full one, or if the block is where one of its prompts last left what others had.
// So the third session on a template is known to have had it when its next turn comes, however
// many use the template meanwhile. What a session had further up is forgotten once three had it.
//
// Memory: 12 bytes for each distinct block (8 for its number, 4 for who had it) while ids are
// about as dense as [trace.Renumber] wants them, some 50 more where they are not; 12 more for a
// block that several sessions had; and 32 for each session. Where ids of blocks count up from 0
// about as they appear, it is 4 bytes for each block that later rows can have, see
// [Categorizer.Forget].
type Categorizer struct {
	size   int
	blocks blockMarks
	rows   int64
	rule   CategoryRule
	users  BlockUsers
}

// NewCategorizer makes one for rows with blocks of blockSize tokens. With counting, ids of blocks
// count up from 0 about as they appear.
func NewCategorizer(blockSize int, counting bool) *Categorizer {
	c := &Categorizer{size: blockSize}
	if counting {
		c.blocks.recent = &recentMarks{most: leastPages}
	}
	return c
}

// Category is that of the next row. A failed row and a row without blocks have none: there is
// nothing to tell it by.
func (c *Categorizer) Category(r *trace.Request) string {
	row := c.rows
	c.rows++
	if !isLoad(r) || len(r.Blocks) == 0 || c.size < 1 {
		return ""
	}
	path := c.blocks.find(r.Blocks)
	who := c.rule.Who(row, r.Session)
	hit := 0 // leading blocks that are known
	for hit < len(path) && *path[hit] != 0 {
		hit++
	}
	var use BlockUse
	if hit > 0 {
		use = c.users.Use(*path[hit-1], who)
	}
	category := c.rule.Category(r, c.size, hit, use)
	for _, m := range path {
		c.users.Add(m, who)
	}
	return category
}

// manySessions is how many other sessions make a template of what they had. With one there were
// no branches: any two prompts that begin alike would. More would only be later to see a
// template, and each document has a second and a third reader.
const manySessions = 2

// BlockUsers says of blocks which sessions had them. What it knows of one is in a mark, which the caller
// keeps: 0 for an unknown block, the only session that had it, or a place in several.
type BlockUsers struct {
	several []blockUsers
	free    []uint32 // places in it
}

type blockUsers struct {
	first [manySessions]uint32 // 0 for none
	more  bool
}

// A BlockUse says who had a block before a row.
type BlockUse struct{ Own, Many bool }

const severalUsers = 1 << 31

// Use says who had a block, for a session.
func (u *BlockUsers) Use(mark, who uint32) (use BlockUse) {
	if mark < severalUsers {
		return BlockUse{Own: mark == who}
	}
	of := &u.several[mark-severalUsers]
	others := 0
	for _, s := range of.first {
		if s == who {
			use.Own = true
		} else if s != 0 {
			others++
		}
	}
	use.Many = others == manySessions || of.more
	return use
}

// Add notes that a session has a block.
func (u *BlockUsers) Add(mark *uint32, who uint32) {
	switch {
	case *mark == 0:
		*mark = who
	case *mark == who:
	case *mark < severalUsers:
		of := blockUsers{first: [manySessions]uint32{*mark, who}}
		if n := len(u.free); n > 0 {
			*mark = u.free[n-1] + severalUsers
			u.several[u.free[n-1]], u.free = of, u.free[:n-1]
			return
		}
		*mark = uint32(len(u.several)) + severalUsers
		u.several = append(u.several, of)
	default:
		of := &u.several[*mark-severalUsers]
		if of.more {
			return
		}
		for i, s := range of.first {
			if s == who {
				return
			}
			if s == 0 {
				of.first[i] = who
				return
			}
		}
		of.more = true
	}
}

// A CategoryRule is the rule, and what it knows of sessions. What is known of the blocks is the
// caller's to find out: a [Categorizer] does so in memory.
type CategoryRule struct {
	ids      trace.Renumber // of sessions
	sessions []sessionPlaces
	at       int // the session of the row at hand, or below 0
}

// sessionPlaces are those of a session by which a next turn shows. Blocks are 0 for none, else
// the id plus one.
type sessionPlaces struct {
	end, left uint64 // the last full block of its last prompt, and the last known one of another's
	who       uint32
}

// Who names the session of the next row: by its first row, and a request without one by its own.
func (c *CategoryRule) Who(row int64, session *int64) uint32 {
	who := uint32(min(row, math.MaxInt32-1)) + 1
	c.at = -1
	if session == nil {
		return who
	}
	c.at = int(c.ids.ID(uint64(*session)))
	if c.at == len(c.sessions) {
		c.sessions = push(c.sessions, sessionPlaces{who: who})
	}
	return c.sessions[c.at].who
}

// Category is that of the row that [CategoryRule.Who] named last, of which hit leading blocks were
// known, and of the last of these, who had it.
func (c *CategoryRule) Category(r *trace.Request, size, hit int, use BlockUse) string {
	last := uint64(0)
	if hit > 0 {
		last = r.Blocks[hit-1] + 1
	}
	own := use.Own
	if c.at >= 0 {
		s := &c.sessions[c.at]
		own = own || last != 0 && (last == s.end || last == s.left)
		if !own && last != 0 {
			s.left = last
		}
		s.end = 0
		if full := min(block.Full(int(r.InputTokens), size), len(r.Blocks)); full > 0 {
			s.end = r.Blocks[full-1] + 1
		}
	}
	switch {
	case hit == 0:
		return trace.Cold
	case hit == len(r.Blocks):
		return trace.Duplicate
	case own:
		return trace.Continuation
	case use.Many:
		return trace.Template
	}
	return trace.Branch
}

// blockMarks are a mark for each block, 0 at first.
type blockMarks struct {
	ids    trace.Renumber
	marks  []uint32
	recent *recentMarks // in place of ids and marks, where some are forgotten
	row    []uint64     // numbers of the blocks of the current row
	path   []*uint32    // and their marks
}

// find returns the marks of blocks, until the next call.
func (m *blockMarks) find(blocks []uint64) []*uint32 {
	m.path = m.path[:0]
	if m.recent != nil {
		m.path = m.recent.find(m.path, blocks)
		return m.path
	}
	m.row = m.row[:0]
	for _, b := range blocks {
		m.row = append(m.row, m.ids.ID(b))
	}
	if n := m.ids.Len() - len(m.marks); n > 0 {
		m.marks = append(m.marks, make([]uint32, n)...)
	}
	for _, id := range m.row {
		m.path = append(m.path, &m.marks[id])
	}
	return m.path
}
