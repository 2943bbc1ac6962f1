package profile

// recentMarks are marks of blocks by their ids. Those of blocks that no later row can have are dropped.
type recentMarks struct {
	pages []*markPage // by id, over pageBlocks; nil where none has a mark
	held  int         // pages that are not nil
	most  int         // of these, before some are dropped
}

type markPage [pageBlocks]uint32

const (
	pageBlocks = 128
	leastPages = 1 << 12 // 2 MiB
)

// find appends the marks of blocks to a path.
func (m *recentMarks) find(path []*uint32, blocks []uint64) []*uint32 {
	var page *markPage
	for i, id := range blocks {
		if i == 0 || id/pageBlocks != blocks[i-1]/pageBlocks {
			page = m.page(id / pageBlocks)
		}
		path = append(path, &page[id%pageBlocks])
	}
	return path
}

// page is that of some ids, a new one where there is none.
func (m *recentMarks) page(at uint64) *markPage {
	if n := int(at) + 1 - len(m.pages); n > 0 {
		m.pages = append(m.pages, make([]*markPage, n)...)
	}
	if m.pages[at] == nil {
		m.pages[at] = new(markPage)
		m.held++
	}
	return m.pages[at]
}

// Forget may drop what is known of blocks that no later row can have, between two rows. live calls its
// argument with lists of all those that later rows can have; it is
// called when there are twice as many marks as were left the last time. It is for ids that
// count up, and does nothing for others.
func (c *Categorizer) Forget(live func(each func(blocks []uint64))) {
	m := c.blocks.recent
	if m == nil || m.held < m.most {
		return
	}
	needed := map[uint64]bool{}
	live(func(blocks []uint64) {
		for i, id := range blocks {
			if i == 0 || id/pageBlocks != blocks[i-1]/pageBlocks {
				needed[id/pageBlocks] = true
			}
		}
	})
	for at, page := range m.pages {
		if page != nil && !needed[uint64(at)] {
			for _, mark := range page {
				if mark >= severalUsers {
					c.users.free = append(c.users.free, mark-severalUsers)
				}
			}
			m.pages[at] = nil
			m.held--
		}
	}
	m.most = max(leastPages, 2*m.held)
}
