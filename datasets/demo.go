package datasets

import (
	"compress/gzip"
	_ "embed"
	"io"
	"strings"
)

//go:generate go run ./demolog demo.jsonl.gz

//go:embed demo.jsonl.gz
var demoLog string

// Demo opens the embedded demo log: half a minute of a made-up gateway in the
// format openai-log, with some 240 requests of three users. Command demolog beside
// this package wrote it; all of its text is invented.
func Demo() (io.ReadCloser, error) { return gzip.NewReader(strings.NewReader(demoLog)) }
