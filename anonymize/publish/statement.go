package publish

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Statement is what the operator says of a data set.
type Statement struct {
	Title   string
	About   string // a sentence or two; may be empty
	License License
	Authors []Author
	Repo    string // OWNER/NAME on Hugging Face
	Edition string // version, such as 1.0.0; may be empty
	Date    time.Time
}

// URL is the page of the data set.
func (s *Statement) URL() string { return "https://huggingface.co/datasets/" + s.Repo }

// An Author is a person, or an organisation, which has a Name alone.
type Author struct {
	Given, Family string
	Name          string
	ORCID         string // https://orcid.org/…; may be empty
}

// text is the name as it is read.
func (a Author) text() string {
	if a.Name != "" {
		return a.Name
	}
	return strings.TrimSpace(a.Given + " " + a.Family)
}

var (
	orcid    = regexp.MustCompile(`^(?:https://orcid\.org/)?(\d{4}-\d{4}-\d{4}-\d{3}[\dX])$`)
	repoName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
	edition  = regexp.MustCompile(`^\d{1,9}\.\d{1,9}\.\d{1,9}$`)
)

// ParseAuthor reads "Lovelace, Ada" as a person, and a name without a comma as an
// organisation. A person's ORCID may follow in angle brackets.
func ParseAuthor(text string) (a Author, err error) {
	if !isLine(text) {
		return a, errors.New("want one line of UTF-8, without control characters")
	}
	rest := strings.TrimSpace(text)
	if name, id, ok := strings.Cut(rest, "<"); ok {
		m := orcid.FindStringSubmatch(strings.TrimSuffix(id, ">"))
		if m == nil || !strings.HasSuffix(id, ">") {
			return a, errors.New("want an ORCID in the angle brackets, such as <0000-0002-1825-0097>")
		}
		if !checksORCID(m[1]) {
			return a, fmt.Errorf("%s is no ORCID: its last digit does not fit the others", m[1])
		}
		a.ORCID, rest = "https://orcid.org/"+m[1], strings.TrimSpace(name)
	}
	if family, given, ok := strings.Cut(rest, ","); ok {
		a.Family, a.Given = strings.TrimSpace(family), strings.TrimSpace(given)
		if a.Family == "" || a.Given == "" {
			return a, errors.New(`want "Family, Given" of a person`)
		}
		return a, nil
	}
	if a.Name = rest; a.Name == "" {
		return a, errors.New(`want "Family, Given" of a person, or the name of an organisation`)
	}
	if a.ORCID != "" {
		return a, errors.New(`an ORCID is a person's: want "Family, Given <ORCID>"`)
	}
	return a, nil
}

// isLine reports whether a text is UTF-8 without line breaks and other control characters.
func isLine(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// checksORCID computes the last character of an ORCID (ISO 7064, mod 11-2).
func checksORCID(id string) bool {
	total := 0
	digits := strings.ReplaceAll(id, "-", "")
	for _, d := range digits[:15] {
		total = (total + int(d-'0')) * 2
	}
	return "0123456789X"[(12-total%11)%11] == digits[15]
}

// Check says what of a statement is missing or has a wrong form. flag names the flag of a
// part of it.
func (s *Statement) Check(flag func(part string) string) error {
	switch {
	case strings.TrimSpace(s.Title) == "":
		return fmt.Errorf("%s: name the data set", flag("title"))
	case !isLine(s.Title) || len(s.Title) > 200:
		return fmt.Errorf("%s: want one line of UTF-8, of 200 bytes at most, without control characters", flag("title"))
	case !isLine(strings.NewReplacer("\n", "", "\r\n", "", "\t", "").Replace(s.About)):
		return fmt.Errorf("%s: want UTF-8, without control characters", flag("about"))
	case s.License == License{}:
		return fmt.Errorf("%s: say under which licence it is published", flag("license"))
	case len(s.Authors) == 0:
		return fmt.Errorf("%s: say whose data set it is", flag("author"))
	case s.Repo == "":
		return fmt.Errorf("%s: say where on Hugging Face it is to be, OWNER/NAME", flag("repo"))
	case !repoName.MatchString(s.Repo):
		return fmt.Errorf("%s: want OWNER/NAME, of letters, digits, dots, - and _", flag("repo"))
	case s.Edition != "" && !edition.MatchString(s.Edition):
		return fmt.Errorf("%s: want three numbers, such as 1.0.0", flag("edition"))
	}
	return nil
}
