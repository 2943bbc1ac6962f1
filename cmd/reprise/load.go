package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/anonymize"
	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/datasets"
	"reprise/synth/spec"
	"reprise/trace"
	"reprise/trace/crash"
	"reprise/trace/doc"
	"reprise/trace/objectstore"
	"reprise/trace/profile"
)

// openLoad opens what a command sends: its WORKLOAD arg, which is a trace, a specification or
// the name of a built-in one, or so many requests that flags make. What is made is in a private file,
// which goes with its Close.
func openLoad(cmd *cobra.Command, made *flags.Made, arg string, requests int64) (*trace.Trace, error) {
	s, err := specOf(made, arg, requests)
	switch {
	case err != nil:
		return nil, orRunFile(cmd, arg, err)
	case s != nil:
		if lasts := cmd.Flags().Lookup("duration"); made.Given() && requests == 0 && lasts != nil && !lasts.Changed {
			cli.Notef(cmd, "requests: %s, since neither --requests nor --duration says how many", doc.Count(s.Requests))
		}
		return trace.Private("", func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
			return writeSpec(cmd, s, 1, new(flags.PromptText), dst)
		})
	}
	w, err := cli.OpenTrace(cmd, arg)
	if errors.Is(err, fs.ErrNotExist) && filepath.Ext(arg) == "" {
		err = noWorkload(arg)
	}
	return w, err
}

// loadFile is [openLoad] for a command that reads the workload in each of several runs: a file, and
// the digest of its rows. What is made stands in dir.
func loadFile(cmd *cobra.Command, made *flags.Made, arg, dir string) (file, digest string, err error) {
	if arg == cli.Standard {
		return "", "", cli.Usagef("stdin can be read only once, and every run reads the workload: give a file")
	}
	s, err := specOf(made, arg, 0)
	if err != nil {
		return "", "", orRunFile(cmd, arg, err)
	}
	if file = arg; s != nil {
		file = filepath.Join(dir, "workload.parquet")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", "", err
		}
		err := trace.Create(file, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
			return writeSpec(cmd, s, 1, new(flags.PromptText), dst)
		})
		if err != nil {
			return "", "", err
		}
	}
	w, err := openLoad(cmd, new(flags.Made), file, 0)
	if err != nil {
		return "", "", err
	}
	return file, w.Meta.Digest, w.Close()
}

var unknownField = regexp.MustCompile(`unknown field "([a-z0-9-]+)"`)

// orRunFile is the error of a specification, which says more where its file has flags of the command for keys.
func orRunFile(cmd *cobra.Command, file string, err error) error {
	if field := unknownField.FindStringSubmatch(err.Error()); field == nil || cmd.Flags().Lookup(field[1]) == nil {
		return err
	}
	return cli.Usagef("%s is no workload, but a run file: give it with --config %[1]s", file)
}

// freeName is a name for the results of a run that begins now, which no file has yet.
func freeName(begin time.Time) string {
	for run := 1; ; run++ {
		name := begin.Format("replay-20060102-150405")
		if run > 1 {
			name += fmt.Sprintf("-%d", run)
		}
		if _, err := os.Lstat(name + ".parquet"); errors.Is(err, fs.ErrNotExist) {
			return name + ".parquet"
		}
	}
}

// noWorkload is the error for a name that is neither that of a file nor of a built-in workload.
func noWorkload(name string) error {
	return fmt.Errorf("there is neither a file %s nor a built-in workload of that name; there are %s", name,
		strings.Join(datasets.Workloads(), ", "))
}

// specOf reads the specification of a command's load. It is nil where the load is a file of rows.
func specOf(made *flags.Made, arg string, requests int64) (*spec.Spec, error) {
	if made.Given() {
		return made.Spec(requests)
	}
	return openSpec(arg)
}

// openSpec opens a specification, which is a YAML file or the name of a
// built-in workload. It returns nil when the argument is neither.
func openSpec(arg string) (*spec.Spec, error) {
	if ext := strings.ToLower(filepath.Ext(arg)); ext == ".yaml" || ext == ".yml" {
		f, err := objectstore.Open(arg)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		text, err := io.ReadAll(io.LimitReader(f, spec.MaxText+1)) // one more is refused
		if err != nil {
			return nil, err
		}
		return spec.Parse(arg, text)
	}
	if _, err := objectstore.Stat(arg); !errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a file of that name goes first
	}
	text, ok := datasets.Workload(arg)
	if !ok {
		return nil, nil
	}
	return spec.Parse(arg, text)
}

// writeSpec writes the workload of a specification, with prompts of this text.
func writeSpec(cmd *cobra.Command, s *spec.Spec, seed uint64, text *flags.PromptText,
	dst trace.Writer[trace.Request]) (trace.Meta, error) {
	rows, err := s.Rows(seed)
	if err != nil {
		return trace.Meta{}, err
	}
	meta := s.Meta(seed)
	if err := text.Describe(cmd, &meta, true); err != nil {
		return meta, err
	}
	_, err = trace.Copy(dst, cli.NewProgress(cmd).Watch(cmd, rows))
	return meta, err
}

// A promptFile is a log with text, or a file of prompts, whose text is sent as it is. It is
// imported into a private folder, which remove takes away. The zero promptFile is none.
type promptFile struct{ path, folder string }

func (p *promptFile) given() bool { return p.path != "" }

// create makes the folder.
func (p *promptFile) create(path string) (err error) {
	p.path = path
	p.folder, err = os.MkdirTemp("", "reprise-prompts-")
	return err
}

func (p *promptFile) remove() { _ = os.RemoveAll(p.folder) }

// rows and raw are the files of the trace and of its text.
func (p *promptFile) rows() string { return filepath.Join(p.folder, "prompts.parquet") }

func (p *promptFile) raw() string { return rawName(p.rows()) }

// open imports the file, with lengths by the tokenizer of the run and in blocks as small as a server's, so that what
// its cache finds can be judged. Prompts without times get some where the load replaces them; else the error is
// errNoTimes. Their times are a session's start and what follows from it, so that the first rows in time are of the
// first sessions of the file, and the rest of it is not read where no more than most rows are sent (0 is all).
//
// Once both files are open they lose their names, so that a run that is killed leaves no text behind.
func (p *promptFile) open(cmd *cobra.Command, tokenizer string, paced bool,
	most int64) (*trace.Trace, *anonymize.RawText, error) {
	files, err := logFiles(cmd, []string{p.path})
	if err != nil {
		return nil, nil, err
	}
	for i := range files {
		if strings.EqualFold(filepath.Ext(files[i].Name), ".txt") {
			files[i].Open = promptLines(files[i].Open)
		}
	}
	var f importFlags
	f.register(new(cobra.Command)) // sets the defaults
	f.out, f.tier.Tier, f.Tokenizer, f.anyTimes = p.rows(), anonymize.Raw, cmp.Or(tokenizer, f.Tokenizer), paced
	f.BlockSize, f.sessions = profile.DefaultServerBlock, most
	f.asStep = func(read datasets.Info) {
		if read.Bad > 0 {
			cli.Warnf(cmd, "%s: %s", p.path, skipped(read))
		}
	}
	if err := f.run(cmd, files); err != nil {
		if errors.Is(err, errNoText) {
			err = cli.Usagef("%[1]s has no text to send, only lengths. Make a workload of it: "+
				"reprise import %[1]s -o w.parquet, then reprise replay w.parquet", p.path)
		}
		return nil, nil, err
	}
	w, err := trace.Open(p.rows())
	if err != nil {
		return nil, nil, err
	}
	raw, err := anonymize.OpenRaw(p.raw(), w.Meta)
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	p.remove()
	return w, raw, nil
}

// beginsJSON matches the begin of an object or a list, which "[INST] Hello" and "{{name}}, hello" are not.
var beginsJSON = regexp.MustCompile(`^\x{FEFF}?\s*(\{\s*(["}]|$)|\[\s*(["{\[\]]|$))`)

// promptLines reads a text with a prompt on each line, as GuideLLM and load scripts have them, as JSON lines. Prompts
// keep their spaces. A text that begins as JSON is read as it is.
func promptLines(open func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		file, err := open()
		if err != nil {
			return nil, err
		}
		text := bufio.NewReader(file)
		first, err := text.Peek(64)
		if beginsJSON.Match(first) || err != nil && err != io.EOF {
			return struct {
				io.Reader
				io.Closer
			}{text, file}, nil
		}

		from, to := io.Pipe()
		go func() {
			defer file.Close()
			defer crash.Caught()
			lines, encoder := bufio.NewScanner(text), json.NewEncoder(to)
			lines.Buffer(nil, longestPrompt)
			err := error(nil)
			for err == nil && lines.Scan() {
				prompt := strings.TrimPrefix(lines.Text(), "\uFEFF")
				if strings.TrimSpace(prompt) == "" {
					_, err = io.WriteString(to, "\n") // so that numbers of lines stay
				} else {
					err = encoder.Encode(map[string]string{"prompt": prompt})
				}
			}
			to.CloseWithError(cmp.Or(err, lines.Err()))
		}()
		return from, nil
	}
}

// longestPrompt bounds a line of a text with prompts, in bytes.
const longestPrompt = 16 << 20

// firstSessions reads the first sessions of a source without times: an entry without parents starts one.
type firstSessions struct {
	src  trace.EntryReader
	left int64
}

// Read implements [trace.EntryReader].
func (f *firstSessions) Read(batch []trace.Entry) (int, error) {
	n, err := f.src.Read(batch)
	for i := range batch[:n] {
		if len(batch[i].Parents) > 0 {
			continue
		}
		if f.left == 0 {
			return i, io.EOF
		}
		f.left--
	}
	return n, err
}

// quietly is a command with nothing on stderr, for a step that another sums up.
func quietly(cmd *cobra.Command) *cobra.Command {
	quiet := *cmd
	quiet.SetErr(io.Discard)
	return &quiet
}
