package trace

import (
	"cmp"
	"slices"
)

// tiers are those of Meta.Tier, the strictest first.
var tiers = []string{"raw", "internal", "partner", "public"}

// Stricter is the tier of what was made of two files, each of a tier of its own:
// raw before internal, partner and public. A file that states none, or one that is
// not known here, counts as internal.
func Stricter(a, b string) string {
	if strictness(b) < strictness(a) {
		return b
	}
	if strictness(a) == strictness(b) {
		return cmp.Or(a, b)
	}
	return a
}

func strictness(tier string) int {
	if i := slices.Index(tiers, tier); i >= 0 {
		return i
	}
	return slices.Index(tiers, "internal")
}

// TierNote is what a page, table or the like, named by what, says on its face of
// the tier that it has from its trace. It is empty for what may be published.
func TierNote(what, tier string) string {
	switch tier {
	case "public":
		return ""
	case "partner":
		return "This " + what + " is of tier partner: for a partner under contract, not for publication."
	case "raw":
		return "This " + what + " is of tier raw, made of a trace whose text was kept: not for release."
	case "internal":
		return "This " + what + " is internal: not for release."
	case "":
		return "No tier is stated, so this " + what + " counts as internal: not for release."
	}
	return "Its tier is not known here, so this " + what + " counts as internal: not for release."
}
