package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"reprise/datasets/internal/fault"
)

// envelopeLists are the keys under which APIs and exports list records, and
// envelopeKeys what else such an envelope holds. An object with any other key is a
// record itself, whatever it lists.
var (
	envelopeLists = []string{"data", "result", "results", "traces", "runs", "logs", "events", "items", "records",
		"rows", "value", "entries"}
	envelopeKeys = []string{"object", "meta", "metadata", "cursor", "cursors", "next", "next_cursor", "nextCursor",
		"next_page", "next_page_token", "nextPageToken",
		"has_more", "hasMore", "count", "total", "total_count", "totalCount", "page", "pages", "limit", "offset",
		"pagination", "paging",
		"success", "errors", "messages", "status", "code", "message", "result_info", "first_id", "last_id", "schema",
		"version", "generated_at", "exported_at", "@odata.context", "nextLink",
		"statistics", "searchedLogStreams", "nextToken", "nextForwardToken", "nextBackwardToken",
		"queryLanguage", "encryptionKey"}
)

// listsRecords reports whether a list is of records, by what it begins with: of objects, or of
// conversations or the rows of a query that are lists.
func listsRecords(key string, inList []byte) bool {
	return len(inList) > 0 && (inList[0] == '{' && slices.Contains(envelopeLists, key) ||
		inList[0] == '[' && (key == "conversations" || key == "results"))
}

// EnvelopeList returns the key of the list that holds the records, where head begins
// with an object that only envelops it, and what head has of that list; "" where it
// is none.
func EnvelopeList(head []byte) (list string, records []byte) {
	dec := json.NewDecoder(bytes.NewReader(head))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return "", nil
	}
	for dec.More() {
		t, err := dec.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			break
		}
		rest := bytes.TrimLeft(head[dec.InputOffset():], ": \t\r\n")
		inList, isList := bytes.CutPrefix(rest, []byte("["))
		inList = bytes.TrimLeft(inList, " \t\r\n")
		switch {
		case isList && list == "" && listsRecords(key, inList):
			list, records = key, rest
		case !slices.Contains(envelopeKeys, key):
			return "", nil
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			break // it goes on after what is looked at
		}
	}
	return list, records
}

// An envelopeReader yields the members of a list in an object, and of those in any
// further objects, such as the pages of an API one after the other. Memory is bounded
// by the largest member and by the largest of the other values.
type envelopeReader struct {
	arrayReader
	list   string
	inside bool // an object, between its members
	listed bool // this object had the list
}

// NewEnvelope reads the members of the list under a key, see [EnvelopeList].
func NewEnvelope(in *bufio.Reader, list string) Reader {
	return &envelopeReader{arrayReader: *newArrayReader(in), list: list}
}

const (
	wantEnvelope = "want an object that lists the records, as the first one does"
	wantMember   = "want a key, a comma or the end of the object"
)

func (e *envelopeReader) Next() ([]byte, error) {
	for {
		if e.state != beforeArray && e.state != afterArray {
			raw, err := e.member()
			if raw != nil || err != nil {
				return raw, err
			}
			continue
		}
		c, err := e.peek()
		switch {
		case err == io.EOF && !e.inside:
			return nil, io.EOF
		case err != nil:
			return nil, e.fail(err)
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || e.inside && c == ',':
		case !e.inside && c == '{':
			e.inside, e.listed, e.state = true, false, beforeArray
		case e.inside && c == '}':
			if !e.listed {
				return nil, fault.Refuse(e.pos.line, e.pos.col, wantEnvelope)
			}
			e.inside = false
		case e.inside && c == '"':
			if err := e.field(); err != nil {
				return nil, err
			}
			continue
		case e.inside:
			return nil, fault.Refuse(e.pos.line, e.pos.col, wantMember)
		default:
			return nil, fault.Refuse(e.pos.line, e.pos.col, wantEnvelope)
		}
		if err := e.consume(1); err != nil {
			return nil, e.fail(err)
		}
	}
}

// field passes over a key and its value, or stops within the list.
func (e *envelopeReader) field() error {
	raw, err := e.element('"')
	if err != nil {
		return err
	}
	var key string
	isKey := json.Unmarshal(raw, &key) == nil
	c, err := e.afterSpace()
	if err != nil {
		return e.fail(err)
	}
	if c != ':' || !isKey {
		return fault.Refuse(e.pos.line, e.pos.col, wantMember)
	}
	if err := e.consume(1); err != nil {
		return e.fail(err)
	}
	if c, err = e.afterSpace(); err != nil {
		return e.fail(err)
	}
	if key == e.list && c == '[' && !e.listed {
		e.listed, e.state = true, beforeArray
		if err := e.consume(1); err != nil {
			return e.fail(err)
		}
		e.state = beforeElement
		return nil
	}
	_, err = e.element(c)
	return err
}

func (e *envelopeReader) afterSpace() (byte, error) {
	for {
		c, err := e.peek()
		if err != nil || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, err
		}
		if err := e.consume(1); err != nil {
			return 0, err
		}
	}
}

// member returns the next member of the list; nil at its end.
func (e *envelopeReader) member() ([]byte, error) {
	c, err := e.afterSpace()
	if err != nil {
		return nil, e.fail(err)
	}
	switch {
	case c == ']':
		e.state = afterArray
	case c == ',' && e.state == afterElement:
		e.state = beforeElement
	case c != ',' && c != '}' && e.state == beforeElement:
		e.state = afterElement
		return e.element(c)
	default:
		return nil, fault.Refuse(e.pos.line, e.pos.col, "want an element, a comma or the end of the JSON array")
	}
	return nil, e.consume(1)
}
