package datasets

import (
	"regexp"
	"strconv"
)

// minLogLimit is the least number of characters that is taken for a limit when
// nothing says so: shorter prompts are alike by chance.
const minLogLimit = 16

var maxLogLen = regexp.MustCompile(`\bmax_log_len'?[=:] ?(\d+)`)

// vllmLogLimit tells --max-log-len from the first lines of a log: from the
// server's arguments; from a prompt of as many characters as ids; or from three
// or more different prompts that have the same length, when none is longer. It is
// 0 when nothing was cut.
func vllmLogLimit(head []byte) int {
	alike := map[int]map[string]bool{}
	longest := 0
	for _, raw := range headLines(head) {
		line := ansiColour.ReplaceAllString(string(raw), "")
		e := vllmEventOf(line)
		if m := maxLogLen.FindStringSubmatch(line); m != nil && e.verb == vllmOther {
			n, _ := strconv.Atoi(m[1])
			return n
		}
		if e.verb != vllmReceived && e.verb != vllmDetails {
			continue
		}
		fields := pyFields(e.rest)
		text, _, _ := pyString(fields["prompt"])
		n := len([]rune(text))
		if ids, ok := vllmIDs(fields["prompt_token_ids"]); ok && ids == n && n >= minLogLimit {
			return n
		}
		longest = max(longest, n)
		if alike[n] == nil {
			alike[n] = map[string]bool{}
		}
		alike[n][text] = true
	}
	if longest >= minLogLimit && len(alike[longest]) >= 3 {
		return longest
	}
	return 0
}
