package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
	"reprise/trace/objectstore"
	"reprise/trace/textpage"
)

// tool names this program in a privacy card.
func tool() string { return "reprise " + cli.Version }

// beside is the name of a file that goes with a trace, empty where the trace goes
// to stdout or to what is no regular file.
func beside(out, extension string) string {
	if out == "" || out == cli.Standard {
		return ""
	}
	if info, err := objectstore.Stat(out); err == nil && !info.Mode().IsRegular() {
		return ""
	}
	return strings.TrimSuffix(out, ".parquet") + extension
}

// cardBeside is where the privacy card of a trace goes.
func cardBeside(out string) string { return beside(out, ".privacy.json") }

// modelBeside is where the public model of a trace goes.
func modelBeside(out string) string { return beside(out, ".model.parquet") }

// writeCarded writes a trace, and its privacy card beside it: the same bytes that
// are in its metadata, so that their SHA-256 is reprise.card_sha256 there.
func writeCarded(cmd *cobra.Command, out string, rows func(trace.Writer[trace.Request]) (trace.Meta, error)) error {
	name := cardBeside(out)
	if name == "" {
		return cli.WriteTrace(cmd, out, rows)
	}
	return trace.WriteFile(name, 0o644, func(w io.Writer) error {
		card := ""
		err := cli.WriteTrace(cmd, out, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
			meta, err := rows(dst)
			card = meta.Card
			return meta, err
		})
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, card)
		return err
	})
}

// maxCard bounds what is read of a file that may be a card.
const maxCard = 1 << 20

// A carded holds a file's statements about its privacy.
type carded struct {
	text string // of the card
	hash string // of the card as the file says
	bare bool   // the file is a card
	kind string // schema of the file
	tier string
	kSwap,
	note string // of a model
}

// cardOf reads the privacy card of a partitioned trace, of a Parquet file of ours, or of a
// file that is one.
func cardOf(path string, in objectstore.File, size int64) (c carded, err error) {
	if trace.IsPartitioned(path) {
		t, err := trace.Open(path)
		if err != nil {
			return c, err
		}
		defer t.Close()
		if t.Meta.Card == "" {
			err = errNoCard
		}
		return carded{text: t.Meta.Card, hash: t.Meta.CardHash, kind: trace.Schema, tier: t.Meta.Tier}, err
	}
	f, err := trace.OpenParquet(in, size)
	if errors.Is(err, trace.ErrNoFooter) {
		if size > maxCard {
			return c, errors.New("not a Parquet file of Reprise, nor a privacy card")
		}
		b, err := io.ReadAll(io.NewSectionReader(in, 0, size))
		sum := sha256.Sum256(b)
		return carded{text: string(b), hash: hex.EncodeToString(sum[:]), bare: true}, err
	}
	if err != nil {
		return c, err
	}
	for key, to := range map[string]*string{"card": &c.text, "card_sha256": &c.hash, "schema": &c.kind, "tier": &c.tier,
		"k_swap": &c.kSwap, "privacy_note": &c.note} {
		*to, _ = f.Lookup("reprise." + key)
	}
	if c.text == "" {
		return c, errNoCard
	}
	return c, nil
}

var errNoCard = errors.New("the file has no privacy card")

// printCard prints the card of the file at path.
func (f *anonymizeFlags) printCard(cmd *cobra.Command, path string) error {
	in, size, err := cli.OpenInput(cmd, path)
	if err != nil {
		return err
	}
	defer in.Close()
	c, err := cardOf(path, in, size)
	if err != nil {
		return cli.InFile(path, err)
	}
	card, err := anonymize.ParseCard(c.text, c.hash)
	if err != nil {
		return cli.InFile(path, err)
	}
	return cli.WriteOutput(cmd, f.out, func(w io.Writer) error {
		if cli.On(cmd, "json") {
			_, err := io.WriteString(w, c.text)
			return err
		}
		o := cli.TextOptions(cmd, "The whole card: --details. As JSON: --json.")
		width := min(o.Width, textpage.MaxWidth)
		if width > 0 {
			width = max(width, textpage.MinWidth)
		}
		if !o.Details && (f.out == "" || f.out == cli.Standard) {
			if err := card.WriteAnswer(w, outputName(path), width); err != nil {
				return err
			}
			p := textpage.New(o)
			p.Line("", o.Rest)
			_, err := p.WriteTo(w)
			return err
		}
		if err := card.WriteText(w, width); err != nil {
			return err
		}
		return card.WriteNotes(w, c.notes(), width)
	})
}

// notes say what the card of a trace does not, of a file that was made of it.
func (c carded) notes() (notes []string) {
	if c.kind != "" && c.kind != trace.Schema && c.tier != anonymize.Public {
		notes = append(notes, "This file, of schema "+strconv.Quote(c.kind)+
			", was made of the trace that the card is of, and is of its tier.")
	}
	if c.kSwap != "" {
		notes = append(notes, "Its requests' sizes, outputs and gaps were swapped among at least "+
			strconv.Quote(c.kSwap)+" similar requests (k_swap).")
	}
	if c.note != "" {
		notes = append(notes, c.note)
	}
	if c.bare {
		notes = append(notes, "The card stood alone: no file's metadata were at hand to check it against.")
	}
	return notes
}
