package audit

import (
	"regexp"
	"slices"
	"strings"
)

// A form is what something that must not be in prose looks like. The forms are
// those that can be told without a list of names; names of people cannot.
type form struct {
	name  string
	shape *regexp.Regexp
	ok    func(string) bool // nil, or what a match must be beside
}

var forms = []form{
	{"an e-mail address", regexp.MustCompile(`[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63}){0,4}\.[A-Za-z]{2,12}\b`), nil},
	{"a card number", regexp.MustCompile(`(?:^|[^0-9.-])[3-6][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}(?:[^0-9.]|$)`), cardNumber},
	{"an IBAN", regexp.MustCompile(`\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b`), iban},
	{"a telephone number", regexp.MustCompile(`\+[1-9][0-9]{0,2}[ .-][0-9]{2,4}[ .-][0-9]{3,4}[ .-]?[0-9]{2,4}\b`), nil},
	{"a hardware address", regexp.MustCompile(`\b[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}\b`), nil},
	{"a signed token (JWT)", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.`), nil},
	{"a private key", regexp.MustCompile(`-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----`), nil},
	{"a key of a service", regexp.MustCompile(`\b(sk-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|AIza[0-9A-Za-z_-]{35}|xox[abprs]-[0-9A-Za-z-]{10,}|hf_[A-Za-z0-9]{30,})`), nil},
	{"a password in a URL", regexp.MustCompile(`\b[a-z][a-z0-9+.-]{1,20}://[^/\s:@"'<>]{1,64}:[^/\s@"'<>]{1,64}@[A-Za-z0-9]`), nil},
}

// suspicious names the forms that s has somewhere.
func suspicious(s string) []string {
	var out []string
	for _, f := range forms {
		if slices.ContainsFunc(f.shape.FindAllString(s, 10_000), func(m string) bool { return f.ok == nil || f.ok(m) }) {
			out = append(out, f.name)
		}
	}
	return out
}

// cardNumber checks the digit that Luhn's formula gives (ISO/IEC 7812-1). What
// stands around the digits is part of s, as a figure with a point is no card.
func cardNumber(s string) bool {
	s = strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, s)
	sum := 0
	for i := range len(s) {
		d := int(s[len(s)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// iban checks the two digits of ISO 13616: the number, its first four characters
// put behind the rest and letters read as 10 to 35, is 1 modulo 97.
func iban(s string) bool {
	s = strings.ReplaceAll(s, " ", "")
	if len(s) < 15 || len(s) > 34 {
		return false
	}
	rest := 0
	for _, c := range []byte(s[4:] + s[:4]) {
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	return rest == 1
}
