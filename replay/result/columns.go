package result

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// A column is one field of Result in the journal, under the name that it has in
// Parquet. Strings are plain, not dictionaries, so that each batch of a journal
// can be read by itself.
type column struct {
	field arrow.Field
	put   func(b array.Builder, r *Result)
	get   func(a arrow.Array, row int, r *Result)
	// Of a column with lists, else nil: what the list of a row takes, in bytes, and room for
	// those of all rows.
	size    func(a arrow.Array, row int) int64
	reserve func(b array.Builder, rows []Result)
}

// columns lists the journal's columns; a test holds that they are those of the
// Parquet file.
func columns() []column {
	return []column{
		number("row", func(r *Result) *int64 { return &r.RowID }),
		optional("session", func(r *Result) **int64 { return &r.Session }),
		text("category", func(r *Result) *string { return &r.Category }),
		text("class", func(r *Result) *string { return &r.Class }),
		number("due_ns", func(r *Result) *int64 { return &r.DueNS }),
		optional("released_ns", func(r *Result) **int64 { return &r.ReleasedNS }),
		optional("sent_ns", func(r *Result) **int64 { return &r.SentNS }),
		optional("headers_ns", func(r *Result) **int64 { return &r.HeadersNS }),
		optional("first_event_ns", func(r *Result) **int64 { return &r.FirstEventNS }),
		optional("first_token_ns", func(r *Result) **int64 { return &r.FirstTokenNS }),
		optional("last_token_ns", func(r *Result) **int64 { return &r.LastTokenNS }),
		optional("done_ns", func(r *Result) **int64 { return &r.DoneNS }),
		number("want_input_tokens", func(r *Result) *int32 { return &r.WantInput }),
		optional("want_output_tokens", func(r *Result) **int32 { return &r.WantOutput }),
		optional("known_tokens", func(r *Result) **int32 { return &r.Known }),
		optional("input_tokens", func(r *Result) **int32 { return &r.Input }),
		optional("cached_tokens", func(r *Result) **int32 { return &r.Cached }),
		optional("output_tokens", func(r *Result) **int32 { return &r.Output }),
		text("output_from", func(r *Result) *string { return &r.OutputFrom }),
		number("token_events", func(r *Result) *int32 { return &r.Events }),
		list("gaps_ns", func(r *Result) *[]int64 { return &r.GapsNS }),
		list("event_tokens", func(r *Result) *[]int32 { return &r.EventTokens }),
		optional("http_status", func(r *Result) **int32 { return &r.HTTPStatus }),
		text("error", func(r *Result) *string { return &r.Error }),
		text("finish_reason", func(r *Result) *string { return &r.FinishReason }),
		optional("first_content_ns", func(r *Result) **int64 { return &r.FirstContentNS }),
		number("round", func(r *Result) *int32 { return &r.Round }),
		text("api", func(r *Result) *string { return &r.API }),
		optional("endpoint", func(r *Result) **int32 { return &r.Endpoint }),
		number("attempts", func(r *Result) *int32 { return &r.Attempts }),
		optional("retry_after_ns", func(r *Result) **int64 { return &r.RetryAfterNS }),
		list("served", func(r *Result) *[]int32 { return &r.Served }),
		list("read_delays_us", func(r *Result) *[]int32 { return &r.ReadDelaysUS }),
		optional("thread", func(r *Result) **int32 { return &r.Thread }),
		optional("turn", func(r *Result) **int32 { return &r.Turn }),
		list("parents", func(r *Result) *[]int64 { return &r.Parents }),
		optional("think_ns", func(r *Result) **int64 { return &r.ThinkNS }),
		optional("tool_ns", func(r *Result) **int64 { return &r.ToolNS }),
		optional("play", func(r *Result) **int32 { return &r.Play }),
		optional("arrival_ns", func(r *Result) **int64 { return &r.ArrivalNS }),
		optional("recorded_e2e_ns", func(r *Result) **int64 { return &r.RecordedE2ENS }),
		optional("user", func(r *Result) **int64 { return &r.User }),
		text("model", func(r *Result) *string { return &r.Model }),
		text("adapter", func(r *Result) *string { return &r.Adapter }),
		text("refuted", func(r *Result) *string { return &r.Refuted }),
		optional("claimed_input_tokens", func(r *Result) **int64 { return &r.ClaimedInput }),
		optional("claimed_cached_tokens", func(r *Result) **int64 { return &r.ClaimedCached }),
		optional("claimed_output_tokens", func(r *Result) **int64 { return &r.ClaimedOutput }),
		optional("text_bytes", func(r *Result) **int64 { return &r.TextBytes }),
		optional("queue_ns", func(r *Result) **int64 { return &r.QueueNS }),
		optional("prefill_ns", func(r *Result) **int64 { return &r.PrefillNS }),
	}
}

// integers gives the Arrow side of the two integer types that Result has.
type integers[T int32 | int64] struct{}

func (integers[T]) dataType() arrow.DataType {
	var v T
	if _, ok := any(v).(int32); ok {
		return arrow.PrimitiveTypes.Int32
	}
	return arrow.PrimitiveTypes.Int64
}

func (integers[T]) append(b array.Builder, v T) {
	switch b := b.(type) {
	case *array.Int32Builder:
		b.Append(int32(v))
	case *array.Int64Builder:
		b.Append(int64(v))
	}
}

func (integers[T]) appendAll(b array.Builder, values []T) {
	switch b := b.(type) {
	case *array.Int32Builder:
		b.AppendValues(any(values).([]int32), nil)
	case *array.Int64Builder:
		b.AppendValues(any(values).([]int64), nil)
	}
}

// values are all of an array.
func (integers[T]) values(a arrow.Array) []T {
	if a, ok := a.(*array.Int32); ok {
		return any(a.Int32Values()).([]T)
	}
	return any(a.(*array.Int64).Int64Values()).([]T)
}

func (integers[T]) at(a arrow.Array, i int) T {
	if a, ok := a.(*array.Int32); ok {
		return T(a.Value(i))
	}
	return T(a.(*array.Int64).Value(i))
}

func number[T int32 | int64](name string, at func(*Result) *T) column {
	var t integers[T]
	return column{
		field: arrow.Field{Name: name, Type: t.dataType()},
		put:   func(b array.Builder, r *Result) { t.append(b, *at(r)) },
		get:   func(a arrow.Array, row int, r *Result) { *at(r) = t.at(a, row) },
	}
}

func optional[T int32 | int64](name string, at func(*Result) **T) column {
	var t integers[T]
	return column{
		field: arrow.Field{Name: name, Type: t.dataType(), Nullable: true},
		put: func(b array.Builder, r *Result) {
			if v := *at(r); v != nil {
				t.append(b, *v)
			} else {
				b.AppendNull()
			}
		},
		get: func(a arrow.Array, row int, r *Result) {
			if a.IsValid(row) {
				v := t.at(a, row)
				*at(r) = &v
			}
		},
	}
}

func text(name string, at func(*Result) *string) column {
	return column{
		field: arrow.Field{Name: name, Type: arrow.BinaryTypes.String},
		put:   func(b array.Builder, r *Result) { b.(*array.StringBuilder).Append(*at(r)) },
		get: func(a arrow.Array, row int, r *Result) {
			// A copy: the value lies in the batch's memory.
			*at(r) = string([]byte(a.(*array.String).Value(row)))
		},
	}
}

func list[T int32 | int64](name string, at func(*Result) *[]T) column {
	var t integers[T]
	return column{
		field: arrow.Field{Name: name, Type: arrow.ListOfNonNullable(t.dataType())},
		put: func(b array.Builder, r *Result) {
			l := b.(*array.ListBuilder)
			l.Append(true)
			t.appendAll(l.ValueBuilder(), *at(r))
		},
		get: func(a arrow.Array, row int, r *Result) {
			l := a.(*array.List)
			from, to := l.ValueOffsets(row)
			if from < to { // a copy: the values lie in the batch's memory
				*at(r) = slices.Clone(t.values(l.ListValues())[from:to])
			}
		},
		reserve: func(b array.Builder, rows []Result) {
			n := 0
			for i := range rows {
				n += len(*at(&rows[i]))
			}
			b.(*array.ListBuilder).ValueBuilder().Reserve(n)
		},
		size: func(a arrow.Array, row int) int64 {
			l := a.(*array.List)
			from, to := l.ValueOffsets(row)
			return int64(len(t.values(l.ListValues())[from:to])) * int64(
				t.dataType().(arrow.FixedWidthDataType).Bytes())
		},
	}
}

// journalSchema is the Arrow schema of a journal whose run is described by the
// JSON document run.
func journalSchema(run string) *arrow.Schema {
	var fields []arrow.Field
	for _, c := range columns() {
		fields = append(fields, c.field)
	}
	meta := arrow.NewMetadata([]string{runKey}, []string{run})
	return arrow.NewSchema(fields, &meta)
}
