package token

// splitGPT2 is the pattern of GPT-2, which r50k_base and p50k_base share:
//
//	's|'t|'re|'ve|'m|'ll|'d
//	 ?\p{L}+
//	 ?\p{N}+
//	 ?[^\s\p{L}\p{N}]+
//	\s+(?!\S)
//	\s+
func splitGPT2(t *classTable, s string, i int) int {
	if n := contraction(s, i); n > 0 && isLower(s[i+1:i+n]) {
		return i + n
	}
	c, n := t.at(s, i)
	if next := i + n; s[i] == ' ' && next < len(s) {
		if d, _ := t.at(s, next); d&space == 0 {
			return t.run(s, next, d&(letter|number|other))
		}
	}
	if c&space == 0 {
		return t.run(s, i, c&(letter|number|other))
	}
	last, end := i, i
	for end < len(s) {
		c, n := t.at(s, end)
		if c&space == 0 {
			break
		}
		last = end
		end += n
	}
	if end < len(s) && last > i {
		return last
	}
	return end
}

// isLower reports whether s is [a-z]*.
func isLower(s string) bool {
	for _, b := range []byte(s) {
		if b < 'a' || b > 'z' {
			return false
		}
	}
	return true
}
