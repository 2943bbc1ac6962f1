package anonymize

import (
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// A recogniser finds one kind of item that must not be in a text that is kept: a
// pattern and, where the kind has one, a checksum or another test.
type recogniser struct {
	name string // of the kind; "[name]" is put in its place
	re   *regexp.Regexp
	// check, when set, says where in text the item ends that the pattern found
	// between from and to, or a number not above from for none.
	check func(text string, from, to int) int
}

// recognisers are tried in this order. Patterns without a checksum begin with what
// only such an item begins with. What several would take goes to the first, so
// that broad ones come last. Names, and what people write of themselves in words,
// are beyond all of them.
var recognisers = []recogniser{
	{name: "pem", re: regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]{1,40}-----.*?(?:-----END [A-Z0-9 ]{1,40}-----|\z)`)},
	{name: "url-credentials", re: regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s/@:\[\]]*:[^\s/@\[\]]+@`)},
	{name: "jwt", re: regexp.MustCompile(`\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?`)},
	{name: "aws-key", re: regexp.MustCompile(`\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{16}\b`)},
	{name: "google-key", re: regexp.MustCompile(`\bAIza[\w-]{35}`)},
	{name: "google-token", re: regexp.MustCompile(`\bya29\.[\w-]{20,}`)},
	{name: "azure-key", re: regexp.MustCompile(`(?i)\b(?:AccountKey|SharedAccessKey)=[a-z0-9+/]{40,}={0,2}`)},
	{name: "azure-signature", re: regexp.MustCompile(`\bsig=[A-Za-z0-9%+/]{40,}`)},
	{name: "github-token", re: regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})`)},
	{name: "gitlab-token", re: regexp.MustCompile(`\bgl(?:pat|dt|rt|cbt)-[\w-]{20,}`)},
	{name: "slack-token", re: regexp.MustCompile(`\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bxapp-[A-Za-z0-9-]{10,}`)},
	{name: "slack-webhook", re: regexp.MustCompile(`\bhooks\.slack\.com/(?:services|workflows)/[\w/+]{20,}`)},
	{name: "llm-key", re: regexp.MustCompile(`\bsk-[\w-]{20,}`)}, // OpenAI, Anthropic, OpenRouter and others
	{name: "stripe-key", re: regexp.MustCompile(`\b(?:[rs]k|whsec)_(?:(?:live|test)_)?[A-Za-z0-9]{16,}`)},
	{name: "huggingface-token", re: regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}`)},
	{name: "package-token", re: regexp.MustCompile(`\bnpm_[A-Za-z0-9]{36,}|\bpypi-[\w-]{50,}`)},
	{name: "sendgrid-key", re: regexp.MustCompile(`\bSG\.[\w-]{16,}\.[\w-]{16,}`)},
	{name: "twilio-key", re: regexp.MustCompile(`\b(?:AC|SK)[0-9a-f]{32}\b`)},
	{name: "telegram-token", re: regexp.MustCompile(`\b\d{8,10}:[\w-]{35}`)},
	{name: "authorization", re: regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+[a-z0-9._~+/=-]{16,}`)},
	{name: "password", re: regexp.MustCompile(
		`(?i)\b(?:password|passwd|pwd|secret|api[ _-]?key|access[ _-]?key|auth[ _-]?token)["']?\s*[=:]\s*["']?[^\s"',;<>{}\[\]]{6,}`)},
	{name: "email", re: regexp.MustCompile(`(?i)[\pL\pN._%+-]+@(?:[\pL\pN](?:[\pL\pN-]*[\pL\pN])?\.)+\pL{2,}`)},
	{name: "iban", re: regexp.MustCompile(`\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,40}`), check: iban},
	{name: "mac", re: regexp.MustCompile(`\b[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}\b`)},
	{name: "ip", re: regexp.MustCompile(`[0-9A-Fa-f:]{0,45}:[0-9A-Fa-f:.]{1,45}|\b\d{1,3}(?:\.\d{1,3}){3}\b`),
		check: ip},
	{name: "phone", re: regexp.MustCompile(`\+[1-9](?:[ .()/-]{0,2}\d){6,14}`)},
	{name: "card", re: regexp.MustCompile(`\b\d(?:[ -]?\d){12,60}`), check: card},
	{name: "uuid", re: regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)},
	{name: "token", re: regexp.MustCompile(`[A-Za-z0-9+/_=-]{20,500}`), check: random},
}

// scrub puts the name of its kind in the place of everything that is recognised,
// until nothing is, and counts what it found by kind.
func scrub(text string) (clean string, found map[string]int) {
	for {
		again := false
		for i := range recognisers {
			r := &recognisers[i]
			var n int
			if text, n = r.replace(text); n > 0 {
				if found == nil {
					found = map[string]int{}
				}
				found[r.name] += n
				again = true // its neighbours may be something together now
			}
		}
		// It ends: each round takes something from the text that was no name of
		// a kind, and nothing is found in such names.
		if !again {
			return text, found
		}
	}
}

func (r *recogniser) replace(text string) (string, int) {
	var out strings.Builder
	n, done := 0, 0
	for at := 0; at < len(text); {
		m := r.re.FindStringIndex(text[at:])
		if m == nil {
			break
		}
		from, to := at+m[0], at+m[1]
		if r.check != nil {
			to = r.check(text, from, to)
		}
		if to <= from { // none: what begins with the next word may be one
			for at = from + 1; isWord(text, at-1) && isWord(text, at); {
				at++
			}
			continue
		}
		out.WriteString(text[done:from])
		out.WriteString("[" + r.name + "]")
		n, done, at = n+1, to, to
	}
	if n == 0 {
		return text, 0
	}
	out.WriteString(text[done:])
	return out.String(), n
}

// isWord reports whether the byte at i continues a word of ASCII.
func isWord(text string, i int) bool {
	if i < 0 || i >= len(text) {
		return false
	}
	c := text[i]
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// iban is the longest beginning that ISO 13616's check by 97 accepts.
func iban(text string, from, to int) int {
	for ; to-from >= 15; to-- {
		if isWord(text, to) || text[to-1] == ' ' {
			continue
		}
		s := strings.ReplaceAll(text[from:to], " ", "")
		if len(s) < 15 || len(s) > 34 {
			continue
		}
		sum := 0
		for _, c := range s[4:] + s[:4] {
			if c <= '9' {
				sum = (sum*10 + int(c-'0')) % 97
			} else {
				sum = (sum*100 + int(c-'A') + 10) % 97
			}
		}
		if sum == 1 {
			return to
		}
	}
	return 0
}

// ip takes what is an address, and no more than one. Words with colons, as C++ has
// them, are none, nor is ::.
func ip(text string, from, to int) int {
	for to > from && (text[to-1] == '.' || text[to-1] == ':' && !strings.HasSuffix(text[:to], "::")) {
		to--
	}
	inside := from > 1 && text[from-2:from] == "::"
	if isWord(text, from-1) || isWord(text, to) || inside || to-from < 4 {
		return 0
	}
	if _, err := netip.ParseAddr(text[from:to]); err != nil {
		return 0
	}
	return to
}

// card finds a number of 13 to 19 digits with a right check digit (ISO/IEC 7812,
// Luhn) that begins and ends where a group of digits does. It takes all groups up
// to its end, so that what stands before it in the run goes too.
func card(text string, from, to int) int {
	var digits []byte
	starts, ends := []int{0}, map[int]int{} // in digits; where a group ends in text
	for i := from; i < to; i++ {
		if c := text[i]; c >= '0' && c <= '9' {
			digits = append(digits, c-'0')
			continue
		}
		ends[len(digits)] = i
		starts = append(starts, len(digits))
	}
	if !isWord(text, to) {
		ends[len(digits)] = to
	}
	for n := range slices.Values([]int{19, 18, 17, 16, 15, 14, 13}) {
		for _, s := range starts {
			if end, ok := ends[s+n]; ok && luhn(digits[s:s+n]) {
				return end
			}
		}
	}
	return 0
}

func luhn(digits []byte) bool {
	sum := 0
	for i := range digits {
		d := int(digits[len(digits)-1-i])
		if i%2 == 1 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return sum%10 == 0
}

// random takes words of 20 characters and more that look drawn at random: letters
// of both cases and digits with the entropy of such, or long hexadecimal numbers.
func random(text string, from, to int) int {
	s := text[from:to]
	var count [256]float64
	var lower, upper, digit, hex int
	for i := range len(s) {
		c := s[i]
		count[c]++
		switch {
		case '0' <= c && c <= '9':
			digit++
			hex++
		case 'a' <= c && c <= 'z':
			lower++
		case 'A' <= c && c <= 'Z':
			upper++
		}
		if l := c | 0x20; 'a' <= l && l <= 'f' {
			hex++
		}
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			bits -= n / float64(len(s)) * math.Log2(n/float64(len(s)))
		}
	}
	switch {
	case hex == len(s) && len(s) >= 32 && bits > 2.5 && digit > 0 && digit < len(s):
	case lower > 0 && upper > 0 && digit > 0 && bits > 3.6:
	default:
		return 0
	}
	return to
}
