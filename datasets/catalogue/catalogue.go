// Package catalogue lists public traces by name, and fetches them from where their makers
// publish them.
//
// No file of a data set comes with this program. A set says where its files are, at a fixed
// commit or release, how long they are and what their checksums are, and where these sums
// are from: see [Evidence].
//
//  1. [Sets] is the list, [Find] an entry of it.
//  2. [Fetcher.Fetch] brings a file. What has arrived stays in a file that ends in .part,
//     and the next call continues it. Under its own name a file appears once its checksum was
//     right, and never in place of another.
//
// # Files
//
//   - catalogue.go: what a set and its files are
//   - sets.go: the list
//   - fetch.go: one file: the part that is here already, verifying, the name it gets
//   - transfer.go: requests for the rest of a file, resumed by Range and If-Range
//   - sums.go: SHA-256 and Git's blob ids of files, sums of the first download
package catalogue

import (
	"slices"
	"strings"
)

// A Set is a public data set that can be imported.
type Set struct {
	Name    string   `json:"name"`
	About   string   `json:"about"`
	Format  string   `json:"format"`         // that reprise import reads it as
	License string   `json:"license"`        // of the data, as its makers state it, by its SPDX id
	Page    string   `json:"page"`           // where its makers describe it
	Cite    string   `json:"cite,omitempty"` // a paper or a page, as its makers ask
	Rows    int64    `json:"rows,omitempty"` // as [Set.Of] says; 0 if not known
	Of      string   `json:"rows_are"`       // requests, sessions
	Sums    Evidence `json:"checksums_from"`
	Note    string   `json:"note,omitempty"`
	Import  string   `json:"import_flags,omitempty"` // that reprise import needs for it
	Files   []File   `json:"files"`
}

// A File is one file of a set.
type File struct {
	Name    string `json:"name"` // under which it is kept
	URL     string `json:"url"`
	Size    int64  `json:"bytes,omitempty"`    // 0 if not known
	SHA256  string `json:"sha256,omitempty"`   // hex; empty if not known
	GitBlob string `json:"git_blob,omitempty"` // id of the file in the commit that the URL names, hex
}

// Evidence says where the checksums of a set are from.
type Evidence string

// Evidence of checksums, the best first.
const (
	Computed  Evidence = "computed"  // of the bytes of the file at that commit, in a copy of the repository
	Committed Evidence = "committed" // the publisher's commit has it: a Git LFS pointer, or the blob's id
	Published Evidence = "published" // the publisher states it beside the file
	Quoted    Evidence = "quoted"    // other public repositories state it for this file
	Unknown   Evidence = "none"      // nobody is known to state one
)

// Words say the evidence in a sentence.
func (e Evidence) Words() string {
	switch e {
	case Computed:
		return "computed from the file at this commit, in a copy of the repository"
	case Committed:
		return "committed by the publisher, with the file"
	case Published:
		return "stated by the publisher"
	case Quoted:
		return "stated for this file in other public repositories; not seen by us"
	}
	return "none is known: the sum of the first download is recorded beside the file"
}

// Size is the bytes of all files, 0 if that of one is not known.
func (s *Set) Size() (total int64) {
	for _, f := range s.Files {
		if f.Size == 0 {
			return 0
		}
		total += f.Size
	}
	return total
}

// Host is the server that has the files.
func (s *Set) Host() string {
	host := strings.TrimPrefix(s.Files[0].URL, "https://")
	host, _, _ = strings.Cut(host, "/")
	switch {
	case host == "huggingface.co":
		return "Hugging Face"
	case strings.HasSuffix(host, "github.com"), strings.HasSuffix(host, "githubusercontent.com"):
		return "GitHub"
	case strings.HasSuffix(host, ".windows.net"):
		return "Azure"
	}
	return host
}

// Find is the set of a name.
func Find(name string) (Set, bool) {
	sets := Sets()
	i := slices.IndexFunc(sets, func(s Set) bool { return s.Name == name })
	if i < 0 {
		return Set{}, false
	}
	return sets[i], true
}
