// Package tender binds what a procurement asks for in one file of digests, and holds a
// submission to it.
//
//  1. [New] makes a [Pack]: digests of the specification of the workload, of the workload that a
//     secret seed makes of it, of the contract and of the rules, what must be said of the system,
//     and a commitment to the seed. The pack is published; the [Seed] is kept until the test.
//  2. At the test the seed is revealed, and whoever submits makes the workload and the run.
//  3. [Verify] computes every figure again from the results, and says what does not match: the
//     seed, a file, the workload, a row of the results, the rules, the system, a figure.
//
// # Files
//
//   - pack.go: the pack and the seed: their YAML, the commitment
//   - verify.go: what is checked, and what is found
//   - figures.go: two JSON documents, figure by figure
//
// Exported names may change in any release.
package tender

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reprise/replay/result"
	"reprise/trace/strictyaml"
)

// Schemas of the two files.
const (
	packSchema = "pack/1"
	seedSchema = "pack-seed/1"
)

// A Bound is a file that a pack binds: its name, as seen from the pack, and its SHA-256.
type Bound struct {
	File   string
	SHA256 string // hexadecimal
}

// A Pack is what a submission is held to.
type Pack struct {
	Name     string
	Workload Bound  // the specification; File is the name of a built-in one if BuiltIn is set
	BuiltIn  bool   // no file
	Digest   string // of the rows that the seed makes of it
	Contract Bound
	Rules    Bound    // a scenario; no file is none
	System   []string // fields of [result.Deployment] that must be said, by their names in JSON
	Commits  string   // the commitment to the seed, see [Seed.Commitment]

	SHA256 string // of the text that it was read from
}

// A Seed is the secret of a pack until the test. The nonce keeps the commitment from being
// tried out.
type Seed struct {
	Seed  uint64
	Nonce string // 32 bytes in hexadecimal
}

// NewSeed draws a seed of 63 bits and its nonce from the system's source of randomness.
func NewSeed() Seed {
	var b [40]byte
	rand.Read(b[:]) // never fails
	return Seed{binary.LittleEndian.Uint64(b[:]) >> 1, hex.EncodeToString(b[8:])}
}

// Commitment is the SHA-256, in hexadecimal, of the lines "pack-seed/1", the seed in decimal and
// the nonce, each with its newline.
func (s Seed) Commitment() string {
	return digest(fmt.Appendf(nil, "%s\n%d\n%s\n", seedSchema, s.Seed, s.Nonce))
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Bind binds a file by its text.
func Bind(name string, text []byte) Bound { return Bound{name, digest(text)} }

// SystemFields are what a pack may ask to be said of the system.
func SystemFields() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[result.Deployment]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// lacking are the fields of the system that the run does not say.
func (p *Pack) lacking(run *result.Run) (out []string) {
	said := map[string]any{}
	if e := run.Environment; e != nil && e.Deployment != nil {
		text, _ := json.Marshal(e.Deployment)
		json.Unmarshal(text, &said)
	}
	for _, name := range p.System {
		if _, ok := said[name]; !ok {
			out = append(out, name)
		}
	}
	return out
}

// Text is the pack as YAML, which [ParsePack] reads.
func (p *Pack) Text() []byte {
	out := fmt.Appendf(nil, "# What a submission is held to: see reprise verify --help.\nschema: %s\nname: %s\nworkload:\n", packSchema, strconv.Quote(p.Name))
	key := "file"
	if p.BuiltIn {
		key = "built_in"
	}
	out = fmt.Appendf(out, "  %s: %s\n  sha256: %s\n  digest: %s\n", key, strconv.Quote(p.Workload.File), p.Workload.SHA256, p.Digest)
	bound := func(name string, b Bound) {
		if b.File != "" {
			out = fmt.Appendf(out, "%s:\n  file: %s\n  sha256: %s\n", name, strconv.Quote(b.File), b.SHA256)
		}
	}
	bound("contract", p.Contract)
	bound("rules", p.Rules)
	if len(p.System) > 0 {
		out = fmt.Appendf(out, "system: [%s]\n", strings.Join(p.System, ", "))
	}
	return fmt.Appendf(out, "seed_commitment: %s\n", p.Commits)
}

// Text is the seed as YAML, which [ReadSeed] reads.
func (s Seed) Text() []byte {
	return fmt.Appendf(nil, "# Keep this secret until the test: whoever has it knows the workload.\nschema: %s\nseed: %d\nnonce: %s\n", seedSchema, s.Seed, s.Nonce)
}

var (
	packBounds = strictyaml.Bounds{What: "a pack", Bytes: 16 << 10}
	hex256     = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func readHex(n strictyaml.Node) (string, error) {
	s, err := n.Text()
	if err == nil && !hex256.MatchString(s) {
		err = n.Faultf("want a SHA-256: 64 hexadecimal digits in small letters")
	}
	return s, err
}

func readSchema(want string) func(strictyaml.Node) error {
	return func(n strictyaml.Node) error {
		s, err := n.Text()
		if err == nil && s != want {
			err = n.Faultf("schema: want %s", want)
		}
		return err
	}
}

// readFile reads the name of a file beside the pack, or below.
func readFile(n strictyaml.Node) (string, error) {
	s, err := n.Text()
	if err == nil && !Beside(s) {
		err = n.Faultf("want the name of a file beside the pack, or in a folder there")
	}
	return s, err
}

// Beside says whether a path leads to a file beside the pack, or below.
func Beside(path string) bool {
	return path != "" && !strings.HasPrefix(path, "/") && !strings.ContainsAny(path, "\\\x00") && !slices.Contains(strings.Split(path, "/"), "..")
}

// ReadPack reads a pack from its file.
func ReadPack(path string) (*Pack, error) {
	text, err := strictyaml.ReadFile(path, packBounds)
	if err != nil {
		return nil, err
	}
	return ParsePack(path, text)
}

// ParsePack reads a pack. Errors begin with the name, the line and the column.
func ParsePack(name string, text []byte) (*Pack, error) {
	p := &Pack{SHA256: digest(text)}
	doc, err := strictyaml.Parse(text, packBounds)
	if err != nil {
		return nil, strictyaml.Named(name, err)
	}
	bound := func(b *Bound) func(strictyaml.Node) error {
		return func(n strictyaml.Node) error {
			err := n.Keys(strictyaml.Key{Name: "file", Read: strictyaml.Into(&b.File, readFile)}, strictyaml.Key{Name: "sha256", Read: strictyaml.Into(&b.SHA256, readHex)})
			if err == nil && (b.File == "" || b.SHA256 == "") {
				err = n.Faultf("want file and sha256")
			}
			return err
		}
	}
	builtIn := ""
	digests := strictyaml.Parsed(func(s string) (string, error) {
		if hex, ok := strings.CutPrefix(s, "sha256:"); !ok || !hex256.MatchString(hex) {
			return "", errors.New("want the digest of a workload: sha256: and 64 hexadecimal digits")
		}
		return s, nil
	})
	schema := ""
	err = doc.Keys(
		strictyaml.Key{Name: "schema", Read: func(n strictyaml.Node) error { schema = packSchema; return readSchema(packSchema)(n) }},
		strictyaml.Key{Name: "name", Read: strictyaml.Into(&p.Name, strictyaml.Node.Text)},
		strictyaml.Key{Name: "workload", Read: func(n strictyaml.Node) error {
			err := n.Keys(strictyaml.Key{Name: "file", Read: strictyaml.Into(&p.Workload.File, readFile)}, strictyaml.Key{Name: "built_in", Read: strictyaml.Into(&builtIn, strictyaml.Node.Text)},
				strictyaml.Key{Name: "sha256", Read: strictyaml.Into(&p.Workload.SHA256, readHex)}, strictyaml.Key{Name: "digest", Read: strictyaml.Into(&p.Digest, digests)})
			if err == nil && ((p.Workload.File == "") == (builtIn == "") || p.Workload.SHA256 == "" || p.Digest == "") {
				err = n.Faultf("want file or built_in, sha256 and digest")
			}
			return err
		}},
		strictyaml.Key{Name: "contract", Read: bound(&p.Contract)},
		strictyaml.Key{Name: "rules", Read: bound(&p.Rules)},
		strictyaml.Key{Name: "system", Read: func(n strictyaml.Node) error {
			return n.List("a field", 32, func(n strictyaml.Node) error {
				s, err := n.Text()
				if err == nil && !slices.Contains(SystemFields(), s) {
					err = n.Faultf("want one of %s", strings.Join(SystemFields(), ", "))
				}
				p.System = append(p.System, s)
				return err
			})
		}},
		strictyaml.Key{Name: "seed_commitment", Read: strictyaml.Into(&p.Commits, readHex)})
	if err == nil && (schema == "" || p.Digest == "" || p.Contract.File == "" || p.Commits == "") {
		err = doc.Faultf("want schema, workload, contract and seed_commitment")
	}
	if err != nil {
		return nil, strictyaml.Named(name, err)
	}
	if builtIn != "" {
		p.Workload.File, p.BuiltIn = builtIn, true
	}
	return p, nil
}

// ReadSeed reads a seed from its file. Errors do not quote it.
func ReadSeed(path string) (Seed, error) {
	text, err := strictyaml.ReadFile(path, packBounds)
	if err != nil {
		return Seed{}, err
	}
	return parseSeed(path, text)
}

// parseSeed reads a seed.
func parseSeed(name string, text []byte) (s Seed, err error) {
	doc, err := strictyaml.Parse(text, packBounds)
	if err == nil {
		given := map[string]bool{}
		err = doc.Keys(
			strictyaml.Key{Name: "schema", Read: func(n strictyaml.Node) error { given["schema"] = true; return readSchema(seedSchema)(n) }},
			strictyaml.Key{Name: "seed", Read: func(n strictyaml.Node) error {
				given["seed"] = true
				text, err := n.Text()
				if err == nil {
					if s.Seed, err = strconv.ParseUint(text, 10, 63); err != nil {
						err = n.Faultf("seed: want a whole number below 2^63")
					}
				}
				return err
			}},
			strictyaml.Key{Name: "nonce", Read: strictyaml.Into(&s.Nonce, readHex)})
		if err == nil && (!given["schema"] || !given["seed"] || s.Nonce == "") {
			err = doc.Faultf("want schema, seed and nonce")
		}
	}
	if err != nil {
		return Seed{}, strictyaml.Named(name, err)
	}
	return s, nil
}
