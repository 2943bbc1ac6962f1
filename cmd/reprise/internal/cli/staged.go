package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/trace/crash"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
)

// grows are the flags that name what is written bit by bit, such as a journal or a folder of
// runs, by command. Objects cannot grow, so that these are kept on the machine first.
var grows = map[string]string{
	"replay": "output", "simulate": "output", "sweep": "output", "bench": "output", "compare": "output",
	"record": "output", "demo": "output", "fetch": "output",
}

// Staged is an output in a store that is kept on the machine while it grows, and uploaded at
// the end of the command.
type Staged struct {
	cmd   *cobra.Command
	url   string // what the flag said
	local string // what it says now
	from  string // folder that is uploaded
	to    string // as which
	put   map[string]time.Time
	stop  context.CancelFunc
	over  chan struct{}
}

// Stage looks for an output of cmd in a store that grows, has the flag name a place in a
// folder of state instead, and messages the store. It brings what a run is to go on with.
// It returns nil where there is none. [Staged.End] uploads it.
func Stage(cmd *cobra.Command, state string) (*Staged, error) {
	name := grows[cmd.Name()]
	if to := cmd.Flags().Lookup("to"); to != nil && to.Value.String() == ToHub {
		name = "output"
	}
	flag := cmd.Flags().Lookup(name)
	if flag == nil || !objectstore.IsURL(flag.Value.String()) {
		return nil, nil
	}
	s := &Staged{cmd: cmd, url: flag.Value.String(), put: map[string]time.Time{}}
	state = cmp.Or(state, os.TempDir())
	sum := sha256.Sum256([]byte(objectstore.Join(s.url)))
	s.from = filepath.Join(state, "stores", hex.EncodeToString(sum[:8]))
	s.local, s.to = filepath.Join(s.from, filepath.Base(s.url)), s.url
	_, file := flag.Annotations[Written]
	if file = file && name == "output" && cmd.Name() != "export"; file {
		s.to = objectstore.Dir(s.url)
	} else {
		s.from = s.local
	}
	at, err := objectstore.Stat(s.to)
	if err != nil && (!errors.Is(err, fs.ErrNotExist) || noBucket(err)) {
		return nil, err
	}
	if err == nil && !at.IsDir() {
		return nil, Usagef("%s is an object: name a folder", s.to)
	}
	made := s.from
	if cmd.Name() == "export" { // which makes the folder itself
		made = filepath.Dir(s.from)
	}
	if err := os.MkdirAll(made, 0o700); err != nil {
		return nil, fmt.Errorf("%s is kept on this machine until it is whole: %w", s.url, err)
	}
	if held, _ := os.ReadDir(s.from); len(held) > 0 {
		Notef(cmd, "%s has what an earlier command did not upload; this one continues there", s.from)
	} else if !file {
		if err := s.bring(); err != nil {
			return nil, err
		}
	}
	if err := flag.Value.Set(s.local); err != nil {
		return nil, err
	}
	root := cmd.Root()
	root.SetOut(&renamed{cmd.OutOrStdout(), s})
	root.SetErr(&renamed{cmd.ErrOrStderr(), s})
	if cmd.Name() == "record" { // which has no end that one could wait for
		s.follow()
	}
	return s, nil
}

// bring copies what the store has of an earlier command that wrote a folder, for this one to
// continue.
func (s *Staged) bring() error {
	if s.cmd.Name() == "record" || s.cmd.Name() == "export" || s.cmd.Name() == "report" {
		return nil
	}
	err := objectstore.WalkDir(s.to, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := within(s.to, name)
		if err != nil {
			return err
		}
		path := filepath.Join(s.from, rel)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		in, err := objectstore.Open(name)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return errors.Join(err, out.Close(), os.Remove(path))
		}
		info, err := out.Stat()
		if err == nil {
			s.put[path] = info.ModTime()
		}
		return errors.Join(err, out.Close())
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// within is the path of an object below a folder, in the manner of the machine.
func within(folder, name string) (string, error) {
	rel, ok := strings.CutPrefix(objectstore.Join(name), objectstore.Join(folder)+"/")
	if rel = filepath.FromSlash(rel); !ok || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s has a name that cannot be a file of this machine", name)
	}
	return rel, nil
}

// followEvery is how often finished files are looked for, and settled how long a file must
// have been left alone.
const (
	followEvery = 10 * time.Second
	settled     = 5 * time.Second
)

// follow uploads files as they are finished.
func (s *Staged) follow() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.over = stop, make(chan struct{})
	go func() {
		defer close(s.over)
		defer crash.Caught()
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				// An error comes again at the end.
				_, _, _ = s.upload(func(name string, at time.Time) bool {
					return now.Sub(at) > settled && !strings.Contains(name, ".journal")
				})
			}
		}
	}()
}

// upload uploads the files that want says, and returns how many there were, and their bytes.
func (s *Staged) upload(want func(name string, modified time.Time) bool) (files, size int64, err error) {
	err = filepath.WalkDir(s.from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		info, err := d.Info()
		if err != nil || info.ModTime().Equal(s.put[path]) || !want(d.Name(), info.ModTime()) {
			return err
		}
		rel, err := filepath.Rel(s.from, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := objectstore.Put(objectstore.Join(s.to, filepath.ToSlash(rel)), f, info.Size()); err != nil {
			return err
		}
		s.put[path] = info.ModTime()
		files, size = files+1, size+info.Size()
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) { // nothing was written
		err = nil
	}
	return files, size, err
}

// End uploads what the command wrote, also when it failed, and removes it from the machine.
// It does nothing to nil.
func (s *Staged) End() error {
	if s == nil {
		return nil
	}
	if s.stop != nil {
		s.stop()
		<-s.over
	}
	files, size, err := s.upload(func(string, time.Time) bool { return true })
	if err != nil {
		return fmt.Errorf("%w. The part that was written is in %s: run the same command again to continue, or copy "+
			"it", err,
			s.from)
	}
	// A journal that became results is no longer wanted there either.
	for path := range s.put {
		if _, serr := os.Lstat(path); errors.Is(serr, fs.ErrNotExist) {
			rel, rerr := filepath.Rel(s.from, path)
			if rerr == nil {
				rerr = objectstore.Remove(objectstore.Join(s.to, filepath.ToSlash(rel)))
			}
			if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
				return rerr
			}
		}
	}
	if files > 0 {
		Notef(s.cmd, "%s: %s uploaded, %s", s.to, doc.Many(files, "object"), doc.Many(size, "byte"))
	}
	// What was uploaded is not needed here. A confined process may not remove the folder.
	for path := range s.put {
		_ = os.Remove(path)
	}
	_ = os.RemoveAll(s.from)
	_ = os.Remove(filepath.Dir(s.local))
	return nil
}

// A renamed writer says the store where a message names the place on the machine.
type renamed struct {
	w io.Writer
	s *Staged
}

func (r *renamed) Write(p []byte) (int, error) {
	text := bytes.ReplaceAll(p, []byte(r.s.local), []byte(r.s.url))
	text = bytes.ReplaceAll(text, []byte(r.s.from+string(filepath.Separator)),
		[]byte(strings.TrimSuffix(r.s.to, "/")+"/"))
	if _, err := r.w.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

type stateKey struct{}

// WithState names the folder in which commands remember, for this user, releases that count, wherever the traces are,
// and the words of servers. Only main names the user's own folder: each test has another.
func WithState(ctx context.Context, folder string) context.Context {
	return context.WithValue(ctx, stateKey{}, folder)
}

// StateFolder is the folder of [WithState]. It is empty where nothing is remembered.
func StateFolder(cmd *cobra.Command) string {
	if cmd.Context() == nil {
		return ""
	}
	folder, _ := cmd.Context().Value(stateKey{}).(string)
	return folder
}

// UserState is the user's own folder for [WithState]: the state folder of the XDG base directories, also on macOS. It is
// empty where the user has none.
func UserState() string {
	if folder := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "reprise")
	}
	if folder := os.Getenv("LOCALAPPDATA"); runtime.GOOS == "windows" && folder != "" {
		return filepath.Join(folder, "reprise")
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "reprise")
	}
	return ""
}
