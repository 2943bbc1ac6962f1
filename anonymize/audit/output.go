package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/parquet-go/parquet-go"

	"reprise/anonymize"
	"reprise/trace"
	"reprise/trace/objectstore"
)

// Kinds of outputs. A Parquet file of ours is of the kind that its schema names,
// such as trace, histograms, model or results.
const (
	kindTrace   = "trace"
	kindParquet = "parquet" // of a schema that is not ours
	kindPage    = "page"    // HTML
	kindJSON    = "json"
	kindOther   = "other" // such as the formats of other tools
)

// An Output is an open file that is judged, or the folder of a partitioned trace.
type Output struct {
	Kind    string
	Meta    map[string]string // key-value metadata under "reprise.", without that; of Parquet
	Trace   *trace.Trace      // of a trace; else nil
	Parquet *parquet.File     // of one file of Parquet; else nil

	file objectstore.File // of a partitioned trace, its manifest
	size int64
	path string
}

// OpenOutput opens the file at path, or the folder of a partitioned trace, and tells its
// kind by its content. A file of no kind that is known is "other", not an error.
func OpenOutput(path string) (*Output, error) {
	file, detect := path, (*Output).detect
	if trace.IsPartitioned(path) {
		file, detect = objectstore.Join(path, trace.ManifestName), (*Output).partitioned
	}
	f, err := objectstore.Open(file)
	if err != nil {
		return nil, err
	}
	o := &Output{file: f, path: path, Meta: map[string]string{}}
	info, err := f.Stat()
	if err == nil {
		o.size = info.Size()
		err = detect(o)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return o, nil
}

const keyPrefix = "reprise."

func (o *Output) partitioned() (err error) {
	if o.Trace, err = trace.Open(o.path); err != nil {
		return err
	}
	o.Kind = kindTrace
	o.Trace.Meta.Each(func(key, value string) { o.Meta[strings.TrimPrefix(key, keyPrefix)] = value })
	return nil
}

// isParquet reports whether [Output.eachFile] has files.
func (o *Output) isParquet() bool { return o.Parquet != nil || o.Trace != nil }

// eachFile calls do for the files of Parquet that the output is made of. One partition is open
// at a time.
func (o *Output) eachFile(do func(*parquet.File) error) error {
	if o.Parquet != nil {
		return do(o.Parquet)
	}
	if o.Trace == nil {
		return nil
	}
	for _, name := range o.Trace.Files()[1:] { // the first is the manifest
		err := func() error {
			f, err := objectstore.Open(name)
			if err != nil {
				return err
			}
			defer f.Close()
			info, err := f.Stat()
			if err != nil {
				return err
			}
			p, err := trace.OpenParquet(f, info.Size())
			if err != nil {
				return err
			}
			return do(p)
		}()
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	return nil
}

func (o *Output) detect() (err error) {
	p, err := trace.OpenParquet(o.file, o.size)
	switch {
	case errors.Is(err, trace.ErrNoFooter):
		if begin := make([]byte, 4); o.size >= 4 {
			if _, err := o.file.ReadAt(begin, 0); err == nil && string(begin) == "PAR1" {
				return fmt.Errorf("%w: it begins as one and is cut short", trace.ErrNoFooter)
			}
		}
		return o.detectText()
	case err != nil:
		return err
	}
	o.Parquet, o.Kind = p, kindParquet
	for _, kv := range p.Metadata().KeyValueMetadata {
		if key, ours := strings.CutPrefix(kv.Key, keyPrefix); ours {
			o.Meta[key] = kv.Value
		}
	}
	if run := o.Meta["run"]; o.Meta["tier"] == "" && run != "" { // of results
		var said struct {
			Tier     string `json:"tier"`
			Workload string `json:"workload_digest"`
		}
		if json.Unmarshal([]byte(run), &said) == nil {
			o.Meta["tier"], o.Meta["workload_digest"] = said.Tier, said.Workload
		}
	}
	if name, version, ok := strings.Cut(o.Meta["schema"], "/"); ok && version != "" && isWord(name) {
		o.Kind = name
	}
	if o.Meta["schema"] == trace.RawSchema {
		return trace.ErrRaw
	}
	if o.Meta["schema"] == trace.Schema {
		o.Kind = kindTrace
		o.Trace, err = trace.Open(o.path)
	}
	return err
}

// detectText tells pages and JSON by how they begin, and takes the tier that they
// name.
func (o *Output) detectText() error {
	head := make([]byte, 512)
	n, err := o.file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	head = bytes.TrimSpace(head[:n])
	o.Kind = kindOther
	switch {
	case bytes.HasPrefix(bytes.ToLower(head), []byte("<!doctype html")), bytes.HasPrefix(head, []byte("<html")):
		o.Kind = kindPage
		b, err := io.ReadAll(io.LimitReader(o.reader(), 16<<20))
		for _, m := range tierOfPage.FindAllSubmatch(b, -1) {
			o.addTier(string(m[1]))
		}
		return err
	case len(head) == 0 || head[0] != '{' && head[0] != '[':
		return nil
	}
	var top map[string]json.RawMessage
	dec := json.NewDecoder(o.reader())
	err = dec.Decode(&top)
	if dec.More() { // lines of several are the format of another tool
		return nil
	}
	if o.Kind = kindJSON; err != nil {
		return nil
	}
	// Its tier is named at its top or one level below.
	top["\x00top"], _ = json.Marshal(map[string]json.RawMessage{"tier": top["tier"]})
	for _, part := range top {
		var said struct {
			Tier string `json:"tier"`
		}
		if json.Unmarshal(part, &said) == nil && said.Tier != "" {
			o.addTier(said.Tier)
		}
	}
	return nil
}

// tierOfPage is the fact that pages begin with.
var tierOfPage = regexp.MustCompile(`<dt>(?:[^<]{0,40} t|T)ier</dt>\s*<dd>([a-z-]+)`)

// addTier takes a tier of something that the output was made of: of several, the
// least public is its own.
func (o *Output) addTier(tier string) {
	openness := map[string]int{anonymize.Partner: 1, anonymize.Public: 2}
	if now := o.Meta["tier"]; now == "" || openness[tier] < openness[now] {
		o.Meta["tier"] = tier
	}
}

// former reports whether the card is of rows that an earlier version released to a partner.
func (o *Output) former() bool {
	card, err := anonymize.ParseCard(o.Meta["card"], o.Meta["card_sha256"])
	return err == nil && card.Former()
}

// Tier is the tier that the output says it is of; empty when it does not say.
func (o *Output) Tier() string {
	if t := o.Meta["tier"]; isWord(t) {
		return t
	}
	return ""
}

// drawn reports whether the card says that sessions are drawn from noisy tables.
func (o *Output) drawn() bool {
	card, err := anonymize.ParseCard(o.Meta["card"], o.Meta["card_sha256"])
	return err == nil && card.Sessions != nil
}

const formerPublic = "it is drawn from the model of an earlier version, whose counts this one does not make: release " +
	"the source again"

func (o *Output) reader() io.Reader { return io.NewSectionReader(o.file, 0, o.size) }

// digests are that of the rows of a trace, counted anew, or what another file says
// of them, and the SHA-256 of the file; of a partitioned trace, that of the manifest, which has those of
// the partitions.
func (o *Output) digests(ctx context.Context) (rows, file string, err error) {
	h := sha256.New()
	if _, err := io.Copy(h, o.reader()); err != nil {
		return "", "", err
	}
	rows = o.Meta["digest"]
	if o.Trace != nil {
		r, err := o.Trace.Reader()
		if err != nil {
			return "", "", err
		}
		d := trace.NewDigest()
		batch := make([]trace.Request, 512)
		for err == nil {
			var n int
			n, err = r.Read(batch)
			d.Add(batch[:n])
			if err == nil {
				err = ctx.Err()
			}
		}
		if err != io.EOF {
			return "", "", err
		}
		rows = d.Sum()
	}
	return rows, hex.EncodeToString(h.Sum(nil)), nil
}

// Close closes the file.
func (o *Output) Close() error {
	if o.Trace != nil {
		return errors.Join(o.Trace.Close(), o.file.Close())
	}
	return o.file.Close()
}

// isWord reports whether s is a short word of lower-case letters and hyphens, as
// kinds and tiers are.
func isWord(s string) bool {
	return s != "" && len(s) <= 24 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz-") == ""
}
