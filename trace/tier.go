package trace

import (
	"cmp"
	"os"
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

// Modes of files.
const (
	private os.FileMode = 0o600
	shared  os.FileMode = 0o644
)

// Mode is the mode of a file with such metadata. What was made of a source is its
// owner's alone, whatever its tier: a tier is what a file claims, and somebody is
// to look whether it holds before others read it. What was made of a specification,
// or of nothing, is for everybody.
func (m Meta) Mode() os.FileMode {
	if m.Tier == "public" && m.SourceFormat != "spec" {
		return private
	}
	return TierMode(m.Tier)
}

// TierMode is the mode of what was measured with a trace of a tier: its owner's
// alone where that has real records.
func TierMode(tier string) os.FileMode {
	if tier == "" || tier == "public" {
		return shared
	}
	return private
}

// Share lets everybody read a file.
func Share(path string) error { return os.Chmod(path, shared) }

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
