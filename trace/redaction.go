package trace

import (
	"regexp"
	"slices"
	"strings"
)

// A marker is a kind of what loggers and masking tools leave in place of a text.
type marker struct {
	may   func(line string) bool // cheap, and true of every line of these forms; most prompts end here
	forms []*regexp.Regexp       // of a whole line, trimmed and in lower case
	value bool                   // the result of a tool may look so too
}

// hidden are the words for what was done to a text.
const hidden = `(?:redacted|masked|filtered|hidden|removed|omitted|withheld|scrubbed)`

// byWhom is the reason that may follow such a word.
const byWhom = `(?: (?:by|for|due to|per|because of)(?: [\w-]+){0,4}? ` +
	`(?:policy|policies|privacy|security|compliance|filter|administrator|gateway|proxy|reasons))`

// markers are narrow on purpose: a prompt such as "Hidden costs of a house?" is
// none. What else stands in for a text shows by its count of tokens.
var markers = []marker{
	{may: maySayHidden, forms: []*regexp.Regexp{
		// [REDACTED EMAIL], <redacted>, __REDACTED__, [REDACTED_TEXT len=9 sha=0a1b]
		regexp.MustCompile(`^[\[({<*_#]+(?:[a-z]+[ _-]){0,3}` + hidden +
			`(?:[^a-z\[\](){}<>][^\[\](){}<>]{0,100})?[\])}>*_#]+$`),
		// REDACTED, redacted-by-litellm
		regexp.MustCompile(`^redacted(?:[^a-z].{0,80})?$`),
		// removed by policy
		regexp.MustCompile(`^` + hidden + byWhom + `[.!]?$`),
		// content was removed by policy, text omitted
		regexp.MustCompile(`^(?:the |this |your |all )?(?:content|message|prompt|text|input|output|response|completion|data)s?` +
			`(?: (?:was|were|is|are|has been|have been))? ` + hidden + byWhom + `?[.!]?$`),
	}},
	{may: startsWith("*", "•", "█", "■", "●", "▇"),
		forms: []*regexp.Regexp{regexp.MustCompile(`^(?:[*•█■●▇] ?){3,}$`)}},
	// an MD5, a SHA-1 or a SHA-256 in hex
	{may: func(line string) bool { return len(line) == 32 || len(line) == 40 || len(line) == 64 },
		forms: []*regexp.Regexp{regexp.MustCompile(`^[0-9a-f]+$`)}, value: true},
	// sha256:0a1b2c, {"sha256":"0a1b2c"}
	{may: startsWith("sha", "md5", "hmac", "{", "[", "<"), forms: []*regexp.Regexp{
		regexp.MustCompile(`^[\[({<]*"?(?:hmac-?)?(?:sha-?(?:1|256|384|512)|md5)"?\s?[:=]\s?"?[0-9a-f]{6,128}"?[\])}>]*$`)}, value: true},
	// len=9 sha=0a1b, {"length":9}
	{may: func(line string) bool { return strings.Contains(line, "len") }, forms: []*regexp.Regexp{
		regexp.MustCompile(`^[\[({<]*"?(?:[a-z]+[ _])?len(?:gth)?"?\s?[=:]\s?\d+(?:[\s,;]+"?\w+"?\s?[=:]\s?"?\w+"?)*[\])}>]*$`)}, value: true},
}

// bareMarkers are whole lines that are markers in capitals, and words otherwise.
var bareMarkers = []string{"MASKED", "FILTERED", "HIDDEN", "REMOVED", "OMITTED", "WITHHELD", "SCRUBBED"}

// maySayHidden tells a line with one of the words [hidden]. Few lines with one of
// the endings lack the words.
func maySayHidden(line string) bool {
	return containsAny(line, "ed", "dden", "hheld") &&
		containsAny(line, "redact", "mask", "filter", "hid", "remov", "omit", "with", "scrub")
}

func containsAny(line string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) })
}

func startsWith(beginnings ...string) func(string) bool {
	return func(line string) bool {
		return slices.ContainsFunc(beginnings, func(b string) bool { return strings.HasPrefix(line, b) })
	}
}

// maxMarker is the length of the longest line that can be a marker, in bytes.
const maxMarker = 160

// Redacted reports whether the content of the message is what a logger or a
// masking tool leaves in its place, such as [REDACTED], *** or a hash. A message
// of several lines is redacted when each of them is, or is blank. Hashes and
// lengths are results of tools too, so those of the role [Tool] are none.
func (m *Message) Redacted() bool { return redacted(m.Content.Reveal(), m.Role != Tool) }

// Redacted reports the same of a text that is a reply.
func (t Text) Redacted() bool { return redacted(t.Reveal(), true) }

// Blank reports whether the text has nothing but white space.
func (t Text) Blank() bool { return strings.TrimSpace(t.Reveal()) == "" }

// redacted reports whether every line of a text that is not blank is a marker,
// and there is one; values says whether hashes and lengths count.
func redacted(s string, values bool) bool {
	s = strings.TrimSpace(s)
	if len(s) > maxMarker && strings.IndexByte(s[:maxMarker+1], '\n') < 0 {
		return false // its first line is too long
	}
	found := false
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if !isMarker(line, values) {
			return false
		}
		found = true
	}
	return found
}

func isMarker(line string, values bool) bool {
	if len(line) > maxMarker {
		return false
	}
	lower := strings.ToLower(line)
	for i := range markers {
		if m := &markers[i]; (values || !m.value) && m.may(lower) {
			for _, form := range m.forms {
				if form.MatchString(lower) {
					return true
				}
			}
		}
	}
	return slices.Contains(bareMarkers, line)
}
