package datasets

import (
	"io"
)

// Open reads a source that a test holds in memory. Its errors name it log.
func Open(r io.Reader, o Options) (*Source, error) {
	return OpenFiles([]File{{Name: "log", Open: func() (io.ReadCloser, error) { return io.NopCloser(r), nil }}}, o)
}
