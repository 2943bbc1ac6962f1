package datasets

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// converter returns what makes of a leaf's values that which encoding/json
// would have made of them, so that the same mappings fit: numbers keep their
// digits, and times become dates, with a zone when they are instants. Numbers
// that are none are missing.
func converter(t parquet.Type) func(parquet.Value) any {
	convert := byKind(t.Kind())
	logical := t.LogicalType()
	if logical == nil {
		return convert
	}
	switch logical := logical.Value.(type) {
	case *format.TimestampType:
		if unit, ok := logical.Unit.Value.(interface{ Duration() time.Duration }); ok {
			return timestamp(unit.Duration(), logical.IsAdjustedToUTC)
		}
	case *format.DecimalType:
		return decimal(int(logical.Scale))
	case *format.IntType:
		if !logical.IsSigned && t.Kind() == parquet.Int32 {
			return func(v parquet.Value) any { return integer(int64(v.Uint32())) }
		}
		if !logical.IsSigned && t.Kind() == parquet.Int64 {
			return func(v parquet.Value) any { return number(strconv.FormatUint(v.Uint64(), 10)) }
		}
	}
	return convert
}

func byKind(k parquet.Kind) func(parquet.Value) any {
	switch k {
	case parquet.Boolean:
		return func(v parquet.Value) any { return v.Boolean() }
	case parquet.Int32:
		return func(v parquet.Value) any { return integer(int64(v.Int32())) }
	case parquet.Int64:
		return func(v parquet.Value) any { return integer(v.Int64()) }
	case parquet.Float:
		return func(v parquet.Value) any { return float(float64(v.Float()), 32) }
	case parquet.Double:
		return func(v parquet.Value) any { return float(v.Double(), 64) }
	case parquet.Int96:
		return int96
	}
	return func(v parquet.Value) any { return strings.ToValidUTF8(string(v.ByteArray()), "\uFFFD") }
}

func integer(n int64) number { return number(strconv.FormatInt(n, 10)) }

// float spells all digits: readers of counts and times want no exponents.
func float(f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return number(strconv.FormatFloat(f, 'f', -1, bits))
}

func timestamp(unit time.Duration, instant bool) func(parquet.Value) any {
	perSecond := int64(time.Second / unit)
	return func(v parquet.Value) any {
		n := v.Int64()
		t := time.Unix(n/perSecond, n%perSecond*int64(unit)).UTC()
		if instant {
			return t.Format(time.RFC3339Nano)
		}
		return t.Format("2006-01-02T15:04:05.999999999")
	}
}

// int96 reads the times of older Spark and Impala: nanoseconds of a day, and
// the Julian day.
func int96(v parquet.Value) any {
	const epochDay = 2440588 // 1970-01-01
	n := v.Int96()
	nanos := int64(n[1])<<32 | int64(n[0])
	return time.Unix((int64(n[2])-epochDay)*86400, nanos).UTC().Format(time.RFC3339Nano)
}

// decimal places the point in an integer, of which longer ones are big-endian
// bytes in two's complement.
func decimal(scale int) func(parquet.Value) any {
	return func(v parquet.Value) any {
		n := new(big.Int)
		switch v.Kind() {
		case parquet.Int32:
			n.SetInt64(int64(v.Int32()))
		case parquet.Int64:
			n.SetInt64(v.Int64())
		default:
			b := v.ByteArray()
			n.SetBytes(b)
			if len(b) > 0 && b[0] >= 0x80 {
				n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
			}
		}
		if scale == 0 {
			return number(n.String())
		}
		if scale < 0 || scale > 76 { // of no precision that there is
			return nil
		}
		digits := new(big.Int).Abs(n).String()
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		at := len(digits) - scale
		if n.Sign() < 0 {
			return number("-" + digits[:at] + "." + digits[at:])
		}
		return number(digits[:at] + "." + digits[at:])
	}
}
