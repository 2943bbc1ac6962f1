package record

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// normalEncoding is a content encoding, empty for none.
func normalEncoding(header string) string {
	name := strings.ToLower(strings.TrimSpace(header))
	if name == "identity" {
		return ""
	}
	return name
}

var errEncoding = errors.New("its content encoding is unknown")

// decoder reads what is compressed by an encoding.
func decoder(encoding string, src io.Reader) (io.ReadCloser, error) {
	switch encoding {
	case "gzip", "x-gzip":
		return gzip.NewReader(src)
	case "deflate":
		return zlib.NewReader(src)
	case "br":
		return io.NopCloser(brotli.NewReader(src)), nil
	case "zstd":
		d, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxExchange))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return nil, errEncoding
}

// plain is a body without its encoding. One that unpacks to more than an exchange may
// have is refused.
func plain(body []byte, encoding string) ([]byte, error) {
	if encoding = normalEncoding(encoding); encoding == "" {
		return body, nil
	}
	src, err := decoder(encoding, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer src.Close()
	out, err := io.ReadAll(io.LimitReader(src, maxExchange))
	if len(out) == maxExchange {
		err = errEncoding
	}
	return out, err
}
