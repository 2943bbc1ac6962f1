package flags

import (
	"os"
	"strconv"
	"strings"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace/quantity"
)

// shareIndexes hold the number of a process of a Kubernetes Indexed Job, and of a Slurm array.
var shareIndexes = []string{"JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"}

// ParseShare reads --shard: i/n, or /n with i from the environment that an Indexed Job or a
// Slurm array sets. i counts from 0.
func ParseShare(text string) (i, n int, err error) {
	index, of, ok := strings.Cut(text, "/")
	if ok && index == "" {
		for _, name := range shareIndexes {
			if index = os.Getenv(name); index != "" {
				break
			}
		}
		if index == "" {
			return 0, 0, cli.Usagef("--shard %s takes its index from %s, and neither is set: write i/n", text,
				strings.Join(shareIndexes, " or "))
		}
	}
	first, err1 := strconv.ParseUint(index, 10, 31)
	all, err2 := strconv.ParseUint(of, 10, 31)
	if !ok || err1 != nil || err2 != nil || all == 0 || first >= all {
		return 0, 0, cli.Usagef("--shard: %s is no shard: write 0/8 to 7/8 for one of eight", quantity.Quote(text))
	}
	return int(first), int(all), nil
}
