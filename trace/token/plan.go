package token

import (
	"fmt"
	"math"
	"strings"
)

// A plan is what the normalizer and the pre-tokenizer of a document ask for.
type plan struct {
	byteLevel bool
	steps     []step // byte level

	nfc       bool
	replaced  bool // the normalizer makes "▁" of spaces
	spaces    bool // it, or the pre-tokenizer, does
	lead      lead
	cutSpaces bool // every space begins a piece
}

// A located part knows its path in the JSON.
type located struct {
	part
	path string
}

func (l located) fault(field, what string) error {
	return fmt.Errorf("%s%s: %s", l.path, field, what)
}

func (l located) unsupported() error {
	return fmt.Errorf("%s.type: %.40q is not supported here", l.path, l.Type)
}

// flatten lists a part, or the parts of a Sequence.
func flatten(p *part, path string) (list []located) {
	if p == nil {
		return nil
	}
	if p.Type != "Sequence" {
		return []located{{*p, path}}
	}
	root, _, _ := strings.Cut(path, ".")
	kids := map[string]struct {
		field string
		parts []part
	}{
		"normalizer":     {"normalizers", p.Normalizers},
		"pre_tokenizer":  {"pretokenizers", p.PreTokenizers},
		"post_processor": {"processors", p.Processors},
		"decoder":        {"decoders", p.Decoders},
	}[root]
	for i := range kids.parts {
		list = append(list, flatten(&kids.parts[i], fmt.Sprintf("%s.%s[%d]", path, kids.field, i))...)
	}
	return list
}

// plan reads the parts around the model, and refuses what is not supported.
func (d *document) plan() (plan, error) {
	var p plan
	pre := flatten(d.PreTokenizer, "pre_tokenizer")
	for _, l := range pre {
		p.byteLevel = p.byteLevel || l.Type == "ByteLevel"
	}
	preTokenizer, decoders := p.spacesPreTokenizer, spacesDecoders
	if p.byteLevel {
		preTokenizer, decoders = p.bytesPreTokenizer, bytesDecoders
	}
	for _, l := range flatten(d.Normalizer, "normalizer") {
		if err := p.normalizer(l); err != nil {
			return p, err
		}
	}
	for i, l := range pre {
		if err := preTokenizer(l, i == len(pre)-1); err != nil {
			return p, err
		}
	}
	for _, l := range flatten(d.Decoder, "decoder") {
		if !decoders[l.Type] {
			return p, l.unsupported()
		}
	}
	for _, l := range flatten(d.PostProcessor, "post_processor") {
		if !postProcessors[l.Type] {
			return p, l.unsupported()
		}
	}
	switch {
	case p.byteLevel:
		return p, nil
	case !p.spaces:
		return p, fmt.Errorf("pre_tokenizer: neither this nor the normalizer is of a kind that is supported " +
			"(ByteLevel, Metaspace, Replace of spaces)")
	case !d.Model.ByteFallback:
		return p, fmt.Errorf("model.byte_fallback: only true is supported without the pre-tokenizer ByteLevel")
	case d.Model.IgnoreMerges:
		return p, fmt.Errorf("model.ignore_merges: only false is supported without the pre-tokenizer ByteLevel")
	}
	return p, nil
}

// The decoders of a family do what AppendText does, and the post-processors add special tokens, or change offsets.
var (
	bytesDecoders  = map[string]bool{"ByteLevel": true}
	spacesDecoders = map[string]bool{"Replace": true, "ByteFallback": true, "Fuse": true, "Strip": true,
		"Metaspace": true}
	postProcessors = map[string]bool{"ByteLevel": true, "TemplateProcessing": true, "RobertaProcessing": true,
		"BertProcessing": true}
)

// normalizer adds a normalizer: NFC with the byte-level alphabet, else those that make "▁" of spaces.
func (p *plan) normalizer(l located) error {
	switch {
	case p.byteLevel && l.Type == "NFC":
		p.nfc = true
	case !p.byteLevel && l.Type == "Prepend":
		if l.Prepend != "▁" || p.lead != leadNone {
			return l.fault(".prepend", `only one "▁" is supported`)
		}
		p.lead = leadAlways
	case !p.byteLevel && l.Type == "Replace":
		if l.Pattern.String == nil || *l.Pattern.String != " " || l.Content != "▁" {
			return l.fault("", `only " " may be replaced, by "▁"`)
		}
		p.replaced, p.spaces = true, true
	default:
		return l.unsupported()
	}
	return nil
}

func (p *plan) bytesPreTokenizer(l located, last bool) error {
	switch l.Type {
	case "Digits":
		most := math.MaxInt
		if l.IndividualDigits {
			most = 1
		}
		p.steps = append(p.steps, step{split: splitNumbers(most)})
	case "Split":
		if l.Pattern.Regex == nil {
			return l.fault(".pattern", "only Regex is supported here")
		}
		if l.Behavior != "Isolated" || l.Invert {
			return l.fault(".behavior", `only "Isolated", not inverted, is supported`)
		}
		s, err := newStep(*l.Pattern.Regex)
		if err != nil {
			return fmt.Errorf("%s.pattern.Regex: %w", l.path, err)
		}
		p.steps = append(p.steps, s)
	case "ByteLevel":
		if l.AddPrefixSpace == nil || *l.AddPrefixSpace {
			return l.fault(".add_prefix_space", "only false is supported")
		}
		if !last {
			return l.fault("", "only the last pre-tokenizer may be ByteLevel")
		}
		if l.UseRegex == nil || *l.UseRegex {
			p.steps = append(p.steps, step{split: splitGPT2})
		}
	default:
		return l.unsupported()
	}
	return nil
}

func (p *plan) spacesPreTokenizer(l located, _ bool) error {
	if l.Type == "Split" && p.replaced && l.Pattern.String != nil && *l.Pattern.String == " " && !l.Invert {
		return nil // Gemma splits at spaces when there are none any more
	}
	if l.Type != "Metaspace" {
		return l.unsupported()
	}
	lead, known := map[string]lead{"": leadAbsent, "always": leadAbsent, "first": leadFirst,
		"never": leadNone}[l.PrependScheme]
	switch {
	case l.Replacement != "▁":
		return l.fault(".replacement", `only "▁" is supported`)
	case !known:
		return l.fault(".prepend_scheme", "unknown")
	case l.AddPrefixSpace != nil && !*l.AddPrefixSpace && lead != leadNone:
		return l.fault(".add_prefix_space", "does not agree with prepend_scheme")
	case p.lead != leadNone && lead != leadNone:
		return l.fault(".prepend_scheme", "not supported together with the normalizer Prepend")
	}
	if lead != leadNone {
		p.lead = lead
	}
	p.spaces = true
	p.cutSpaces = p.cutSpaces || l.Split == nil || *l.Split
	return nil
}
