package replay

import (
	"errors"
	"io"
	"math"
	"slices"

	"reprise/replay/result"
	"reprise/trace"
)

// Trees are the session trees of a workload: rows of one session, and rows that parents
// join to it, with all their forks and joins. A row with neither is a tree of one. Trees
// stand in the order of their first rows.
//
// The rows are kept in a private file, from which each tree is read when it starts. In
// memory they take 24 bytes for each row, and while they are read 16 bytes for each block
// where plays are to have blocks of their own.
type Trees struct {
	shelf  *trace.Shelf
	begins []uint32 // the rows of tree i are rows[begins[i]:begins[i+1]]
	rows   []uint32 // of the workload, tree after tree, each in the order of the workload
	size   int      // tokens in a block; 0 is without blocks
	failed []uint32 // rows that failed in the source
	salt   uint64   // one more than the greatest block id
	shift  int64    // the tree that is played first
	global map[uint64]bool

	share result.Share // that is played; the fields above but salt and global are of its trees
	whole int64        // trees of the workload
}

var errManyRows = errors.New("replay: a load of sessions takes less than 2^32 rows")

// ReadTrees reads the rows of a workload, in blocks of blockSize tokens, and keeps them in a
// private file in dir, or in os.TempDir when it is empty. With salt it also finds the full
// blocks that more than half of the trees have, two at least: these stay what they are
// when a tree is played again.
func ReadTrees(rows trace.Reader[trace.Request], blockSize int, salt bool, dir string) (*Trees, error) {
	shelf, err := trace.NewShelf(dir)
	if err != nil {
		return nil, err
	}
	t := &Trees{shelf: shelf, size: blockSize}
	if err = t.read(rows); err == nil && salt {
		err = t.findGlobal()
	}
	if err != nil {
		return nil, errors.Join(err, shelf.Close())
	}
	return t, nil
}

// Close drops the rows.
func (t *Trees) Close() error { return t.shelf.Close() }

// Begin has tree k played first, then those after it, and those before it last.
func (t *Trees) Begin(k int64) { t.shift = k % max(t.Len(), 1) }

// Shift is the tree that is played first, counted from 0.
func (t *Trees) Shift() int64 {
	if t == nil {
		return 0
	}
	return t.shift
}

// Len is the number of trees.
func (t *Trees) Len() int64 { return int64(len(t.begins) - 1) }

// Whole is the number of trees of the workload, those of other shares included.
func (t *Trees) Whole() int64 { return t.whole }

// Rows is the number of rows.
func (t *Trees) Rows() int64 { return int64(len(t.rows)) }

// Blocks is what block ids rise by with each play that has blocks of its own.
func (t *Trees) Blocks() uint64 { return t.salt }

// Deal keeps the trees of a share of the load: every Of-th in their order. What prompts are
// made of, and the numbers by which plays are told apart, stay those of the whole.
func (t *Trees) Deal(share result.Share) {
	t.share = share
	begins, rows := []uint32{0}, []uint32{}
	for k := range t.Len() {
		if share.Has(k) {
			rows = append(rows, t.rows[t.begins[k]:t.begins[k+1]]...)
			begins = append(begins, uint32(len(rows)))
		}
	}
	kept := slices.Sorted(slices.Values(rows))
	t.failed = slices.DeleteFunc(t.failed, func(row uint32) bool {
		_, mine := slices.BinarySearch(kept, row)
		return !mine
	})
	t.begins, t.rows = begins, rows
}

// wholeNumber is the number of a tree over all plays in the whole load.
func (t *Trees) wholeNumber(number int64) int64 {
	n := t.Len()
	return number/n*t.whole + t.share.Number(number%n)
}

// MaxPlays is how often each tree can be played with blocks of its own, by a constant of
// package result, where prompts can tell so many blocks apart; 1 at least.
func (t *Trees) MaxPlays(blocks uint64, recycle string) int64 {
	each := t.salt
	if recycle == result.RecycleApart {
		each *= uint64(max(t.whole, 1))
	}
	return int64(min(max(blocks/each, 1), math.MaxInt32))
}

// read keeps the rows and groups them.
func (t *Trees) read(rows trace.Reader[trace.Request]) error {
	var groups trace.Groups
	batch, n := make([]trace.Request, 128), int64(0)
	for {
		got, err := rows.Read(batch)
		for i := range batch[:got] {
			r := &batch[i]
			// Those that come after it are not waited for.
			r.Parents = slices.DeleteFunc(r.Parents, func(p int64) bool { return p < 0 || p >= n })
			groups.Add(n, r.Session, r.Parents)
			if r.Status == trace.StatusFailed {
				t.failed = append(t.failed, uint32(n))
			}
			for _, ids := range [][]uint64{r.Blocks, r.OutputBlocks} {
				for _, id := range ids {
					t.salt = max(t.salt, id+1)
				}
			}
			if n++; n >= math.MaxUint32 {
				return errManyRows
			}
		}
		if _, werr := t.shelf.Write(batch[:got]); werr != nil {
			return werr
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	t.salt = max(t.salt, 1)
	t.group(&groups, n)
	return nil
}

// group puts the rows of each tree together.
func (t *Trees) group(groups *trace.Groups, n int64) {
	tree := make([]uint32, n) // of each row
	trees := uint32(0)
	for i := range n {
		if first := groups.First(i); first == i {
			tree[i] = trees
			trees++
		} else {
			tree[i] = tree[first]
		}
	}
	t.begins, t.rows = make([]uint32, trees+1), make([]uint32, n)
	for _, k := range tree {
		t.begins[k+1]++
	}
	for k := range trees {
		t.begins[k+1] += t.begins[k]
	}
	t.whole = int64(trees)
	next := slices.Clone(t.begins)
	for i, k := range tree {
		t.rows[next[k]] = uint32(i)
		next[k]++
	}
}

// findGlobal finds the full blocks that more than half of the trees have.
func (t *Trees) findGlobal() error {
	type seen struct{ trees, last uint32 }
	var ids trace.Renumber
	var blocks []seen
	var row trace.Request
	carried := map[uint64]uint32{} // block to how many trees, of those that more than one has
	for k := range uint32(t.Len()) {
		for _, i := range t.rows[t.begins[k]:t.begins[k+1]] {
			if err := t.shelf.Row(int64(i), &row); err != nil {
				return err
			}
			for _, id := range row.Blocks[:t.full(&row)] {
				n := int(ids.ID(id))
				if n == len(blocks) {
					blocks = append(blocks, seen{1, k})
				} else if b := &blocks[n]; b.last != k {
					b.trees, b.last = b.trees+1, k
					carried[id] = b.trees
				}
			}
		}
	}
	t.global = map[uint64]bool{}
	for id, trees := range carried {
		if 2*int64(trees) > t.Len() {
			t.global[id] = true
		}
	}
	return nil
}

// full is how many blocks of a row's prompt are full.
func (t *Trees) full(r *trace.Request) int {
	if t.size == 0 {
		return 0
	}
	return min(int(r.InputTokens)/t.size, len(r.Blocks))
}

// Rows have ids over all plays: those of tree 0 in the order of the workload, then those of tree
// 1, and behind the last tree those of tree 0 again, of the next play. Trees are numbered in the
// order in which they are played, which begins with tree shift.

// rowOf is the row of the workload, and the play of its tree, of an id.
func (t *Trees) rowOf(id int64) (row int64, play int32) {
	n := t.Rows()
	return int64(t.rows[id%n]), int32(id / n)
}

// treeOf is the number of a tree, counted over all plays, and the index in it, of an id.
func (t *Trees) treeOf(id int64) (number int64, index int) {
	n := t.Rows()
	at := uint32(id % n)
	k, found := slices.BinarySearch(t.begins, at)
	if !found {
		k--
	}
	number = (int64(k) - t.shift + t.Len()) % t.Len()
	return id/n*t.Len() + number, int(at - t.begins[k])
}

// firstID is the id of the first row of a tree by its number over all plays, and rows are
// those of the tree.
func (t *Trees) firstID(number int64) (id int64, rows []uint32) {
	k := (number + t.shift) % t.Len()
	return number/t.Len()*t.Rows() + int64(t.begins[k]), t.rows[t.begins[k]:t.begins[k+1]]
}

// row reads a row as it is sent: with the parents' ids, and with the blocks that its play
// has, by a constant of package result.
func (t *Trees) row(tree *liveTree, i int, recycle string) (*trace.Request, error) {
	row := new(trace.Request)
	_, rows := t.firstID(tree.number)
	if err := t.shelf.Row(int64(rows[i]), row); err != nil {
		return nil, err
	}
	row.Parents = row.Parents[:0]
	for _, p := range tree.rows[i].parents {
		row.Parents = append(row.Parents, tree.first+int64(p))
	}
	by := uint64(0)
	switch recycle {
	case result.RecycleSalt:
		by = uint64(tree.number/t.Len()) * t.salt
	case result.RecycleApart:
		by = uint64(t.wholeNumber(tree.number)) * t.salt
	}
	for _, ids := range [][]uint64{row.Blocks, row.OutputBlocks} {
		for i, id := range ids {
			if recycle == result.RecycleApart || !t.global[id] {
				ids[i] += by
			}
		}
	}
	return row, nil
}
