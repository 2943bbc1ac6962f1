package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A document is a tokenizer.json, as far as it matters here.
type document struct {
	Added         []addedToken `json:"added_tokens"`
	Normalizer    *part        `json:"normalizer"`
	PreTokenizer  *part        `json:"pre_tokenizer"`
	PostProcessor *part        `json:"post_processor"`
	Decoder       *part        `json:"decoder"`
	Model         *model       `json:"model"`
}

// An addedToken is looked for in the text before all else.
type addedToken struct {
	ID         *uint32 `json:"id"`
	Content    string  `json:"content"`
	SingleWord bool    `json:"single_word"`
	LStrip     bool    `json:"lstrip"`
	RStrip     bool    `json:"rstrip"`
	Normalized bool    `json:"normalized"`
	Special    bool    `json:"special"`
}

// A part is a normalizer, pre-tokenizer, post-processor or decoder: the fields of all types that are understood.
type part struct {
	Type          string `json:"type"`
	Normalizers   []part `json:"normalizers"`
	PreTokenizers []part `json:"pretokenizers"`
	Processors    []part `json:"processors"`
	Decoders      []part `json:"decoders"`

	Pattern struct {
		String *string
		Regex  *string
	} `json:"pattern"`
	Behavior         string `json:"behavior"`
	Invert           bool   `json:"invert"`
	AddPrefixSpace   *bool  `json:"add_prefix_space"`
	UseRegex         *bool  `json:"use_regex"`
	IndividualDigits bool   `json:"individual_digits"`
	Prepend          string `json:"prepend"`
	Content          string `json:"content"`
	Replacement      string `json:"replacement"`
	PrependScheme    string `json:"prepend_scheme"`
	Split            *bool  `json:"split"`
}

type model struct {
	Type         string          `json:"type"`
	Dropout      *float64        `json:"dropout"`
	Prefix       string          `json:"continuing_subword_prefix"`
	Suffix       string          `json:"end_of_word_suffix"`
	ByteFallback bool            `json:"byte_fallback"`
	IgnoreMerges bool            `json:"ignore_merges"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       json.RawMessage `json:"merges"`
}

// parseDocument reads all but the vocabulary and the merges.
func parseDocument(data []byte) (*document, error) {
	doc := new(document)
	if err := json.Unmarshal(data, doc); err != nil {
		return nil, jsonError(err, "", data)
	}
	m := doc.Model
	switch {
	case m == nil:
		return nil, errors.New("model: missing")
	case m.Type != "BPE" && (m.Type != "" || m.Merges == nil): // GPT-2's own file does not say
		return nil, fmt.Errorf("model.type: %.40q is not supported, only BPE is", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return nil, errors.New("model.dropout: not supported, since it is random")
	case m.Vocab == nil:
		return nil, errors.New("model.vocab: missing")
	case m.Merges == nil:
		return nil, errors.New("model.merges: missing")
	case m.Prefix != "":
		return nil, errors.New("model.continuing_subword_prefix: not supported")
	case m.Suffix != "":
		return nil, errors.New("model.end_of_word_suffix: not supported")
	}
	return doc, nil
}

// tokens reads the vocabulary: the spelling of each id, "" for an id without one, and the way back.
func (m *model) tokens() (spelling []string, ids map[string]uint32, err error) {
	if err := json.Unmarshal(m.Vocab, &ids); err != nil {
		return nil, nil, jsonError(err, "model.vocab", nil)
	}
	if len(ids) > maxTokens {
		return nil, nil, fmt.Errorf("model.vocab: more than %d tokens", maxTokens)
	}
	spelling = make([]string, 0, len(ids))
	for s, id := range ids {
		if id >= maxTokens {
			return nil, nil, fmt.Errorf("model.vocab: an id is above %d", maxTokens-1)
		}
		spelling = grown(spelling, id)
		switch {
		case s == "" || spelling[id] != "":
			return nil, nil, fmt.Errorf("model.vocab: id %d is given to two tokens, or to none", id)
		case len(s) > maxSpelling:
			return nil, nil, fmt.Errorf("model.vocab: a token is longer than %d bytes", maxSpelling)
		}
		spelling[id] = s
	}
	return spelling, ids, nil
}

// grown makes s long enough to hold the index id.
func grown(s []string, id uint32) []string {
	if n := int(id) + 1; n > len(s) {
		s = append(s, make([]string, n-len(s))...)
	}
	return s
}

// merges reads the list of merges: "a b" in old files, ["a", "b"] in new ones.
func (m *model) merges() ([][]string, error) {
	const path = "model.merges"
	var list [][]string
	if first := bytes.TrimLeft(bytes.TrimPrefix(m.Merges, []byte{'['}), " \t\r\n"); len(first) > 0 && first[0] == '"' {
		var old []string
		if err := json.Unmarshal(m.Merges, &old); err != nil {
			return nil, jsonError(err, path, nil)
		}
		list = make([][]string, len(old))
		for i, s := range old {
			list[i] = strings.Split(s, " ")
		}
	} else if err := json.Unmarshal(m.Merges, &list); err != nil {
		return nil, jsonError(err, path, nil)
	}
	if len(list) > maxMerges {
		return nil, fmt.Errorf("%s: more than %d merges", path, maxMerges)
	}
	return list, nil
}

// jsonError says where, and leaves out what: the messages of package json quote their input.
func jsonError(err error, path string, data []byte) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		read := data[:min(int(syntax.Offset), len(data))]
		line := bytes.Count(read, []byte{'\n'}) + 1
		return fmt.Errorf("line %d, byte %d: not JSON", line, len(read)-bytes.LastIndexByte(read, '\n')-1)
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && path == "" {
		path = wrong.Field
	}
	if path == "" {
		return errors.New("not a JSON object")
	}
	return fmt.Errorf("%s: not of the type that is expected there", path)
}
