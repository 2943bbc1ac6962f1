package anonymize

import (
	"regexp"
	"strconv"
	"strings"

	"reprise/trace"
)

// A gap says why the text of a prompt or reply in the source cannot be what was
// sent. Its length then is the one that the source says, and it has no blocks:
// redacted prompts are equal where the prompts were not, and would share a false
// prefix.
type gap int8

const (
	noGap      gap = iota
	markerGap      // a whole message is what a masking tool leaves, see [trace.Message.Redacted]
	emptyGap       // there is no text, and the source counts some
	shortGap       // the text counts less than half of what the source says
	unnamedGap     // a text that many records share, whose counts differ
)

// A prompt or a reply is longer than its text when the text counts less than half of
// it, template apart; of short ones, less than a tenth.
const (
	shortText     = 2
	shortestText  = 10
	leastForShort = 256
)

// promptGap finds a gap that shows before the text is counted. One marker among
// the messages is enough: from there on the prefix is not the one that was sent. A
// marker that tells the hash of a message is none, see [opaqueText], unless all messages of
// a prompt have the same.
func promptGap(en *trace.Entry, unnamed map[string]struct{}) gap {
	if en.InputTokens == nil {
		return noGap
	}
	blank, marked := en.Tools.Len() == 0 && *en.InputTokens > 0, noGap
	var hashes int
	var first string
	same := true
	for i := range en.Messages {
		m := &en.Messages[i]
		if m.Redacted() {
			hash, _ := hashOf(m)
			if hash == "" {
				return markerGap
			}
			if hashes++; hashes == 1 {
				first = hash
			}
			same = same && hash == first
		}
		blank = blank && m.Calls.Len() == 0 && m.Content.Blank()
		if len(unnamed) > 0 && m.Role != trace.System {
			if _, ok := unnamed[strings.TrimSpace(m.Content.Reveal())]; ok {
				marked = unnamedGap
			}
		}
	}
	switch {
	case hashes > 1 && same:
		return markerGap
	case blank:
		return emptyGap
	}
	return marked
}

// tooShort reports whether a text cannot be all of what the source counts.
func tooShort(text, said int) bool {
	said -= templateTokens
	return text*shortestText < said || text*shortText < said && said+templateTokens >= leastForShort
}

// lengthAndHash is how a message is described that is not there, by its length and its
// hash: [REDACTED_TEXT len=345 sha=0a1b2c3d]. hashAlone describes it by the hash alone.
var (
	lengthAndHash = regexp.MustCompile(
		`(?i)len(?:gth)?"?\s?[=:]\s?(\d{1,9}).{0,9}(?:sha-?\d*|md5|hash|digest)"?\s?[=:]\s?"?([0-9a-f]{6,128})`)
	hashAlone = regexp.MustCompile(`(?i)(?:^|(?:sha-?\d*|md5|hash|digest)"?\s?[=:]\s?"?)([0-9a-f]{8,128})(?:\W|$)`)
)

// hashOf is what identifies a redacted message, and its length in characters, or a guess of
// it; empty where nothing does.
func hashOf(m *trace.Message) (hash string, characters int) {
	text := strings.TrimSpace(m.Content.Reveal())
	if found := lengthAndHash.FindStringSubmatch(text); found != nil {
		n, _ := strconv.Atoi(found[1])
		return found[1] + ":" + found[2], n
	}
	if found := hashAlone.FindStringSubmatch(text); found != nil {
		return found[1], guessedLength
	}
	return "", 0
}

// opaqueText stands for a redacted message whose hash is known. Messages of a role with the
// same hash get the same text, others differ from the first tokens. It has about as many
// tokens as the message had, or as any other where the length is not known: what the server
// counted tells how many a token of it stands for.
func opaqueText(m *trace.Message) string {
	hash, n := hashOf(m)
	if at := strings.IndexByte(hash, ':'); len(hash) > at+hashDigits {
		hash = hash[:at+1+hashDigits]
	}
	return m.Role.String()[:1] + hash + strings.Repeat(" x", max(0, min(n, maxOpaque)/opaqueCharacters-hashDigits/2))
}

const (
	opaqueCharacters = 4       // to a token
	maxOpaque        = 4 << 20 // characters, more than a context holds
	guessedLength    = 1 << 10 // characters of a message known by its hash alone
	hashDigits       = 16      // of a hash that count
)

// replyGap finds a gap that shows before the reply is counted. Without a count in
// the source the length of a redacted reply is not known.
func replyGap(en *trace.Entry) gap {
	switch {
	case en.Reply == nil:
		return noGap
	case en.Reply.Redacted():
		return markerGap
	case en.Reply.Blank() && en.ReplyCalls.Len() == 0 && spokenTokens(en) > 0:
		return emptyGap
	}
	return noGap
}

// spokenTokens are the output tokens of the source that are no reasoning, which a
// reply does not show; 0 where the source does not count.
func spokenTokens(en *trace.Entry) int {
	if en.OutputTokens == nil {
		return 0
	}
	n := int(*en.OutputTokens)
	if en.Reasoning != nil {
		n -= int(*en.Reasoning)
	}
	return n
}

// Gaps count requests whose text cannot be what was sent, by why: they have the
// length that the source says, and no prefix blocks of it.
type Gaps struct {
	Marker int64 // a whole message is a redaction marker
	Empty  int64 // no text, where the source counts some
	Short  int64 // the text counts below half of what the source says

	// Unnamed are records with a short text that many have, though their counts
	// differ: it stands in place of others.
	Unnamed int64
}

// Total is how many there are.
func (g Gaps) Total() int64 { return g.Marker + g.Empty + g.Short + g.Unnamed }

func (g *Gaps) add(why gap) {
	switch why {
	case markerGap:
		g.Marker++
	case emptyGap:
		g.Empty++
	case shortGap:
		g.Short++
	case unnamedGap:
		g.Unnamed++
	}
}
