package result

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// A Journal keeps Results as they come, so that a run that is killed loses at
// most what its Runner has not yet written. It is an Arrow IPC stream, private
// to its owner; any Arrow reader opens it, and [Open] does even when its end is
// missing.
type Journal struct {
	file    *os.File
	buf     *bufio.Writer
	ipc     *ipc.Writer
	builder *array.RecordBuilder
	columns []column
	stalls  *Stalls // for the next batch
	broken  bool    // a write failed, and the caller knows
}

// CreateJournal begins a journal at path with what is known of the run, and
// holds it locked. It refuses to replace a file: a journal that is there is all
// that is left of another run. One that is empty was killed before it had begun,
// and is begun again.
func CreateJournal(path string, run Run) (*Journal, error) {
	doc, err := run.encode()
	if err != nil {
		return nil, err
	}
	f, err := takeFile(path)
	if err != nil {
		return nil, err
	}
	schema := journalSchema(doc)
	buf := bufio.NewWriterSize(f, 256<<10)
	j := &Journal{
		file: f, buf: buf, columns: columns(),
		ipc:     ipc.NewWriter(buf, ipc.WithSchema(schema)),
		builder: array.NewRecordBuilder(memory.DefaultAllocator, schema),
	}
	// A batch without rows puts the head into the file: a run that is killed
	// before its first result has a journal that can be read.
	if err := j.writeBatch(nil); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// takeFile opens a file that is new or empty, and locks it.
func takeFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
	case !lock(f):
		err = fmt.Errorf("%s: %w", path, ErrRunning)
	case fi.Size() > 0:
		err = fmt.Errorf("%s: %w: it is the journal of an unfinished run: read it with reprise report, and move "+
			"or delete it", path, os.ErrExist)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}

// ErrRunning is an error of who would take the journal of a run that goes on.
var ErrRunning = fmt.Errorf("%w: the run that writes this journal is still running", os.ErrExist)

// batchBytes bounds one batch of a journal, and with it the memory of who reads
// it: rows with long lists of gaps are written in smaller batches.
const batchBytes = 4 << 20

// Write implements trace.Writer. When it returns, the rows are in the file and
// safe from the death of the process, though not from that of the machine.
func (j *Journal) Write(rows []Result) (int, error) {
	for done := 0; done < len(rows); {
		end, size := done, int64(0)
		for end < len(rows) && (end == done || size < batchBytes) {
			size += resultBytes(&rows[end])
			end++
		}
		if err := j.writeBatch(rows[done:end]); err != nil {
			return done, err
		}
		done = end
	}
	return len(rows), nil
}

// Stalled has the next batch bring stalls. Nil are of a run that nobody watches.
func (j *Journal) Stalled(s *Stalls) {
	if j.stalls == nil {
		j.stalls = s
	} else if s != nil {
		j.stalls.join(s)
	}
}

// writeBatch writes rows, with the stalls since the batch before in its metadata.
func (j *Journal) writeBatch(rows []Result) error {
	for i, c := range j.columns {
		b := j.builder.Field(i)
		b.Reserve(len(rows))
		if c.reserve != nil {
			c.reserve(b, rows)
		}
		for k := range rows {
			c.put(b, &rows[k])
		}
	}
	rec := j.builder.NewRecordBatch()
	defer rec.Release()
	if j.stalls != nil {
		meta := arrow.NewMetadata([]string{stallsKey}, []string{j.stalls.encode()})
		j.stalls = nil
		rec = array.NewRecordBatchWithMetadata(rec.Schema(), rec.Columns(), rec.NumRows(), meta)
		defer rec.Release()
	}
	err := j.ipc.Write(rec)
	if err == nil {
		err = j.buf.Flush()
	}
	j.broken = j.broken || err != nil
	return err
}

// Close marks the journal as whole and closes it. One that could not be written
// to stays as it is: what is in it can be read.
func (j *Journal) Close() error {
	j.builder.Release()
	if j.broken {
		return j.file.Close()
	}
	return errors.Join(j.ipc.Close(), j.buf.Flush(), j.file.Close())
}

// JournalName is the name of the journal of the results at path.
func JournalName(path string) string { return path + ".journal" }

// LastWritten says when a journal was written to last. It fails when a process still
// writes it.
func LastWritten(name string) (time.Time, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	if !lock(f) {
		return time.Time{}, fmt.Errorf("%s: %w", name, ErrRunning)
	}
	fi, err := f.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return fi.ModTime(), nil
}
