package publish

import (
	"fmt"
	"net/url"
	"strings"
)

// A License is one by its SPDX id, or by an address alone.
type License struct {
	SPDX string // empty of one by its address
	URL  string
	hub  string // as Hugging Face names it
}

// licenses are those under which data are published that all of the hub, SPDX and the
// Citation File Format know.
var licenses = []License{
	{"CC-BY-4.0", "https://creativecommons.org/licenses/by/4.0/", "cc-by-4.0"},
	{"CC-BY-SA-4.0", "https://creativecommons.org/licenses/by-sa/4.0/", "cc-by-sa-4.0"},
	{"CC-BY-NC-4.0", "https://creativecommons.org/licenses/by-nc/4.0/", "cc-by-nc-4.0"},
	{"CC-BY-NC-SA-4.0", "https://creativecommons.org/licenses/by-nc-sa/4.0/", "cc-by-nc-sa-4.0"},
	{"CC-BY-ND-4.0", "https://creativecommons.org/licenses/by-nd/4.0/", "cc-by-nd-4.0"},
	{"CC-BY-NC-ND-4.0", "https://creativecommons.org/licenses/by-nc-nd/4.0/", "cc-by-nc-nd-4.0"},
	{"CC0-1.0", "https://creativecommons.org/publicdomain/zero/1.0/", "cc0-1.0"},
	{"CDLA-Permissive-1.0", "https://cdla.dev/permissive-1-0/", "cdla-permissive-1.0"},
	{"CDLA-Permissive-2.0", "https://cdla.dev/permissive-2-0/", "cdla-permissive-2.0"},
	{"CDLA-Sharing-1.0", "https://cdla.dev/sharing-1-0/", "cdla-sharing-1.0"},
	{"ODC-By-1.0", "https://opendatacommons.org/licenses/by/1-0/", "odc-by"},
	{"ODbL-1.0", "https://opendatacommons.org/licenses/odbl/1-0/", "odbl"},
	{"PDDL-1.0", "https://opendatacommons.org/licenses/pddl/1-0/", "pddl"},
	{"Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0", "apache-2.0"},
	{"MIT", "https://opensource.org/license/mit", "mit"},
}

// Licenses are the SPDX ids that [ParseLicense] knows.
func Licenses() (ids []string) {
	for _, l := range licenses {
		ids = append(ids, l.SPDX)
	}
	return ids
}

// ParseLicense reads an SPDX id, or the address of a licence that has none.
func ParseLicense(text string) (License, error) {
	for _, l := range licenses {
		if strings.EqualFold(l.SPDX, text) {
			return l, nil
		}
	}
	if u, err := url.Parse(text); err == nil && u.Scheme == "https" && u.Host != "" {
		return License{URL: text}, nil
	}
	return License{}, fmt.Errorf("there is no licence %q here: want one of %s, or the https address of another", text,
		strings.Join(Licenses(), ", "))
}

// Name is how a person calls it.
func (l License) Name() string {
	if l.SPDX != "" {
		return l.SPDX
	}
	return l.URL
}
