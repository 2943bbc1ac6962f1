package trace

import (
	"io"
	"reflect"
)

// TextFree marks the row types that may be written. An Entry is not one, so a
// Writer of Entries does not compile.
type TextFree interface{ textFree() }

// A Reader yields rows, lifting io.Reader's contract: it fills a prefix of
// rows and returns their number; io.EOF comes with or after the last rows.
// Slices inside the rows belong to the caller until the next Read into the
// same batch: copy what must outlive it.
type Reader[T TextFree] interface {
	Read(rows []T) (int, error)
}

// A Writer accepts rows in their final order. It keeps nothing of the batch
// after it returns; n < len(rows) only with an error.
type Writer[T TextFree] interface {
	Write(rows []T) (int, error)
}

// Row is embedded, tagged `parquet:"-"`, by row types of other packages to mark
// them [TextFree]. Such a type holds numbers and strings from closed lists only.
type Row struct{}

func (Row) textFree() {}

// batchRows is how many rows the loops of this package move at a time: enough
// to amortise a call, small enough to stay in cache.
const batchRows = 512

// Each calls f for every row of src with its row number, until io.EOF or an
// error. The row and what it points to are reused after f returns.
func Each[T TextFree](src Reader[T], f func(row int64, r *T) error) error {
	batch := make([]T, batchRows)
	for row := int64(0); ; {
		n, err := src.Read(batch)
		for i := range batch[:n] {
			if err := f(row, &batch[i]); err != nil {
				return err
			}
			row++
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Copy moves all rows of src to dst and returns their number.
func Copy[T TextFree](dst Writer[T], src Reader[T]) (int64, error) {
	batch := make([]T, batchRows)
	var total int64
	for {
		n, err := src.Read(batch)
		if n > 0 {
			m, werr := dst.Write(batch[:n])
			total += int64(m)
			if werr != nil {
				return total, werr
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// SliceReader yields the rows of a slice, for tests and small inputs.
type SliceReader[T TextFree] struct{ Rows []T }

// Read implements [Reader].
func (s *SliceReader[T]) Read(rows []T) (int, error) {
	n := copy(rows, s.Rows)
	s.Rows = s.Rows[n:]
	if len(s.Rows) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// SliceWriter collects rows in memory, for tests and small outputs, with what they point to.
type SliceWriter[T TextFree] struct{ Rows []T }

// Write implements [Writer].
func (s *SliceWriter[T]) Write(rows []T) (int, error) {
	for _, row := range rows {
		fields := reflect.ValueOf(&row).Elem()
		for i := range fields.NumField() {
			f := fields.Field(i)
			switch {
			case !f.CanSet() || f.Kind() != reflect.Pointer && f.Kind() != reflect.Slice || f.IsNil():
			case f.Kind() == reflect.Pointer:
				value := reflect.New(f.Type().Elem())
				value.Elem().Set(f.Elem())
				f.Set(value)
			default:
				list := reflect.MakeSlice(f.Type(), f.Len(), f.Len())
				reflect.Copy(list, f)
				f.Set(list)
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return len(rows), nil
}
