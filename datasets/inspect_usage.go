package datasets

import (
	"slices"
	"strings"

	"reprise/datasets/internal/row"
)

// A countRole is what a count of a request counts, as far as its name tells.
type countRole int

const (
	otherCount   countRole = iota
	plainInput             // of the prompt
	cacheRead              // of the prompt, read from a cache
	cacheWritten           // of the prompt, written to a cache
	plainOutput
	totalCount
)

// countRoleOf tells the role of a field by its name. A count of input that was written to a
// cache is told by the words around: Cursor has "Input (w/ Cache Write)" and "Input (w/o Cache
// Write)".
func countRoleOf(c candidate) countRole {
	if !c.is(wholeType) {
		return otherCount
	}
	w := c.words
	cache := share(w, wordsOf("cache cached"))
	without := share(w, wordsOf("without non not uncached miss misses")) ||
		strings.Contains(strings.Join(w, " "), "w o cache")
	switch {
	case share(w, wordsOf("cost price usd cents time ms latency audio image reasoning")):
		return otherCount
	case cache && !without && share(w, wordsOf("write written creation created")):
		return cacheWritten
	case cache && !without && share(w, wordsOf("read reads hit hits cached")):
		return cacheRead
	case share(w, wordsOf("total")) && share(w, countWords):
		return totalCount
	case share(w, answerWords) && share(w, countWords):
		return plainOutput
	case share(w, promptWords) && (share(w, countWords) || cache || without):
		return plainInput
	case without && share(w, countWords):
		return plainInput
	}
	return otherCount
}

// proposeSum proposes the sum of the counts that a prompt is split into, where the cached tokens
// stand beside the others: Anthropic's names say so, a name that says that the input leaves them
// out, more cached tokens than input, or a total that only the sum of all explains. It reports
// whether it did.
func (i *Inspection) proposeSum(all []candidate, taken map[string]bool) bool {
	of := map[string]map[countRole][]candidate{} // by what the fields stand in
	for _, c := range all {
		if strings.Contains(c.field.Path, row.ListMembers) {
			continue
		}
		in := ""
		if !slices.Contains(i.columns, c.field.Path) {
			in = c.field.Path[:max(strings.LastIndexByte(c.field.Path, '.'), 0)]
		}
		if of[in] == nil {
			of[in] = map[countRole][]candidate{}
		}
		role := countRoleOf(c)
		of[in][role] = append(of[in][role], c)
	}

	for _, c := range all { // in the order of the fields
		in := ""
		if !slices.Contains(i.columns, c.field.Path) {
			in = c.field.Path[:max(strings.LastIndexByte(c.field.Path, '.'), 0)]
		}
		roles := of[in]
		if len(roles[plainInput]) != 1 || len(roles[cacheRead]) > 1 ||
			len(roles[cacheRead])+len(roles[cacheWritten]) == 0 || !standsBeside(roles) {
			continue
		}
		var paths []string
		for _, role := range []countRole{plainInput, cacheWritten, cacheRead} {
			for _, part := range roles[role] {
				paths = append(paths, part.field.Path)
				taken[part.field.Path] = true
			}
		}
		if slices.ContainsFunc(paths, func(path string) bool { return strings.Contains(path, "+") }) {
			return false
		}
		i.Flags = append(i.Flags, "--map", "input_tokens="+strings.Join(paths, "+"))
		if read := roles[cacheRead]; len(read) == 1 {
			i.Flags = append(i.Flags, "--map", "cached_tokens="+read[0].field.Path)
		}
		return true
	}
	return false
}

// standsBeside reports whether the cache parts among some counts stand beside the input.
func standsBeside(roles map[countRole][]candidate) bool {
	input := roles[plainInput][0]
	parts := slices.Concat(roles[cacheRead], roles[cacheWritten])
	sum, larger := 0.0, false
	for _, part := range parts {
		sum += part.field.stats.sum
		larger = larger || part.field.stats.max > input.field.stats.max
	}
	if larger {
		return true
	}
	for _, total := range roles[totalCount] {
		for _, output := range roles[plainOutput] {
			switch rest := total.field.stats.sum - input.field.stats.sum - output.field.stats.sum; {
			case sum > 0 && rest == sum:
				return true
			case sum > 0 && rest == 0:
				return false
			}
		}
	}
	if strings.Join(input.words, "_") == "input_tokens" && slices.ContainsFunc(parts, func(part candidate) bool {
		name := strings.Join(part.words, "_")
		return name == "cache_read_input_tokens" || name == "cache_creation_input_tokens"
	}) {
		return true
	}
	return share(input.words, wordsOf("uncached without non miss")) ||
		strings.Contains(strings.Join(input.words, " "), "w o cache")
}
