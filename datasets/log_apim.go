package datasets

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strconv"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
)

// A heldRow is a row that outlives the reading of the next one.
type heldRow struct {
	values    map[string]any
	line, col int64
}

func (h *heldRow) Value(path string) (any, bool) { return row.Lookup(h.values, path) }

func (h *heldRow) Place(string) (line, col int64) { return h.line, h.col }

func (h *heldRow) Cut() bool { return false }

// tableRows are the rows of the tables in records, as Azure's Log Analytics answers: lists
// beside the names of their columns. Other records are rows themselves.
type tableRows struct {
	in   row.Reader
	rest []*heldRow
}

func (t *tableRows) Next() (row.Row, error) {
	for len(t.rest) == 0 {
		r, err := t.in.Next()
		if err != nil {
			return nil, err
		}
		found, ok := r.Value("tables")
		tables, isList := found.([]any)
		if !ok || !isList {
			return r, nil
		}
		line, col := r.Place("tables")
		for _, table := range tables {
			names, _ := row.Lookup(table, "columns")
			columns, _ := names.([]any)
			members, _ := row.Lookup(table, "rows")
			list, _ := members.([]any)
			for _, member := range list {
				cells, _ := member.([]any)
				values := map[string]any{}
				for i, column := range columns[:min(len(columns), len(cells))] {
					if name, _ := row.Lookup(column, "name"); row.IsString(name) && cells[i] != nil {
						values[name.(string)] = cells[i]
					}
				}
				if whole, ok := r.(row.JSONRow); ok {
					whole.Fields.Admit(values)
				}
				t.rest = append(t.rest, &heldRow{values, line, col})
			}
		}
	}
	r := t.rest[0]
	t.rest = t.rest[1:]
	return r, nil
}

// isLLMTable tells an answer of Log Analytics by the columns of its first table.
func isLLMTable(head []byte) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(head), []byte("{")) ||
		!sniff.Any(record.Keys(bytes.TrimSpace(head)), "tables") {
		return false
	}
	value, _, whole := row.DecodeJSON(bytes.TrimSpace(head))
	if !whole {
		value, _, _ = row.DecodeJSON(sniff.Closed(bytes.TrimSpace(head)))
	}
	found, _ := row.Lookup(value, "tables.0.columns")
	columns, _ := found.([]any)
	var names []string
	for _, column := range columns {
		name, _ := row.Lookup(column, "name")
		names = append(names, row.Plain(name))
	}
	return slices.Contains(names, "CorrelationId") && slices.Contains(names, "PromptTokens")
}

// apimParts is the messages of one call, by the sequence of their rows. Azure logs the
// counts in the first, number 0, and messages in those after it, in pieces of 32 KB.
type apimParts struct {
	counts *heldRow // nil before it was read
	pieces map[string]map[int]any
}

// apimColumns hold messages.
var apimColumns = []string{"RequestMessages", "ResponseMessages"}

// maxApimCalls is how many calls wait for rows that belong to them.
const maxApimCalls = 1000

const noteApimLost = "rows of messages without the row of their counts were left out"

// apimRows are calls, each joined of its rows by CorrelationId. Rows of one call stand
// closer together than maxApimCalls calls.
type apimRows struct {
	in     row.Reader
	fields Mapping
	tell   *fault.Notes
	open   map[string]*apimParts
	queue  []string
	taken  int // calls so far
	eof    bool
}

func (a *apimRows) Next() (row.Row, error) {
	for {
		for !a.eof && len(a.queue) <= maxApimCalls {
			err := a.take()
			if a.eof = err == io.EOF; err != nil && !a.eof {
				return nil, err
			}
		}
		if len(a.queue) == 0 {
			return nil, io.EOF
		}
		parts := a.open[a.queue[0]]
		delete(a.open, a.queue[0])
		a.queue = a.queue[1:]
		if parts.counts == nil {
			a.tell.Count(noteApimLost)
			continue
		}
		for name, pieces := range parts.pieces {
			parts.counts.values[name] = joinPieces(pieces)
		}
		return parts.counts, nil
	}
}

// take reads a row to its call.
func (a *apimRows) take() error {
	r, err := a.in.Next()
	if err != nil {
		return err
	}
	id, _ := r.Value("CorrelationId")
	key := row.Plain(id)
	sequence, _ := r.Value("SequenceNumber")
	n, _ := strconv.Atoi(row.Plain(sequence))
	parts := a.open[key]
	if parts == nil || n == 0 && parts.counts != nil || key == "" {
		if parts != nil || key == "" {
			key += "\x00" + strconv.Itoa(a.taken) // another call, or the same one told twice
		}
		a.taken++
		parts = &apimParts{pieces: map[string]map[int]any{}}
		a.open[key], a.queue = parts, append(a.queue, key)
	}
	for _, name := range apimColumns {
		if piece, ok := r.Value(name); ok {
			if parts.pieces[name] == nil {
				parts.pieces[name] = map[int]any{}
			}
			parts.pieces[name][n] = piece
		}
	}
	if n != 0 {
		return nil
	}
	held := &heldRow{values: map[string]any{}}
	held.line, held.col = r.Place("")
	for _, paths := range a.fields {
		for _, path := range paths {
			if v, ok := r.Value(path); ok && !slices.Contains(apimColumns, path) {
				held.values[path] = v
			}
		}
	}
	parts.counts = held
	return nil
}

// joinPieces puts the pieces of messages together: texts to one text, lists to one list.
func joinPieces(pieces map[int]any) any {
	var text string
	var list []any
	for _, n := range slices.Sorted(maps.Keys(pieces)) {
		switch piece := pieces[n].(type) {
		case string:
			text += piece
		case []any:
			list = append(list, piece...)
		}
	}
	if list != nil {
		return list
	}
	return text
}
