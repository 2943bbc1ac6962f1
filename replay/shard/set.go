package shard

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"reprise/replay/result"
	"reprise/trace/objectstore"
)

// A Set is the shards of one load, opened.
type Set struct {
	of     int
	shards []member // by their index
	gaps   []string // why it is not whole, in words; empty of a whole set
}

// A member is the results of one shard.
type member struct {
	path string
	file *result.File
}

func (m *member) share() result.Share { return m.file.Run.Shard.Share }

// ErrNoSet is the error of shards that are not a whole set.
var ErrNoSet = errors.New("these are not the shards of one load")

// Open opens the results of shards: files, or folders of them. It refuses, with [ErrNoSet] and
// by name, a shard that is of another load than most, that is there twice, that ended early or is
// missing. With incomplete the last two are taken, and [Set.Gaps] says so.
func Open(paths []string, incomplete bool) (*Set, error) {
	var files []string
	for _, path := range paths {
		found, err := filesAt(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	s := new(Set)
	var faults []string
	for _, path := range slices.Compact(files) {
		f, err := result.Open(path)
		switch {
		case err != nil:
			return nil, errors.Join(err, s.Close())
		case f.Run.Shard == nil:
			faults = append(faults, fmt.Sprintf("%s is no shard: it has the whole of a load", path))
			f.Close()
		default:
			s.shards = append(s.shards, member{path, f})
		}
	}
	if len(s.shards) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoSet,
			cmp.Or(strings.Join(faults, "; "), "there are no results in "+strings.Join(paths, ", ")))
	}
	faults = append(faults, s.foreign()...)
	faults = append(faults, s.repeated()...)
	s.gaps = s.missing()
	if !incomplete {
		faults = append(faults, s.gaps...)
	}
	if len(faults) > 0 {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrNoSet, strings.Join(faults, "; ")), s.Close())
	}
	return s, nil
}

// IsResults says whether a file, or one in a folder, has the results of a run by its beginning
// and its name: what merge is to do with it.
func IsResults(path string) bool {
	files, err := filesAt(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(files, func(name string) bool {
		f, err := result.Open(name)
		if err != nil {
			return false
		}
		f.Close()
		return true
	})
}

// filesAt lists the results in a folder, and the journals of those that did not finish.
func filesAt(path string) ([]string, error) {
	info, err := objectstore.Stat(path)
	if errors.Is(err, os.ErrNotExist) { // of a run that did not finish
		if _, other := objectstore.Stat(result.JournalName(path)); other == nil {
			return []string{result.JournalName(path)}, nil
		}
	}
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	const ext, metrics = ".parquet", ".metrics.parquet"
	entries, err := objectstore.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := objectstore.Join(path, e.Name())
		whole, journal := strings.CutSuffix(name, result.JournalName(""))
		if e.IsDir() || !strings.HasSuffix(whole, ext) || strings.HasSuffix(whole, metrics) {
			continue
		}
		if _, err := objectstore.Stat(whole); journal && err == nil {
			continue // it was killed between the two
		}
		out = append(out, name)
	}
	return out, nil
}

// foreign names the shards that are not of the load that most are of, and leaves the others.
func (s *Set) foreign() (faults []string) {
	type load struct {
		workload, settings, version string
		of                          int
	}
	of := func(m *member) load {
		r := &m.file.Run
		return load{r.Workload, r.Shard.Settings, r.Version, r.Shard.Of}
	}
	count := map[load]int{}
	for i := range s.shards {
		count[of(&s.shards[i])]++
	}
	most := of(&s.shards[0])
	for i := range s.shards { // the first of those with the highest count
		if k := of(&s.shards[i]); count[k] > count[most] {
			most = k
		}
	}
	var one *result.Run
	for i := range s.shards {
		if of(&s.shards[i]) == most {
			one = &s.shards[i].file.Run
			break
		}
	}
	var own []member
	for i := range s.shards {
		m := &s.shards[i]
		k := of(m)
		why := ""
		switch {
		case k == most:
			own = append(own, *m)
			continue
		case k.workload != most.workload:
			why = fmt.Sprintf("its workload has the digest %s, the others' is %s", brief(k.workload),
				brief(most.workload))
		case k.of != most.of:
			why = fmt.Sprintf("it is one of %d, the others are of %d", k.of, most.of)
		case k.version != most.version:
			why = fmt.Sprintf("Reprise %s sent it, and %s the others", k.version, most.version)
		default:
			why = fmt.Sprintf("its settings have the digest %s, the others' is %s", brief(k.settings),
				brief(most.settings))
			if other, ok := result.OtherSetting(*one, m.file.Run); ok {
				why += fmt.Sprintf(" (%s: %s, not %s)", strings.ReplaceAll(other.Name, "_", " "),
					cmp.Or(other.B, "none"), cmp.Or(other.A, "none"))
			}
		}
		faults = append(faults, fmt.Sprintf("%s is of another load: %s", m.path, why))
		m.file.Close()
	}
	s.shards, s.of = own, most.of
	return faults
}

// brief is the begin of a digest.
func brief(digest string) string { return digest[:min(len(digest), 12)] }

// repeated names the shards that are there twice.
func (s *Set) repeated() (faults []string) {
	slices.SortStableFunc(s.shards, func(a, b member) int { return cmp.Compare(a.share().Index, b.share().Index) })
	for i := range s.shards[1:] {
		if a, b := &s.shards[i], &s.shards[i+1]; a.share() == b.share() {
			faults = append(faults, fmt.Sprintf("shard %v is there twice: %s and %s", a.share(), a.path, b.path))
		}
	}
	return faults
}

// missing names the shards that are not there, or not whole.
func (s *Set) missing() (gaps []string) {
	at := 0
	for i := range s.of {
		if at == len(s.shards) || s.shards[at].share().Index != i {
			gaps = append(gaps, fmt.Sprintf("shard %v is missing: send it again with the flags of the others",
				result.Share{Index: i, Of: s.of}))
			continue
		}
		m := &s.shards[at]
		for at++; at < len(s.shards) && s.shards[at].share().Index == i; at++ { // named already
		}
		switch early := m.file.Run.EndedEarly; {
		case m.file.Unfinished:
			gaps = append(gaps, fmt.Sprintf("shard %v did not finish: %s is its journal. Delete that and send it again",
				m.share(), m.path))
		case early != "":
			gaps = append(gaps, fmt.Sprintf("shard %v ended early: %s. Send it again", m.share(), early))
		}
	}
	return gaps
}

// Gaps say in words what is missing of a set that was opened incomplete.
func (s *Set) Gaps() []string { return s.gaps }

// Close closes all files.
func (s *Set) Close() error {
	var all []error
	for i := range s.shards {
		all = append(all, s.shards[i].file.Close())
	}
	return errors.Join(all...)
}
