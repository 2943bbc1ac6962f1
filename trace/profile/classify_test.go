package profile_test

import (
	"testing"

	"reprise/trace/profile"
)

// Where two categories would do, the first in their order is given.
func TestClassify(t *testing.T) {
	for _, test := range []struct {
		global, hit, blocks int
		end                 bool
		category            string
		continues           bool
	}{
		{0, 0, 5, false, "cold", false},
		{2, 0, 5, true, "cold", false},
		{2, 1, 5, false, "global", false},
		{2, 2, 2, true, "global", false},
		{0, 5, 5, false, "duplicate", true},
		{2, 5, 5, true, "duplicate", true},
		{2, 3, 5, true, "continuation", true},
		{2, 3, 5, false, "branch", true},
	} {
		category, continues := profile.Classifier{GlobalBlocks: test.global}.Classify(test.hit, test.blocks, test.end)
		if category != test.category || continues != test.continues {
			t.Errorf("%+v is %s, continues %v", test, category, continues)
		}
	}
}
