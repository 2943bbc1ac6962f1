package sample

import "testing"

// The first numbers of SplitMix64 from seed 1234567, as its reference implementation
// gives them.
func TestMix64(t *testing.T) {
	state := uint64(1234567)
	for _, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		state += Golden
		if got := Mix64(state); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	}
}
