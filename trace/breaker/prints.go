package breaker

// A print is a place in a sequence of tokens that is chosen by what stands
// there, so that equal stretches of two sequences are chosen alike wherever they
// are.
type print struct {
	pos  int32  // where its shingle begins
	hash uint32 // of the shingle
}

// Shingles and windows of winnowing (Schleimer et al., SIGMOD 2003): one shingle is
// chosen of every window of so many in a row. Equal stretches of at least
// shingle + window - 1 tokens have a print in common.
const (
	shingle, window         = 16, 48 // to find earlier prompts; 63 is just below minRun
	fineShingle, fineWindow = 8, 16  // to compare two prompts
)

// winnow appends the prints of tokens to dst. Each window chooses its shingle of least
// value, and of several the last. The value comes from the first two tokens alone,
// which costs one multiplication a token instead of one for each token of the shingle;
// only chosen shingles are hashed. Hashes depend on the domain.
func winnow(dst []print, tokens []uint32, k, w int, domain uint32) []print {
	shingles := len(tokens) - k + 1
	if shingles < w {
		return dst
	}
	best, least := leastShingle(tokens, 0, w)
	for i := w; ; i++ { // the window that ends with shingle i
		dst = append(dst, print{int32(best), hashTokens(tokens[best:best+k], domain)})
		var v uint32
		for stay := min(best+w, shingles); i < stay; i++ {
			if v = shingleValue(tokens, i); v <= least {
				break
			}
		}
		switch {
		case i == shingles:
			return dst
		case i < best+w:
			best, least = i, v
		default: // the best has left the window
			best, least = leastShingle(tokens, best+1, i+1)
		}
	}
}

func shingleValue(tokens []uint32, i int) uint32 {
	return uint32((uint64(tokens[i])<<32 | uint64(tokens[i+1])) * 0x9e3779b97f4a7c15 >> 32)
}

// leastShingle returns the last shingle of least value in [from, to).
func leastShingle(tokens []uint32, from, to int) (best int, least uint32) {
	best, least = from, shingleValue(tokens, from)
	for i := from + 1; i < to; i++ {
		if v := shingleValue(tokens, i); v <= least {
			best, least = i, v
		}
	}
	return best, least
}

// hashTokens hashes an even number of tokens. The hash need not resist attacks: what a
// print leads to is compared token by token.
func hashTokens(tokens []uint32, seed uint32) uint32 {
	h := uint64(seed) + 0x2545f4914f6cdd1d
	for ; len(tokens) >= 2; tokens = tokens[2:] {
		h = (h ^ (uint64(tokens[0])<<32 | uint64(tokens[1]))) * 0xff51afd7ed558ccd
		h ^= h >> 32
	}
	return uint32(h)
}

// maxPlaces is how many prints are remembered, for 16 bytes each.
const maxPlaces = 1 << 17

// A place is where a print was seen last.
type place struct {
	hash uint32
	node int32 // 0 is none
	gen  uint32
	pos  int32 // in the prompt
}

// places remember prints by their hash. One of another hash may overwrite it.
type places struct {
	slots []place // a power of two of them
	used  int
}

func (s *places) find(hash uint32) *place {
	return &s.slots[hash&uint32(len(s.slots)-1)]
}

func (s *places) put(p place) {
	if 2*s.used >= len(s.slots) && len(s.slots) < maxPlaces {
		old := s.slots
		s.slots, s.used = make([]place, 2*len(old)), 0
		for _, o := range old {
			if o.node != 0 {
				s.put(o)
			}
		}
	}
	slot := s.find(p.hash)
	if slot.node == 0 {
		s.used++
	}
	*slot = p
}
