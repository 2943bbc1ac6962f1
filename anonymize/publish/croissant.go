package publish

import (
	"bytes"
	"encoding/json"
)

// croissantContext is the context of Croissant 1.0 (docs.mlcommons.org/croissant), the same
// in every document.
const croissantContext = `{
  "@language": "en",
  "@vocab": "https://schema.org/",
  "citeAs": "cr:citeAs",
  "column": "cr:column",
  "conformsTo": "dct:conformsTo",
  "cr": "http://mlcommons.org/croissant/",
  "rai": "http://mlcommons.org/croissant/RAI/",
  "data": {"@id": "cr:data", "@type": "@json"},
  "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
  "dct": "http://purl.org/dc/terms/",
  "equivalentProperty": "cr:equivalentProperty",
  "examples": {"@id": "cr:examples", "@type": "@json"},
  "extract": "cr:extract",
  "field": "cr:field",
  "fileProperty": "cr:fileProperty",
  "fileObject": "cr:fileObject",
  "fileSet": "cr:fileSet",
  "format": "cr:format",
  "includes": "cr:includes",
  "isLiveDataset": "cr:isLiveDataset",
  "jsonPath": "cr:jsonPath",
  "key": "cr:key",
  "md5": "cr:md5",
  "parentField": "cr:parentField",
  "path": "cr:path",
  "recordSet": "cr:recordSet",
  "references": "cr:references",
  "regex": "cr:regex",
  "repeated": "cr:repeated",
  "replace": "cr:replace",
  "samplingRate": "cr:samplingRate",
  "sc": "https://schema.org/",
  "separator": "cr:separator",
  "source": "cr:source",
  "subField": "cr:subField",
  "transform": "cr:transform"
}`

// An agent is a person or an organisation of schema.org.
type agent struct {
	Type   string `json:"@type"`
	ID     string `json:"@id,omitempty"` // an ORCID
	Name   string `json:"name"`
	Given  string `json:"givenName,omitempty"`
	Family string `json:"familyName,omitempty"`
}

type reference struct {
	ID string `json:"@id"`
}

type fieldSource struct {
	File    reference `json:"fileObject"`
	Extract struct {
		Column string `json:"column"`
	} `json:"extract"`
}

type recordField struct {
	Type     string      `json:"@type"`
	ID       string      `json:"@id"`
	Name     string      `json:"name"`
	About    string      `json:"description"`
	DataType string      `json:"dataType"`
	Repeated bool        `json:"repeated,omitempty"`
	Source   fieldSource `json:"source"`
}

type fileObject struct {
	Type     string `json:"@type"`
	ID       string `json:"@id"`
	Name     string `json:"name"`
	About    string `json:"description"`
	URL      string `json:"contentUrl"` // relative to the document
	Size     string `json:"contentSize"`
	Encoding string `json:"encodingFormat"`
	SHA256   string `json:"sha256"`
}

type recordSet struct {
	Type   string        `json:"@type"`
	ID     string        `json:"@id"`
	Name   string        `json:"name"`
	About  string        `json:"description"`
	Fields []recordField `json:"field"`
}

// croissant is the data set in Croissant 1.0.
func (f *facts) croissant(s Statement, data Written) (string, error) {
	doc := struct {
		Context   json.RawMessage `json:"@context"`
		Type      string          `json:"@type"`
		Conforms  string          `json:"conformsTo"`
		Name      string          `json:"name"`
		About     string          `json:"description"`
		License   string          `json:"license"`
		URL       string          `json:"url"`
		Creator   []agent         `json:"creator"`
		Published string          `json:"datePublished"`
		Edition   string          `json:"version,omitempty"`
		CiteAs    string          `json:"citeAs"`
		Keywords  []string        `json:"keywords"`
		Personal  string          `json:"rai:personalSensitiveInformation"`
		Files     []fileObject    `json:"distribution"`
		Records   []recordSet     `json:"recordSet"`
	}{Context: json.RawMessage(croissantContext), Type: "sc:Dataset", Conforms: "http://mlcommons.org/croissant/1.0",
		Name: s.Title, About: f.abstract(s), License: s.License.URL, URL: s.URL(),
		Published: s.Date.Format("2006-01-02"), Edition: s.Edition,
		CiteAs: f.bibtex(s), Keywords: f.tags(), Personal: f.personal()}
	for _, a := range s.Authors {
		kind := "sc:Person"
		if a.Name != "" {
			kind = "sc:Organization"
		}
		doc.Creator = append(doc.Creator, agent{kind, a.ORCID, a.text(), a.Given, a.Family})
	}
	doc.Files = []fileObject{{"cr:FileObject", "requests.parquet", "requests.parquet",
		"The requests, in order of arrival.", data.Name, bytesText(data.Bytes), "application/x-parquet", data.SHA256}}
	set := recordSet{Type: "cr:RecordSet", ID: "requests", Name: "requests", About: "One record for each request."}
	for _, c := range f.columns {
		about := c.about
		if c.dropped {
			about += "; null in this release"
		}
		field := recordField{Type: "cr:Field", ID: "requests/" + c.name, Name: c.name, About: about,
			DataType: c.schemaOrg, Repeated: c.list}
		field.Source.File.ID, field.Source.Extract.Column = "requests.parquet", c.name
		set.Fields = append(set.Fields, field)
	}
	doc.Records = []recordSet{set}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(doc)
	return out.String(), err
}
