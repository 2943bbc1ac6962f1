package token

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchFiles are the published files in REPRISE_TEST_TOKENIZERS, or else the small trained ones. These have few words, so that
// most pieces come from the cache.
func benchFiles(b *testing.B) map[string]*Encoding {
	b.Helper()
	all := make(map[string]*Encoding)
	files, _ := filepath.Glob(filepath.Join(os.Getenv("REPRISE_TEST_TOKENIZERS"), "*", fileName))
	for _, file := range files {
		e, err := openFile(file)
		if err != nil {
			b.Fatal(err)
		}
		all[filepath.Base(filepath.Dir(file))] = e
	}
	if len(all) > 0 {
		return all
	}
	for _, f := range mustFamilies(b) {
		all[f.Name] = f.encoding(b)
	}
	return all
}

func BenchmarkAppendFile(b *testing.B) {
	for name, e := range benchFiles(b) {
		for _, text := range []struct{ name, text string }{
			{"english", english}, {"go", goCode}, {"chinese", chinese}, {"sharegpt", strings.Join(shareGPT(b), "\n")},
		} {
			if text.text != "" {
				b.Run(name+"/"+text.name, func(b *testing.B) { benchmarkAppend(b, e, text.text) })
			}
		}
	}
}
