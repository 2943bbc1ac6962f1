package shard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reprise/trace"
)

// Schema names the layout of the files that this package writes and reads.
const Schema = "shard/1"

// Metadata of a shard.
const (
	metaKey    = "reprise.shard"
	promptsKey = "reprise.sealed_prompts"
)

// Meta is what a shard says of itself.
type Meta struct {
	Schema    string `json:"schema"` // always [Schema]
	Index     int    `json:"index"`  // from 0
	Of        int    `json:"of"`
	CaptureID string `json:"capture_id"` // of the import, the same in all shards
	// 8 bytes of an HMAC of a constant, in hex: it tells the key from others
	KeyCheck string `json:"key_check"`
	Tool     string `json:"tool"` // and its version
	// its name, with a digest where it is a file; empty for a source without text
	Tokenizer string            `json:"tokenizer"`
	Template  string            `json:"template"` // the same of the chat template
	Settings  Settings          `json:"settings"`
	Options   map[string]string `json:"options"` // how the source was read, as flags

	Inputs Inputs `json:"inputs"` // of all shards
	First  int    `json:"first"`  // index of the first own file
	Files  []File `json:"files"`  // own ones, in their order

	Source   json.RawMessage `json:"source"`             // what was found in the own files
	Confined json.RawMessage `json:"confined,omitempty"` // how the process was that looked at the text
	Breakers json.RawMessage `json:"breakers,omitempty"` // where near-identical prompts of the own files part

	// Prompts are system prompts by who has them, sealed under the key; empty where none are
	// kept. Those of a [Set] are read one shard at a time.
	Prompts []byte `json:"-"`
}

// Settings decide what the trace is, beside the source.
type Settings struct {
	BlockSize   int           `json:"block_size"`
	SourceBlock int           `json:"source_block_size"`
	KeepModel   bool          `json:"keep_model"`
	Lengths     string        `json:"lengths"`
	Capture     trace.Capture `json:"capture"`
	KTemplate   int           `json:"k_template"` // 0 where no system prompts are kept
	MaxBad      float64       `json:"max_bad"`    // share of bad records, of all shards together
}

// Inputs tell the files of a source, all shards together.
type Inputs struct {
	Files  int    `json:"files"`
	Bytes  int64  `json:"bytes"`
	Digest string `json:"digest"` // of their names and sizes
}

// A File is one file of the source.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // bytes
	Rows int64  `json:"rows"` // 0 before it was read
}

// InputsOf describes the files of a source.
func InputsOf(files []File) Inputs {
	in := Inputs{Files: len(files)}
	h := sha256.New()
	for _, f := range files {
		in.Bytes += f.Size
		fmt.Fprintf(h, "%q %d\n", f.Name, f.Size)
	}
	in.Digest = "sha256:" + hex.EncodeToString(h.Sum(nil))
	return in
}

var errNoShard = errors.New("it is not a shard of an import")

// parseMeta reads what [Write] wrote.
func parseMeta(text string) (m Meta, err error) {
	if json.Unmarshal([]byte(text), &m) != nil || m.Schema == "" {
		return m, errNoShard
	}
	switch {
	case m.Schema != Schema:
		return m, fmt.Errorf("its schema is not %s: it was imported by another version of Reprise", Schema)
	case m.Of < 1 || m.Index < 0 || m.Index >= m.Of || m.First < 0 || len(m.Files) > m.Inputs.Files ||
		m.First > m.Inputs.Files-len(m.Files):
		return m, errors.New("what it says of its place among the shards contradicts itself")
	}
	for _, f := range m.Files {
		if f.Size < 0 || f.Rows < 0 {
			return m, errors.New("a file in it has a negative size")
		}
	}
	return m, nil
}

// unlike says in what two shards differ that belong to one import; empty for nothing.
func (m *Meta) unlike(other *Meta) string {
	switch {
	case m.KeyCheck != other.KeyCheck:
		return "was imported under another key (key check " + m.KeyCheck + ", not " + other.KeyCheck + ")"
	case m.Tool != other.Tool:
		return "was imported by " + m.Tool + ", not " + other.Tool
	case m.Tokenizer != other.Tokenizer:
		return "was imported with the tokenizer " + m.Tokenizer + ", not " + other.Tokenizer
	case m.Template != other.Template:
		return "was imported with the chat template " + m.Template + ", not " + other.Template
	}
	ours, theirs := m.options(), other.options()
	names := maps.Clone(theirs)
	maps.Copy(names, ours)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if a, b := ours[name], theirs[name]; a != b {
			return fmt.Sprintf("was imported with another %s (%s, not %s)", name, cmp.Or(a, "none"), cmp.Or(b, "none"))
		}
	}
	switch {
	case m.Inputs != other.Inputs:
		return fmt.Sprintf("is foreign: it is of other files (%d, of %d bytes; digest %.15s, not %.15s)",
			m.Inputs.Files, m.Inputs.Bytes, m.Inputs.Digest, other.Inputs.Digest)
	case m.Of != other.Of:
		return fmt.Sprintf("is one of %d shards, not of %d", m.Of, other.Of)
	}
	return ""
}

// options are the settings and the options by their names.
func (m *Meta) options() map[string]string {
	out := map[string]string{}
	for name, value := range m.Options {
		out["--"+name] = value
	}
	text, err := json.Marshal(m.Settings)
	if err != nil {
		return out
	}
	var settings map[string]json.RawMessage
	if json.Unmarshal(text, &settings) != nil {
		return out
	}
	for name, value := range settings {
		out[name] = string(value)
	}
	return out
}
