package resulttest

import (
	"encoding/json"
	"math"
	"reflect"

	"reprise/replay/result"
	"reprise/trace"
)

// WriteDrawn writes the results of a run whose values are all drawn from bytes: those of so many rows,
// and what is said of the run. An error says that they cannot be written.
func WriteDrawn(path string, drawn []byte, rows int) error {
	of := &drawnValues{bytes: drawn}
	var run result.Run
	of.fill(reflect.ValueOf(&run).Elem())
	run.Schema, run.Version = result.Schema, "test"
	all := make([]result.Result, rows)
	of.endless = true
	for i := range all {
		of.fill(reflect.ValueOf(&all[i]).Elem())
		all[i].RowID = int64(i)
	}
	if of.next()%8 > 0 {
		makeConsistent(&run, all)
	}
	return result.Write(path, run, &trace.SliceReader[result.Result]{Rows: all})
}

// makeConsistent mends what every reader refuses at once, so that most drawn results get as far as a report:
// instants out of order, negative counts, gaps that are not those of the events.
func makeConsistent(run *result.Run, rows []result.Result) {
	if s := run.Stalls; s != nil {
		s.Intervals, s.TotalNS = nil, max(s.TotalNS, 0)
		s.Count = max(s.Count, 0)
	}

	for i := range rows {
		r := &rows[i]
		r.DueNS = max(r.DueNS, 0) % (1 << 40)
		at := r.DueNS
		for _, instant := range []*int64{r.SentNS, r.HeadersNS, r.FirstEventNS, r.FirstTokenNS,
			r.LastTokenNS, r.DoneNS} {
			if instant != nil {
				at += max(*instant, 0) % (1 << 40)
				*instant = at
			}
		}

		for _, count := range []*int32{&r.WantInput, r.WantOutput, r.Known, r.Input, r.Cached, r.Output} {
			if count != nil {
				*count = max(*count, 0)
			}
		}
		for j := range r.GapsNS {
			r.GapsNS[j] = max(r.GapsNS[j], 0) % (1 << 40)
		}
		for j := range r.EventTokens {
			r.EventTokens[j] = max(r.EventTokens[j], 0)
		}
		r.Events = int32(len(r.GapsNS)) + 1
	}
}

// drawnValues are drawn from bytes: each value is nothing, small, or anything.
type drawnValues struct {
	bytes   []byte
	endless bool // numbers may be infinite or none, which JSON does not have
}

func (v *drawnValues) next() byte {
	if len(v.bytes) == 0 {
		return 0
	}
	b := v.bytes[0]
	v.bytes = append(v.bytes[1:], b+1) // it never ends
	return b
}

func (v *drawnValues) fill(to reflect.Value) {
	switch to.Kind() {
	case reflect.Struct:
		for i := range to.NumField() {
			if to.Type().Field(i).IsExported() {
				v.fill(to.Field(i))
			}
		}
	case reflect.Pointer:
		if v.next()%4 > 0 {
			to.Set(reflect.New(to.Type().Elem()))
			v.fill(to.Elem())
		}
	case reflect.Map:
		to.Set(reflect.MakeMap(to.Type()))
		for range v.next() % 3 {
			key, value := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
			v.fill(key)
			v.fill(value)
			to.SetMapIndex(key, value)
		}
	case reflect.Slice:
		if _, is := to.Interface().(json.RawMessage); is {
			to.SetBytes([]byte(`"x"`))
			return
		}
		to.Set(reflect.MakeSlice(to.Type(), int(v.next()%4), 4))
		for i := range to.Len() {
			v.fill(to.Index(i))
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		switch n := v.next(); {
		case n < 80:
			to.SetInt(int64(n))
		case n < 160:
			to.SetInt(int64(n) << min(24, to.Type().Bits()-9))
		case n < 240:
			to.SetInt(-int64(n))
		default:
			to.SetInt(math.MaxInt64 >> (64 - to.Type().Bits()) * int64(1-2*int(n%2)))
		}
	case reflect.String:
		to.SetString([]string{"", "usage", "timeout", "chat", "embeddings", "cancelled", "x\u202e<b>",
			"cold"}[v.next()%8])
	case reflect.Bool:
		to.SetBool(v.next()%2 > 0)
	case reflect.Float64, reflect.Float32:
		all := []float64{0, 1, -1, 1e300, math.Inf(1), math.NaN()}
		if !v.endless {
			all = all[:4]
		}
		to.SetFloat(all[int(v.next())%len(all)])
	case reflect.Uint64, reflect.Uint32, reflect.Uint8:
		to.SetUint(uint64(v.next()) % 256)
	}
}
