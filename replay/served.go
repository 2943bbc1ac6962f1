package replay

import (
	"net/http"
	"strings"
	"sync"

	"reprise/replay/result"
)

const (
	maxServedValues = 1024 // of one header; others are [result.OtherValue]
	maxServedValue  = 128  // bytes of one
)

// A servedBy turns header values into indexes. It is bounded, whatever servers send.
type servedBy struct {
	mu    sync.Mutex
	names []string
	index []map[string]int32
	list  [][]string
}

func newServedBy(names []string) *servedBy {
	s := &servedBy{}
	for _, name := range names {
		s.names = append(s.names, http.CanonicalHeaderKey(name))
		s.index = append(s.index, map[string]int32{})
		s.list = append(s.list, nil)
	}
	return s
}

// note returns an index for each recorded header, −1 where the answer has none, or an empty one; nil
// when nothing is recorded.
func (s *servedBy) note(header interface{ Get(name string) string }) []int32 {
	if len(s.names) == 0 {
		return nil
	}
	out := make([]int32, len(s.names))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, name := range s.names {
		value := header.Get(name)
		if value == "" {
			out[i] = -1
			continue
		}
		out[i] = s.find(i, servedValue(value))
	}
	return out
}

func (s *servedBy) find(i int, value string) int32 {
	if at, ok := s.index[i][value]; ok {
		return at
	}
	if len(s.list[i]) >= maxServedValues {
		if value != result.OtherValue {
			return s.find(i, result.OtherValue)
		}
	}
	at := int32(len(s.list[i]))
	s.index[i][value] = at
	s.list[i] = append(s.list[i], value)
	return at
}

// all returns the dictionaries.
func (s *servedBy) all() (out []result.Served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, name := range s.names {
		out = append(out, result.Served{Header: name, Values: append([]string{}, s.list[i]...)})
	}
	return out
}

// servedValue makes a header's value fit to be kept and shown.
func servedValue(v string) string {
	v = v[:min(len(v), maxServedValue)]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, v)
}
