package sample

import "math/bits"

// Golden is 2^64 divided by the golden ratio, made odd: the increment of SplitMix64.
// Keys that count up are added to it, or multiplied by it, before [Mix64].
const Golden = 0x9e3779b97f4a7c15

// Mix64 is the output function of SplitMix64, also called its finaliser (Steele, Lea
// and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014): a
// bijection on 64 bits in which every input bit reaches every output bit. Mix64(0) is
// 0, so that callers add [Golden] or a seed first. Files depend on its bits.
func Mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Key derives from a seed the key of one of the streams of random numbers that it
// drives. What a seed means depends on the number of each stream: a new use takes a
// number that no other has.
func Key(seed, stream uint64) uint64 {
	return Mix64(Mix64(seed+Golden) + stream*Golden)
}

// feistelRounds is twice the four after which a Feistel network with random
// round functions is a strong pseudorandom permutation (Luby and Rackoff,
// 1988): the small domains of small traces need more, and six left a bias of
// some percent in a domain of five.
const feistelRounds = 8

// A Permutation is a keyed bijection of [0, n) onto itself, in constant memory.
//
// It is a balanced Feistel network over the least even number of bits that
// holds n, applied until the value falls into [0, n) again (cycle walking:
// Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
// The network covers 4n values at most, so that takes four steps at most in the
// mean. A shuffled table was rejected: it costs 8 bytes an id.
//
// It need not be cryptographic, and with [Mix64] for its round function it is
// not: the ids that go in are dense pseudonyms already, and the seed is
// published with what comes out, so that others can make the same. It
// ensures that the order of the new ids tells nothing and that seeds differ.
type Permutation struct {
	n    uint64
	half uint   // bits in each half of the network
	mask uint64 // of one half
	keys [feistelRounds]uint64
}

// NewPermutation makes the permutation of [0, n) that key selects.
func NewPermutation(key, n uint64) Permutation {
	half := uint(1)
	if n > 4 {
		half = uint(bits.Len64(n-1)+1) / 2
	}
	p := Permutation{n: n, half: half, mask: 1<<half - 1}
	for i := range p.keys {
		key += Golden
		p.keys[i] = Mix64(key)
	}
	return p
}

// Len returns n.
func (p *Permutation) Len() uint64 { return p.n }

// At returns the image of x, which must be below n.
func (p *Permutation) At(x uint64) uint64 {
	for {
		l, r := x>>p.half, x&p.mask
		for _, k := range p.keys {
			l, r = r, l^Mix64(r^k)>>(64-p.half)
		}
		if x = l<<p.half | r; x < p.n {
			return x
		}
	}
}
