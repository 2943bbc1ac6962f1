package datasets

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"
	"strings"
)

const (
	noteNoBlockSize = "records whose block ids were not used, since the first records do not tell the size of a block: log prefix_block_size beside prefix_block_hashes"
	noteBlocksOver  = "records with both text and block ids, of which the ids were used"
)

// blocks makes "blocks" of the ids that were logged with a call. They are
// numbers, negative ones included, or hexadecimal, of which 64 bits are kept. A
// source that hashes full blocks only gets an id of its own for the rest, which
// no other prompt shares.
func (l *litellmView) blocks(v viewRow, tell *notes) error {
	var list []any
	var where string
	for _, where = range []string{"metadata", "metadata.spend_logs_metadata", "metadata.requester_metadata"} {
		found, _ := v.value(where + ".prefix_block_hashes")
		if list, _ = found.([]any); list != nil {
			break
		}
	}
	if list == nil {
		if !hasAny(v, "text.messages", "text.prompt") {
			tell.count(noteNoPrefix)
		}
		return nil
	}
	size := l.size(v, where)
	if size == 0 {
		tell.count(noteNoBlockSize)
		return nil
	}
	if size != l.blockSize {
		return badAt(v, where, "the size of its blocks is not that of the records before it")
	}
	ids := make([]any, 0, len(list)+1)
	var last uint64
	for _, id := range list {
		n, ok := blockID(id)
		if !ok {
			return badAt(v, where, "its block ids are neither whole numbers nor hexadecimal")
		}
		last = n
		ids = append(ids, number(strconv.FormatUint(n, 10)))
	}
	length, _ := v.value("prompt_tokens")
	if n, ok := countOf(plain(length)); ok && int(n)/size == len(ids) && int(n)%size > 0 {
		ids = append(ids, number(strconv.FormatUint(l.rest(last), 10)))
	}
	v.put("blocks", ids, "metadata")
	if hasAny(v, "text.messages", "text.prompt") {
		tell.count(noteBlocksOver)
	}
	v.made["text"] = nil
	return nil
}

func hasAny(r row, paths ...string) bool {
	_, _, ok := find(r, paths)
	return ok
}

// size returns the block size that a record tells beside its ids; 0 when the
// first records tell none.
func (l *litellmView) size(v viewRow, where string) int {
	found, _, _ := find(v, []string{where + ".prefix_block_size", where + ".block_size"})
	n, ok := countOf(plain(found))
	if ok && n > 0 && l.blockSize == 0 && !l.settled {
		l.blockSize = int(n)
	}
	if !ok || n == 0 || l.blockSize == 0 {
		return 0
	}
	return int(n)
}

// rest is an id for the partial block behind the last of the current record, whose
// number in the source no other record has.
func (l *litellmView) rest(last uint64) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, last), uint64(l.s.info.Records+l.s.info.Bad)))
	return h.Sum64()
}

func blockID(v any) (uint64, bool) {
	switch v := v.(type) {
	case number:
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return n, true
		}
		n, err := strconv.ParseInt(string(v), 10, 64)
		return uint64(n), err == nil
	case string:
		hex := strings.TrimPrefix(v, "0x")
		for _, c := range []byte(hex) {
			if !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
				return 0, false
			}
		}
		n, err := strconv.ParseUint(hex[:min(len(hex), 16)], 16, 64)
		return n, err == nil
	}
	return 0, false
}
