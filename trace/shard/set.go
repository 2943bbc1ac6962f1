package shard

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"reprise/trace"
	"reprise/trace/objectstore"
)

// Ext ends the names of shards.
const Ext = ".shard.parquet"

// Name is that of a shard in the folder of all.
func Name(index, of int) string {
	digits := len(strconv.Itoa(of - 1))
	return fmt.Sprintf("import-%0*d-of-%d%s", digits, index, of, Ext)
}

// Is reports whether one of some paths is a shard, or a folder with one, so that [Open] is
// what takes them.
func Is(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		if strings.HasSuffix(path, Ext) {
			return true
		}
		found, _ := objectstore.Glob(objectstore.Join(path, "*"+Ext))
		return len(found) > 0
	})
}

// A Set is all shards of one import, in their order.
type Set struct {
	names  []string
	shards []Meta
}

// Open opens the shards at paths: files, and folders of them. They must be all shards of one
// import, each once. Errors name the file.
func Open(paths []string) (*Set, error) {
	var files []string
	for _, path := range paths {
		info, err := objectstore.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		found, err := objectstore.Glob(objectstore.Join(path, "*"+Ext))
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: it holds no shards of an import (*%s)", path, Ext)
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	files = slices.Compact(files)
	byIndex := map[int]int{} // where a shard is, in files
	metas := make([]Meta, len(files))
	for i, file := range files {
		m, err := readMeta(file)
		if err != nil {
			return nil, err
		}
		metas[i] = m
		if why := m.unlike(&metas[0]); why != "" {
			return nil, fmt.Errorf("%s %s, as %s is: all shards of an import are made by one command over the same "+
				"files, with one key", file, why, files[0])
		}
		if before, twice := byIndex[m.Index]; twice {
			return nil, fmt.Errorf("%s and %s are both shard %d of %d: leave one out", files[before],
				file, m.Index, m.Of)
		}
		byIndex[m.Index] = i
	}
	return complete(files, metas, byIndex)
}

// maxNamed is how many missing shards are named.
const maxNamed = 10

// complete puts the shards in their order, if there are all of them.
func complete(files []string, metas []Meta, byIndex map[int]int) (*Set, error) {
	s := new(Set)
	of := metas[0].Of
	var missing []string
	next := 0
	for i := range of {
		at, ok := byIndex[i]
		if !ok {
			if missing = append(missing, strconv.Itoa(i)); len(missing) > maxNamed {
				missing[maxNamed] = "…"
				break
			}
			continue
		}
		m := metas[at]
		if len(missing) == 0 {
			if m.First != next && len(m.Files) > 0 {
				return nil, fmt.Errorf("%s begins with file %d of the source, where the shards before it end with "+
					"%d: it was cut in another way, so import it again", files[at], m.First+1, next)
			}
			next += len(m.Files)
		}
		s.names, s.shards = append(s.names, files[at]), append(s.shards, m)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("of %d shards %s missing: run import --shard I/%d again for each", of, are(missing), of)
	}
	var files2 []File
	for i := range s.shards {
		files2 = append(files2, s.shards[i].Files...)
	}
	if InputsOf(files2) != s.shards[0].Inputs {
		return nil, errors.New("the files of all shards together are not the files of the source: import it again")
	}
	return s, nil
}

func are(names []string) string {
	if len(names) == 1 {
		return "number " + names[0] + " is"
	}
	return "numbers " + strings.Join(names, ", ") + " are"
}

// Shards are what the shards say of themselves, in their order.
func (s *Set) Shards() []Meta { return s.shards }

// Prompts reads the sealed system prompts of the shard with this index; nil for none.
func (s *Set) Prompts(index int) ([]byte, error) {
	var prompts string
	err := s.with(index, func(f objectstore.File, size int64) error {
		p, err := trace.OpenParquet(f, size)
		if err == nil {
			prompts, _ = p.Lookup(promptsKey)
		}
		return err
	})
	if prompts == "" {
		return nil, err
	}
	return []byte(prompts), err
}

// with opens the file of a shard.
func (s *Set) with(index int, do func(f objectstore.File, size int64) error) error {
	f, err := objectstore.Open(s.names[index])
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		err = do(f, info.Size())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("%s: %w", s.names[index], err)
	}
	return nil
}

func readMeta(path string) (m Meta, err error) {
	s := Set{names: []string{path}}
	err = s.with(0, func(f objectstore.File, size int64) error {
		p, err := trace.OpenParquet(f, size)
		if err != nil {
			return err
		}
		text, _ := p.Lookup(metaKey)
		if m, err = parseMeta(text); err != nil {
			return err
		}
		rows := int64(0)
		for _, file := range m.Files {
			rows += file.Rows
		}
		if rows != p.NumRows() {
			return fmt.Errorf("it has %d rows, and says that it has %d", p.NumRows(), rows)
		}
		return nil
	})
	return m, err
}

// Rows calls do with the rows of all shards in the order of the source, some at a time: that
// of its files, and of the records in a file. Parents are positions in that order. One shard
// is open at a time.
func (s *Set) Rows(do func(rows []Row) error) error {
	before := int64(0) // rows of the files before the one at hand
	batch := make([]Row, 256)
	for i := range s.shards {
		err := s.with(i, func(f objectstore.File, size int64) error {
			src, err := trace.NewRowsReader[Row](f, size)
			if err != nil {
				return err
			}
			files := s.shards[i].Files
			file, left := -1, int64(0)
			for {
				n, end := src.Read(batch)
				for k := range batch[:n] {
					for left == 0 {
						if file >= 0 {
							before += files[file].Rows
						}
						if file++; file == len(files) {
							return errors.New("it has more rows than its files")
						}
						left = files[file].Rows
					}
					left--
					if err := batch[k].place(s.shards[i].First+file, before, files[file].Rows); err != nil {
						return err
					}
				}
				if err := do(batch[:n]); err != nil {
					return err
				}
				if end == io.EOF {
					break
				}
				if end != nil {
					return end
				}
			}
			for ; file < len(files); file++ {
				if file >= 0 {
					before += files[file].Rows
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// place makes a row of a file with so many rows one of the source.
func (r *Row) place(file int, before, rows int64) error {
	q := &r.Recorded.Request
	if q.InputTokens < 0 || q.OutputOr(0) < 0 || r.Messages < 0 || len(q.Blocks)%2 != 0 || len(q.OutputBlocks)%2 != 0 {
		return errors.New("a row has a negative count or an incomplete block id")
	}
	for k, p := range q.Parents {
		if p < 0 || p >= rows {
			return errors.New("a row has a parent in no row of its file")
		}
		q.Parents[k] = before + p
	}
	r.File = file
	return nil
}
