package record_test

import (
	"bytes"

	"github.com/klauspost/compress/gzip"
)

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.Bytes()
}
