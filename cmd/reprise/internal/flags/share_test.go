package flags

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseShare(t *testing.T) {
	for _, c := range []struct{ given, pod, task, want string }{
		{"0/1", "", "", "0/1"}, {"3/16", "5", "6", "3/16"}, {"/16", "5", "6", "5/16"}, {"/16", "", "6", "6/16"},
		{"/16", "", "", "neither is set"}, {"16/16", "", "", "is no shard"}, {"-1/4", "", "", "is no shard"}, {"/16", "16", "", "is no shard"},
		{"0/0", "", "", "is no shard"}, {"1/x", "", "", "is no shard"}, {"4", "1", "", "is no shard"}, {"1/2/3", "", "", "is no shard"}, {"/4", "x", "", "is no shard"}, {"", "1", "", "is no shard"},
	} {
		t.Setenv(shareIndexes[0], c.pod)
		t.Setenv(shareIndexes[1], c.task)
		got := ""
		if i, n, err := ParseShare(c.given); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("%d/%d", i, n)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("--shard %q with %q and %q: %s, want %s", c.given, c.pod, c.task, got, c.want)
		}
	}
}
