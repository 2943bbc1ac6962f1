package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reprise/replay"
)

// noteOdd says which answers were odd, though they were sound.
func noteOdd(cmd *cobra.Command, o replay.Odd) {
	var says []string
	for _, c := range []struct {
		n    int64
		what string
	}{
		{o.RetryAfter, "errors with Retry-After, which is not followed"},
		{o.NoDone, "without [DONE]"},
		{o.DoneAgain, "with [DONE] twice"},
		{o.NoFinish, "without a finish reason"},
		{o.KeepAlives, "with keep-alives"},
		{o.Malformed, "with events that are no JSON object"},
		{o.Choices, "with several choices"},
		{o.NoUsage, "without usage"},
		{o.Uncounted, "with more or fewer tokens than events, so that gaps are not between tokens"},
	} {
		if c.n > 0 {
			says = append(says, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if len(says) > 0 {
		notef(cmd, "answers that were odd: %s", strings.Join(says, "; "))
	}
}
