package token

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// builtin are tiktoken's encodings.
var builtin = []struct {
	name string
	open func() (*Encoding, error)
}{
	{"cl100k_base", once("cl100k_base", splitCL100K)},
	{"o200k_base", once("o200k_base", splitO200K)},
	{"p50k_base", once("p50k_base", splitGPT2, 50256)},
	{"r50k_base", once("r50k_base", splitGPT2)},
}

func once(name string, split splitter, special ...uint32) func() (*Encoding, error) {
	return sync.OnceValues(func() (*Encoding, error) { return load(name, split, special...) })
}

// Names lists the encodings that [Open] knows.
func Names() []string {
	names := make([]string, len(builtin))
	for i, e := range builtin {
		names[i] = e.name
	}
	return names
}

// Open gives an encoding by its name. The first call reads the embedded vocabulary, in tens of milliseconds; later calls
// return the same Encoding. The error for an unknown name lists the known ones.
func Open(name string) (*Encoding, error) {
	for _, e := range builtin {
		if e.name == name {
			return e.open()
		}
	}
	return nil, fmt.Errorf("unknown tokenizer %q: want one of %s", name, strings.Join(Names(), ", "))
}

// OpenAny gives an encoding by its name, as [Open] does, or else by the path of a tokenizer.json or of a directory that holds
// one, as [OpenFile] does. A name that a trace recorded of a tokenizer.json does not say where the file is; the error for it
// asks for the path.
func OpenAny(nameOrPath string) (*Encoding, error) {
	for _, name := range Names() {
		if name == nameOrPath {
			return Open(name)
		}
	}
	info, err := os.Stat(nameOrPath)
	if err == nil && info.IsDir() {
		return OpenFile(filepath.Join(nameOrPath, fileName))
	}
	if err == nil {
		return OpenFile(nameOrPath)
	}
	if digest, ok := strings.CutPrefix(nameOrPath, fileName+":"); ok {
		return nil, fmt.Errorf("tokenizer %.40q is a %s whose SHA-256 begins with the digits behind the colon (%.16q): want its path",
			nameOrPath, fileName, digest)
	}
	return nil, fmt.Errorf("unknown tokenizer %q: want one of %s, or the path of a %s",
		nameOrPath, strings.Join(Names(), ", "), fileName)
}

// load reads a vocabulary from the files that package tiktoken-go-loader embeds. Its own reader is passed over: it returns a
// map, which costs five times the time and twice the memory of [vocab].
func load(name string, split splitter, special ...uint32) (*Encoding, error) {
	file := name + ".tiktoken"
	data, err := assets.Assets.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("open tokenizer %s: %w", name, err)
	}
	v, err := parseVocab(data, special...)
	if err != nil {
		return nil, fmt.Errorf("open tokenizer %s: embedded file %s: %w", name, file, err)
	}
	e := newEncoding(name, v, split)
	e.words = sync.OnceValue(func() *Words { return newWords(v) })
	return e, nil
}
