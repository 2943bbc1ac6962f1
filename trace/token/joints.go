package token

import "unicode/utf8"

// Joints say where a text of SentencePiece's kind can be cut although nothing splits it: between two characters that stand
// next to each other in no token that merging makes. No merge ever reaches across such a place, so the pieces encode to what
// the whole would, and short pieces are found in the vocabulary or the cache. In practice a text is cut before almost every
// word, and between most words and their punctuation.
//
// All characters beyond ASCII count as one, and are never cut apart.
type joints [utf8.RuneSelf + 1][utf8.RuneSelf + 1]bool

// newJoints starts with no joint but those between bytes of characters beyond ASCII.
func newJoints() *joints {
	j := new(joints)
	j[utf8.RuneSelf][utf8.RuneSelf] = true
	return j
}

func jointOf(b byte) int { return min(int(b), utf8.RuneSelf) }

// add takes note of a merge of two texts.
func (j *joints) add(left, right string) {
	j[jointOf(left[len(left)-1])][jointOf(right[0])] = true
}

// cutBeforeSpaces has every space begin a piece, as a splitting Metaspace does.
func (j *joints) cutBeforeSpaces() {
	for i := range j {
		j[i][' '] = false
	}
}

// split is a [splitter].
func (j *joints) split(_ *classTable, s string, i int) int {
	left := jointOf(s[i])
	for i++; i < len(s); i++ {
		right := jointOf(s[i])
		if !j[left][right] {
			break
		}
		left = right
	}
	return i
}
