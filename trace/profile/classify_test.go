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
	}{
		{0, 0, 5, false, "cold"},
		{2, 0, 5, true, "cold"},
		{2, 1, 5, false, "global"},
		{2, 2, 2, true, "global"},
		{0, 5, 5, false, "duplicate"},
		{2, 5, 5, true, "duplicate"},
		{2, 3, 5, true, "continuation"},
		{2, 3, 5, false, "branch"},
	} {
		category := profile.Classifier{GlobalBlocks: test.global}.Classify(test.hit, test.blocks, test.end)
		if category != test.category {
			t.Errorf("%+v is %s", test, category)
		}
	}
}
