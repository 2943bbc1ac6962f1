package anonymize

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/parquet-go/parquet-go"

	"reprise/trace"
)

// A RawText is an open raw file, whose text was checked against its digest and
// waits in a private file without a name. Its inputs can be read in any order,
// by one goroutine.
type RawText struct {
	text   *rawKeeper
	digest string
}

var (
	errOtherRaw  = errors.New("it belongs to another trace: the digests differ")
	errNoRaw     = errors.New("the trace has no raw file: import the log with --tier raw")
	errOpenRaw   = errors.New("it holds raw text and other users can read it: run chmod 600 on it first")
	errBrokenRaw = errors.New("the raw file is damaged")
	errNotRaw    = errors.New("it is not a raw file of import --tier raw")
	errNoText    = errors.New("the raw file has no text for this row")
	errEmbedding = errors.New("the row is an embedding request, which a verbatim replay does not send")
	errToolsJSON = errors.New("the row's tools are not valid JSON")
)

// OpenRaw opens the raw file that belongs to a trace. It is an error if that is
// another one, if any of its text was changed, or if others than its owner may
// read it. Errors quote nothing of it.
func OpenRaw(path string, of trace.Meta) (raw *RawText, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case of.Raw == "":
		return nil, errNoRaw
	case !info.Mode().IsRegular():
		return nil, errNotRaw
	case info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/':
		return nil, errOpenRaw
	}
	p, err := trace.OpenParquet(f, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	has := func(key, value string) bool {
		got, _ := p.Lookup(key)
		return got == value
	}
	switch {
	case !has(rawSchemaKey, trace.RawSchema):
		return nil, errNotRaw
	case !has(rawRowsKey, of.Digest), !has(rawDigestKey, of.Raw):
		return nil, errOtherRaw
	}
	text, err := newRawKeeper("")
	if err != nil {
		return nil, err
	}
	nonce, _ := p.Lookup(rawNonceKey)
	if err := text.fill(p, rawDigestOf(nonce), of.Raw); err != nil {
		return nil, errors.Join(err, text.close())
	}
	return &RawText{text, of.Raw}, nil
}

// fill reads all rows and holds them against the digest.
func (k *rawKeeper) fill(p *parquet.File, d *rawDigest, want string) (err error) {
	defer func() { // the library panics at some damaged files
		if recover() != nil {
			err = errBrokenRaw
		}
	}()
	rows := parquet.NewGenericReader[rawRow](p)
	batch := make([]rawRow, 16)
	var text []byte
	for next := int64(0); ; {
		n, err := rows.Read(batch)
		for i := range batch[:n] {
			if batch[i].Row != next {
				return errBrokenRaw
			}
			next++
			text = batch[i].append(text[:0])
			d.addText(text)
			if err := k.addText(text); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF && d.sum() != want:
			return errOtherRaw
		case err == io.EOF:
			return k.flush()
		case err != nil, n == 0: // some damaged files would give nothing for ever
			return errBrokenRaw
		}
	}
}

// Close drops the text.
func (r *RawText) Close() error { return r.text.close() }

// Digest is that of the file.
func (r *RawText) Digest() string { return r.digest }

// AppendInput appends the input of a row as members of the JSON body of a request
// to an OpenAI-compatible endpoint: messages and tools of a chat, the prompt of a
// completion, by the kind of the row. A developer's messages are a system's, as they were
// read; else the source's text is unchanged. fields are the other members of the source's
// body, as a JSON object, nil where the body is not known.
func (r *RawText) AppendInput(row int64, kind string, b []byte) (chat bool, out, fields []byte, err error) {
	if row < 0 || row >= int64(len(r.text.at)) {
		return false, b, nil, errNoText
	}
	text, err := r.text.textAt(row)
	if err != nil {
		return false, b, nil, err
	}
	var raw rawRow
	if err := raw.decode(text); err != nil {
		return false, b, nil, err
	}
	if raw.Fields != "" {
		fields = []byte(raw.Fields)
	}
	switch {
	case len(raw.Messages) == 0:
		return false, b, nil, errNoText
	case kind == "embedding":
		return false, b, nil, errEmbedding
	case kind == "completion":
		var prompt string
		for _, m := range raw.Messages {
			prompt += m.Content
		}
		out, err = appendMember(b, "prompt", prompt)
		return false, out, fields, err
	}
	messages := make([]chatMessage, len(raw.Messages))
	for i := range raw.Messages {
		m := &raw.Messages[i]
		messages[i] = chatMessage{m.Role, &m.Content, json.RawMessage(m.Calls), m.CallID, m.Name}
		if m.Content == "" && m.Calls != "" {
			messages[i].Content = nil // as the API has a message that only calls
		}
	}
	out, err = appendMember(b, "messages", messages)
	if err == nil && raw.Tools != "" {
		out, err = appendMember(append(out, ','), "tools", json.RawMessage(raw.Tools))
	}
	if err != nil {
		return true, b, nil, errToolsJSON // what else there is are strings
	}
	return true, out, fields, nil
}

// A chatMessage is a message as the API takes it.
type chatMessage struct {
	Role    string          `json:"role"`
	Content *string         `json:"content"`
	Calls   json.RawMessage `json:"tool_calls,omitempty"`
	CallID  string          `json:"tool_call_id,omitempty"`
	Name    string          `json:"name,omitempty"`
}

// appendMember appends a member of a JSON object, without the escapes for HTML.
func appendMember(b []byte, name string, value any) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return b, err
	}
	b = append(append(append(b, '"'), name...), '"', ':')
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}
