package importshard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/shard"
	"reprise/trace/token"
)

// A Merge makes a trace of all shards of an import.
type Merge struct {
	KeyFile string
	lengths string

	set      *shard.Set
	key      *anonymize.SharedKey // nil where none was named
	Info     datasets.Info        // of all shards together
	Policy   anonymize.Policy     // as they were imported, with their tokenizer where it is built in
	Captures string               // id of the import
	Notes    []string             // for whoever reads the result
}

// Register adds the flags.
func (m *Merge) Register(fl *pflag.FlagSet) {
	_, rest := flags.Sections(fl, flags.ShardFlags)
	rest.StringVar(&m.KeyFile, "key-file", "",
		"`file` with the key of an import in shards; needed to open system prompts that --keep-templates kept")
	rest.StringVar(&m.lengths, "lengths", "",
		"usage: take the counts of the source where they contradict the text of an import in shards")
}

// Takes reports whether paths have shards of an import. Where they do not, a flag of these is
// an error.
func (m *Merge) Takes(paths []string) (bool, error) {
	if shard.Is(paths) {
		return true, nil
	}
	if m.KeyFile != "" || m.lengths != "" {
		return false, cli.Usagef("--key-file and --lengths are for the shards of an import: %s has none", paths[0])
	}
	return false, nil
}

// Open opens the shards at paths.
func (m *Merge) Open(paths []string) (err error) {
	if m.set, err = shard.Open(paths); err != nil {
		return err
	}
	if m.KeyFile != "" {
		if m.key, err = anonymize.OpenSharedKey(m.KeyFile); err != nil {
			return cli.Exit(cli.Usage, fmt.Errorf("--key-file: %w", err))
		}
	}
	shards := m.set.Shards()
	settings := shards[0].Settings
	switch {
	case m.lengths != "" && m.lengths != anonymize.LengthsUsage:
		return cli.Usagef("--lengths: want %s; for the counts of the text import the shards again with --lengths %s",
			anonymize.LengthsUsage, m.lengths)
	case m.lengths != "" && settings.Lengths != "" && settings.Lengths != m.lengths:
		return cli.Usagef("--lengths %s: the shards were imported with --lengths %s", m.lengths, settings.Lengths)
	}
	infos := make([]datasets.Info, len(shards))
	for i := range shards {
		if err := json.Unmarshal(shards[i].Source, &infos[i]); err != nil {
			return fmt.Errorf("shard %d: what it says of its source is damaged", i)
		}
	}
	if m.Info, err = datasets.JoinInfos(infos, settings.MaxBad); err != nil {
		return err
	}
	m.Captures = shards[0].CaptureID
	m.Policy = anonymize.Policy{Tier: anonymize.Internal, BlockSize: settings.BlockSize,
		SourceBlock: settings.SourceBlock, KeepModel: settings.KeepModel,
		Capture: settings.Capture, Lengths: m.lengths, KTemplate: settings.KTemplate,
		Template: token.Template{Name: shards[0].Template}}
	if tok, err := token.Open(shards[0].Tokenizer); err == nil {
		m.Policy.Tokenizer = tok
	}
	return nil
}

// Requests is how many requests all shards have.
func (m *Merge) Requests() (sum int64) {
	for _, s := range m.set.Shards() {
		for _, f := range s.Files {
			sum += f.Rows
		}
	}
	return sum
}

// Write writes the trace. progress may be nil.
func (m *Merge) Write(ctx context.Context, progress func(step string, done int64),
	dst trace.Writer[trace.Request]) (anonymize.Card, error) {
	p := anonymize.Policy{Tier: anonymize.Internal, Lengths: m.lengths, Progress: progress}
	card, crossing, err := anonymize.MergeShards(ctx, p, m.key, m.set, dst)
	if errors.Is(err, anonymize.ErrNoKey) {
		return card, cli.Exit(cli.Usage, fmt.Errorf("%w: --key-file FILE", err))
	}
	if crossing.Requests > 0 {
		m.Notes = append(m.Notes,
			fmt.Sprintf("%d requests go on from an answer in an earlier file: their text is not put together across "+
				"files in shards, so that only their lengths were read; one process would have their blocks",
				crossing.Requests))
	}
	if card.Breakers != nil && len(m.set.Shards()) > 1 {
		m.Notes = append(m.Notes,
			"where prompts diverge was looked for in each shard alone: tokens lost there are an estimate")
	}
	return card, err
}
