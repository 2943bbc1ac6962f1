package token

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	fileName = "tokenizer.json"
	maxFile  = 256 << 20 // Gemma 3 has 33 MB
)

// Bounds far above every published file.
const (
	maxSpelling = 1 << 16 // bytes of a token
	maxContent  = 1 << 10 // bytes of an added token
	maxContents = 1 << 22 // bytes of all added tokens
)

// A document is a tokenizer.json, with the fields that are read here.
type document struct {
	Added         []addedToken `json:"added_tokens"`
	Normalizer    *part        `json:"normalizer"`
	PreTokenizer  *part        `json:"pre_tokenizer"`
	PostProcessor *part        `json:"post_processor"`
	Decoder       *part        `json:"decoder"`
	Model         *model       `json:"model"`
}

// An addedToken is searched for in the text before anything else.
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

// tokens reads the vocabulary: the spelling of each id, "" for an id without one, and the way back. The first inModel
// spellings are those of the model; the added tokens that the model lacks follow, by the ids that the file gives. (The
// library numbers them anew, and warns where the file says otherwise.)
func (d *document) tokens() (spelling []string, inModel int, ids map[string]uint32, err error) {
	if err := json.Unmarshal(d.Model.Vocab, &ids); err != nil {
		return nil, 0, nil, jsonError(err, "model.vocab", nil)
	}
	if len(ids) > maxTokens {
		return nil, 0, nil, fmt.Errorf("model.vocab: more than %d tokens", maxTokens)
	}
	spelling = make([]string, 0, len(ids))
	for s, id := range ids {
		if id >= maxTokens {
			return nil, 0, nil, fmt.Errorf("model.vocab: an id is above %d", maxTokens-1)
		}
		spelling = grown(spelling, id)
		switch {
		case s == "" || spelling[id] != "":
			return nil, 0, nil, fmt.Errorf("model.vocab: id %d is given to two tokens, or to none", id)
		case len(s) > maxSpelling:
			return nil, 0, nil, fmt.Errorf("model.vocab: a token is longer than %d bytes", maxSpelling)
		}
		spelling[id] = s
	}
	inModel = len(spelling)
	total := 0
	for i, t := range d.Added {
		total += len(t.Content)
		switch {
		case t.ID == nil || *t.ID >= maxTokens:
			return nil, 0, nil, fmt.Errorf("added_tokens[%d].id: missing, or above %d", i, maxTokens-1)
		case len(t.Content) > maxContent || total > maxContents:
			return nil, 0, nil, fmt.Errorf("added_tokens[%d].content: too long", i)
		case t.Content == "":
			continue
		}
		spelling = grown(spelling, *t.ID)
		if id, ok := ids[t.Content]; ok && id != *t.ID || spelling[*t.ID] != "" && spelling[*t.ID] != t.Content {
			return nil, 0, nil, fmt.Errorf("added_tokens[%d].id: %d contradicts the vocabulary or another added token",
				i, *t.ID)
		}
		spelling[*t.ID] = t.Content
	}
	return spelling, inModel, ids, nil
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
