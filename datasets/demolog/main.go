// Command demolog makes the demo log that package datasets embeds: a gateway
// log of a made-up support service, as gzipped JSON lines.
//
//		go run ./demolog demo.jsonl.gz
//
//	 1. A small grammar writes English-like text; all of it is invented.
//	 2. A scenario places requests in half a minute: chats of several turns that
//	    share a system prompt, questions about one shared document, single
//	    requests of very different lengths, repeats, and a few that failed.
//	 3. The log is written in order of arrival, with the token counts that an
//	    endpoint would report.
//
// The seed is fixed: running it again writes the same log.
//
// # Files
//
//   - main.go: the log as gzipped JSON lines
//   - scenario.go: the requests: users, chats, documents, lengths, failures and times
//   - text.go: the grammar of the invented sentences
package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"github.com/pkoukk/tiktoken-go"
	tiktoken_loader "github.com/pkoukk/tiktoken-go-loader"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: demolog FILE")
		os.Exit(2)
	}
	f, err := os.Create(os.Args[1])
	if err == nil {
		zip, _ := gzip.NewWriterLevel(f, gzip.BestCompression) // a level that gzip knows
		err = errors.Join(write(zip), zip.Close(), f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demolog:", err)
		os.Exit(1)
	}
}

// write writes the log as JSON lines.
func write(w io.Writer) error {
	tiktoken.SetBpeLoader(tiktoken_loader.NewOfflineLoader())
	tokens, err := tiktoken.GetEncoding("o200k_base")
	if err != nil {
		return err
	}
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	s := &scenario{writer: writer{rand.New(rand.NewPCG(2026, 5))}, tokens: tokens}
	for _, r := range s.makeRecords() {
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
