// Package importshard is import --shard, which imports a share of the files of a log, and the
// part of merge that makes a trace of all shards. Its flags and words are package main's,
// as import has them in one process.
//
// # Files
//
//   - importshard.go: one shard, from its share of the files to its file
//   - finish.go: all shards of an import, for the merge
package importshard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
	"reprise/trace/shard"
)

// An Import is a share of an import.
type Import struct {
	Index, Of int // from 0; Of is 0 where one process imports all
	share     string
	KeyFile   string
	Out       string // a folder, or a file
	Tool      string // and its version
	MaxBad    float64
	Mapping   string // as it was read

	// Open opens a share of the source.
	Open func(share *datasets.Share) (*datasets.Source, error)
	// Policy is how a source is imported.
	Policy func(info datasets.Info) (anonymize.Policy, error)
}

// Register adds the flags.
func (s *Import) Register(fl *pflag.FlagSet) {
	_, rest := flags.Sections(fl, flags.ShardFlags)
	rest.StringVar(&s.share, "shard", "",
		"import only this share of the files, to a file in the folder -o: `i/n`, numbered from 0. /n takes i from "+
			"JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID. reprise merge --finish joins the shards")
	rest.StringVar(&s.KeyFile, "key-file", "",
		"`file` with the key that all shards of an import share, 64 hexadecimal digits")
}

// Check reads the flags. on is whether this is a shard.
func (s *Import) Check() (on bool, err error) {
	if s.share != "" {
		if s.Index, s.Of, err = flags.ParseShare(s.share); err != nil {
			return false, err
		}
	}
	switch on := s.Of > 0; {
	case !on && s.KeyFile != "":
		return false, cli.Usagef("--key-file is for --shard: what one process imports depends on no key, since its " +
			"ids are renumbered")
	case !on:
		return false, nil
	case s.KeyFile == "":
		return false, cli.Usagef("--shard needs --key-file FILE: all shards hash under one key, so that their ids " +
			"can be joined. openssl rand -hex 32 >FILE makes one; chmod 600 FILE")
	case s.Out == "" || s.Out == cli.Standard:
		return false, cli.Usagef("--shard writes a file: name a folder for all shards with -o")
	}
	if !s.intoFolder() && !strings.HasSuffix(s.Out, shard.Ext) {
		return false, cli.Usagef("--shard: -o %s is no folder: make it first, or name a file that ends in %s", s.Out,
			shard.Ext)
	}
	return true, nil
}

// Path is the file of the shard.
func (s *Import) Path() string {
	if s.intoFolder() {
		return objectstore.Join(s.Out, shard.Name(s.Index, s.Of))
	}
	return s.Out
}

// intoFolder says that -o is a folder for all shards. Of a store that is every name that is no
// shard's, since a folder is there once it has an object.
func (s *Import) intoFolder() bool {
	if objectstore.IsURL(s.Out) {
		return !strings.HasSuffix(s.Out, shard.Ext)
	}
	info, err := os.Stat(s.Out)
	return err == nil && info.IsDir()
}

// notOptions are flags that say nothing of how a source is read, or whose meaning a shard has
// from elsewhere: the names of tokenizer and template tell their files apart, and a mapping is
// compared as it was read.
var notOptions = []string{"output", "overwrite", "shard", "key-file", "quiet", "json", "details", "config", "tokenizer",
	"template", "map",
	"keep-model", "block-size", "lengths", "keep-templates", "k-template", "max-bad", "set"}

// SetOptions are the flags that were given and say how a source is read.
func SetOptions(fl *pflag.FlagSet) map[string]string {
	options := map[string]string{}
	fl.Visit(func(f *pflag.Flag) {
		file := f.Name == "format" && flags.IsFormatFile(f.Value.String()) // which is compared as a mapping is
		if !file && !slices.Contains(notOptions, f.Name) {
			options[f.Name] = f.Value.String()
		}
	})
	return options
}

// Write writes the shard, to where Path says. options are how the source is read, the same for all shards;
// progress may be nil.
func (s *Import) Write(ctx context.Context, options map[string]string, progress func(step string,
	done int64)) (*shard.Meta, datasets.Info, error) {
	var info datasets.Info
	key, err := anonymize.OpenSharedKey(s.KeyFile)
	if err != nil {
		return nil, info, cli.Exit(cli.Usage, fmt.Errorf("--key-file: %w", err))
	}
	src, err := s.Open(&datasets.Share{Index: s.Index, Of: s.Of})
	if err != nil {
		return nil, info, err
	}
	defer src.Close()
	defer src.Head().Close()
	policy, err := s.Policy(src.Info())
	if err != nil {
		return nil, info, err
	}
	policy.Progress = progress
	m := shard.Meta{Index: s.Index, Of: s.Of, Tool: s.Tool, Options: maps.Clone(options)}
	m.Settings.MaxBad = s.MaxBad
	if s.Mapping != "" {
		m.Options["map"] = s.Mapping
	}
	err = shard.Write(s.Path(), func(dst trace.Writer[shard.Row]) (shard.Meta, error) {
		err := s.encode(ctx, policy, key, src, dst, &m)
		return m, err
	})
	return &m, src.Info(), err
}

// encode writes the rows of the share, and fills in what the shard says of itself.
func (s *Import) encode(ctx context.Context, p anonymize.Policy, key *anonymize.SharedKey, src *datasets.Source,
	dst trace.Writer[shard.Row], m *shard.Meta) error {
	if err := anonymize.EncodeShard(ctx, p, key, src.Head(), src, dst, m); err != nil {
		return err
	}
	all, from, to := src.ShareFiles()
	files := make([]shard.File, len(all))
	for i, f := range all {
		files[i] = shard.File{Name: f.Name, Size: f.Size, Rows: f.Entries}
	}
	m.Inputs, m.First, m.Files = shard.InputsOf(files), from, files[from:to]
	for _, f := range m.Files {
		if info, err := objectstore.Stat(f.Name); err != nil || info.Size() != f.Size {
			return fmt.Errorf("%s changed while it was read: import files that are written no more", f.Name)
		}
	}
	m.CaptureID = key.CaptureID(m.Inputs.Digest)
	info := src.Info()
	for i, bad := range info.FirstBad {
		place := *bad
		place.Err = nil // a sentinel of this process
		info.FirstBad[i] = &place
	}
	var err error
	m.Source, err = json.Marshal(info)
	return err
}

// Say tells what was imported.
func (s *Import) Say(cmd *cobra.Command, m *shard.Meta, info datasets.Info) error {
	path := s.Path()
	rows, bytes := int64(0), int64(0)
	for _, f := range m.Files {
		rows, bytes = rows+f.Rows, bytes+f.Size
	}
	if cli.On(cmd, "json") {
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"shard": m.Index, "of": m.Of, "file": path,
			"format": info.Format, "requests": rows, "bad_records": info.Bad,
			"files": len(m.Files), "bytes": bytes, "all_files": m.Inputs.Files, "all_bytes": m.Inputs.Bytes,
			"inputs_digest": m.Inputs.Digest, "key_check": m.KeyCheck})
	}
	lines := []string{fmt.Sprintf("%s: %s of %s (%s of %s MB)", path, doc.Many(rows, "request"),
		doc.Many(int64(len(m.Files)), "file"), doc.Number(float64(bytes)/1e6),
		doc.Number(float64(m.Inputs.Bytes)/1e6)),
		fmt.Sprintf("shard %d, of 0 to %d; source: %s; key check %s", m.Index, m.Of-1, info.Format, m.KeyCheck)}
	if len(m.Files) == 0 {
		lines = append(lines, "note: there are more shards than files to share: this one is empty, and belongs to "+
			"the others all the same")
	}
	if info.Bad > 0 {
		lines = append(lines, fmt.Sprintf("note: %s skipped; the merge says whether all shards together have too many",
			doc.Many(info.Bad, "bad record")))
	}
	lines = append(lines, fmt.Sprintf("when all %d are there: reprise merge --finish %s -o t.parquet", m.Of,
		objectstore.Dir(path)))
	cli.Answer(cmd, "--details prints them", lines...)
	return nil
}
