package trace

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// spilledNumbers are numbers by an index from 0, of which some pages are in memory and the rest in
// a private file. What was not set is 0.
type spilledNumbers struct {
	f     *os.File
	most  int // pages in memory
	pages map[uint64]*numberPage
	ring  []*numberPage // the same, for the choice of the one that makes room
	hand  int
	last  *numberPage // that was used last
}

type numberPage struct {
	at           uint64
	values       [pageNumbers]uint64
	used, change bool
}

const (
	pageNumbers = 4096
	// maxNumber bounds indexes, so that a hostile one does not make a file of exabytes.
	maxNumber = 1 << 38
)

var errNumber = errors.New("it has an id that is too large to be renumbered")

func newSpilledNumbers(dir string, most int) (*spilledNumbers, error) {
	f, err := TempFile(dir)
	if err != nil {
		return nil, err
	}
	return &spilledNumbers{f: f, most: max(most, 2), pages: map[uint64]*numberPage{}}, nil
}

// at is the place of a number. It is good until the next call. Whoever changes it says so by write.
func (n *spilledNumbers) at(i uint64, write bool) (*uint64, error) {
	if i >= maxNumber {
		return nil, errNumber
	}
	p := n.last
	if page := i / pageNumbers; p == nil || p.at != page {
		var err error
		if p, err = n.page(page); err != nil {
			return nil, err
		}
		n.last = p
	}
	p.used, p.change = true, p.change || write
	return &p.values[i%pageNumbers], nil
}

// page brings a page into memory.
func (n *spilledNumbers) page(at uint64) (*numberPage, error) {
	if p := n.pages[at]; p != nil {
		return p, nil
	}
	var p *numberPage
	var buf [8 * pageNumbers]byte
	if len(n.ring) < n.most {
		p = new(numberPage)
		n.ring = append(n.ring, p)
	} else {
		for p = n.ring[n.hand]; p.used; p = n.ring[n.hand] {
			p.used = false
			n.hand = (n.hand + 1) % len(n.ring)
		}
		n.hand = (n.hand + 1) % len(n.ring)
		delete(n.pages, p.at)
		if p.change {
			for k, v := range p.values {
				binary.LittleEndian.PutUint64(buf[8*k:], v)
			}
			if _, err := n.f.WriteAt(buf[:], int64(p.at*8*pageNumbers)); err != nil {
				return nil, err
			}
		}
	}
	got, err := n.f.ReadAt(buf[:], int64(at*8*pageNumbers))
	if err != nil && err != io.EOF {
		return nil, err
	}
	clear(buf[got:])
	*p = numberPage{at: at}
	for k := range p.values {
		p.values[k] = binary.LittleEndian.Uint64(buf[8*k:])
	}
	n.pages[at] = p
	return p, nil
}

// BlockNumbers give dense ids from 0 by first appearance, as [Renumber] does, to any number of
// blocks: those of small ids, and of ids far larger than their number, in memory, and the rest in a private file.
// The zero value has none.
type BlockNumbers struct {
	near Renumber
	most uint64 // ids below it are in memory; 0 is nearBlocks
	rest *spilledNumbers
}

const (
	nearBlocks = 1 << 23 // 64 MiB
	restPages  = 4096    // 128 MiB
)

// ID returns the new id of old. An error is that of the file, or an id beyond 2^38.
func (b *BlockNumbers) ID(old uint64) (uint64, error) {
	b.most = cmp.Or(b.most, nearBlocks)
	if old < b.most || b.near.isSame(old) || b.near.isFar(old) {
		return b.near.ID(old), nil
	}
	if b.rest == nil {
		var err error
		if b.rest, err = newSpilledNumbers("", restPages); err != nil {
			return 0, err
		}
	}
	at, err := b.rest.at(old, true)
	if err != nil {
		return 0, err
	}
	if *at == 0 {
		id, ok := b.near.far[old] // it was far when there were fewer
		if !ok {
			id = b.near.next
			b.near.next++
		}
		*at = id + 1
	}
	return *at - 1, nil
}

// Len is how many ids were given.
func (b *BlockNumbers) Len() int { return b.near.Len() }

// Close drops the file.
func (b *BlockNumbers) Close() error {
	if b.rest == nil {
		return nil
	}
	return b.rest.close()
}

func (n *spilledNumbers) close() error { return n.f.Close() }
