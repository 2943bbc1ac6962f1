// Package evidence packs what was measured of a server into one archive that its owner
// may publish: what was run, what came out, on which software and hardware. Nothing in it
// tells where that server is or who may use it.
//
// # Files
//
//   - bundle.go: the archive: its manifest, its files, and what is kept out of them
package evidence

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// schema names the form of a [Manifest].
const schema = "evidence/1"

// A Manifest says what a bundle holds.
type Manifest struct {
	Schema  string    `json:"schema"`  // evidence/1
	Version string    `json:"version"` // of Reprise
	Begun   time.Time `json:"begun"`
	Seconds float64   `json:"seconds"` // of all steps
	By      string    `json:"by"`      // who ran it, as they say; may be empty
	Steps   []Step    `json:"steps"`
	Files   []File    `json:"files"` // all but the manifest
}

// A Step is a command that was run.
type Step struct {
	Name     string   `json:"name"`
	Commands []string `json:"commands"`          // as one would type them, in order
	Failed   bool     `json:"failed"`            // it has no result: see Problem
	Exit     int      `json:"exit_code"`         // the highest of its commands
	Problem  string   `json:"problem,omitempty"` // why there is no result, or why it is not trusted
	Finding  string   `json:"finding,omitempty"` // the result in a sentence
	Seconds  float64  `json:"seconds"`           // of the step
}

// A File is one of the bundle.
type File struct {
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"` // hexadecimal
}

// A Bundle is filled step by step, and written at the end.
type Bundle struct {
	Manifest

	names  []string // that files must not hold, the longest first
	stands []string // what stands in the place of each
	secret []string // that must not be there at all
	data   [][]byte // of Files
}

// Hide keeps a text out of all that is added afterwards: another stands in its place.
// Empty texts hide nothing.
func (b *Bundle) Hide(text, instead string) {
	if text == "" {
		return
	}
	at := 0
	for at < len(b.names) && len(b.names[at]) >= len(text) {
		at++
	}
	b.names, b.stands = slices.Insert(b.names, at, text), slices.Insert(b.stands, at, instead)
}

// Forbid makes [Bundle.Write] fail where a text is anywhere in the bundle: a key, which
// nothing should have written. Texts of less than eight bytes are left out, since they
// may stand there by chance.
func (b *Bundle) Forbid(text string) {
	if len(text) >= 8 {
		b.secret = append(b.secret, text)
	}
}

// Shown is a text as the bundle would hold it.
func (b *Bundle) Shown(text string) string {
	for i, name := range b.names {
		text = strings.ReplaceAll(text, name, b.stands[i])
	}
	return text
}

// Add puts a file into the bundle, a text such as JSON.
func (b *Bundle) Add(name string, text []byte) {
	text = []byte(b.Shown(string(text)))
	sum := sha256.Sum256(text)
	b.Files = append(b.Files, File{Name: name, Bytes: len(text), SHA256: hex.EncodeToString(sum[:])})
	b.data = append(b.data, text)
}

// Write writes the bundle as a gzipped tar file: a folder with manifest.json and all
// files, of the time at which the first step began. It fails where a forbidden text is in
// it, and then has written nothing.
func (b *Bundle) Write(w io.Writer) error {
	b.Schema = schema
	manifest, err := json.MarshalIndent(b.Manifest, "", "  ")
	if err != nil {
		return err
	}
	names, data := []string{"manifest.json"}, [][]byte{append([]byte(b.Shown(string(manifest))), '\n')}
	for i, f := range b.Files {
		names, data = append(names, f.Name), append(data, b.data[i])
	}
	for i := range data {
		for _, s := range b.secret {
			if bytes.Contains(data[i], []byte(s)) {
				return fmt.Errorf("%s holds a key of the server: nothing was written", names[i])
			}
		}
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	tape := tar.NewWriter(zip)
	for i, name := range names {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: "evidence/" + name, Mode: 0o644, Size: int64(len(data[i])), ModTime: b.Begun.Truncate(time.Second)}
		if err := tape.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tape.Write(data[i]); err != nil {
			return err
		}
	}
	if err := tape.Close(); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	_, err = out.WriteTo(w)
	return err
}
