package publish

import (
	"strconv"

	"github.com/goccy/go-yaml"
)

// freeText is text of the operator in YAML, always in double quotes: the library leaves out
// those of "? 0" and others that are no plain scalars. Go's escapes are YAML's too.
type freeText string

// MarshalYAML implements [yaml.BytesMarshaler].
func (t freeText) MarshalYAML() ([]byte, error) { return []byte(strconv.Quote(string(t))), nil }

type cffAuthor struct {
	Family freeText `yaml:"family-names,omitempty"`
	Given  freeText `yaml:"given-names,omitempty"`
	Name   freeText `yaml:"name,omitempty"`
	ORCID  string   `yaml:"orcid,omitempty"`
}

type cffIdentifier struct {
	Type        string `yaml:"type"`
	Value       string `yaml:"value"`
	Description string `yaml:"description"`
}

// citation is the data set in the Citation File Format 1.2.0 (doi:10.5281/zenodo.5171937).
func (f *facts) citation(s Statement) (string, error) {
	doc := struct {
		Version     string          `yaml:"cff-version"`
		Message     string          `yaml:"message"`
		Type        string          `yaml:"type"`
		Title       freeText        `yaml:"title"`
		Abstract    freeText        `yaml:"abstract"`
		Authors     []cffAuthor     `yaml:"authors"`
		License     string          `yaml:"license,omitempty"`
		LicenseURL  string          `yaml:"license-url,omitempty"`
		URL         string          `yaml:"url"`
		Edition     string          `yaml:"version,omitempty"`
		Released    string          `yaml:"date-released"`
		Keywords    []string        `yaml:"keywords"`
		Identifiers []cffIdentifier `yaml:"identifiers,omitempty"`
	}{Version: "1.2.0", Message: "If you use this data set, please cite it as below.", Type: "dataset",
		Title: freeText(s.Title), Abstract: freeText(f.abstract(s)),
		License: s.License.SPDX, URL: s.URL(), Edition: s.Edition, Released: s.Date.Format("2006-01-02"),
		Keywords: f.tags()}
	if s.License.SPDX == "" {
		doc.LicenseURL = s.License.URL
	}
	for _, a := range s.Authors {
		doc.Authors = append(doc.Authors, cffAuthor{freeText(a.Family), freeText(a.Given), freeText(a.Name), a.ORCID})
	}
	if d := f.Trace.Meta.Digest; d != "" {
		doc.Identifiers = []cffIdentifier{{"other", d, "digest of the rows (reprise.digest)"}}
	}
	text, err := yaml.Marshal(doc)
	return string(text), err
}
