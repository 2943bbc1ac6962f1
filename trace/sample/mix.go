package sample

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
