package datasets

import (
	"bufio"
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/record"
	"reprise/datasets/internal/row"
	"reprise/trace/bombtest"
	"reprise/trace/longtest"
)

// heapOfSystem is how much memory the heap has had of the system.
func heapOfSystem() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapSys)
}

type bombMessage struct {
	Role    string `parquet:"role,dict"`
	Content string `parquet:"content,dict"`
}

type bombRow struct {
	Timestamp int64         `parquet:"timestamp"`
	Model     string        `parquet:"model,optional,dict"`
	Score     float64       `parquet:"score"`
	Stream    bool          `parquet:"stream"`
	Messages  []bombMessage `parquet:"messages,list"`
	IDs       []int32       `parquet:"ids,list"`
}

// A Parquet file of somebody else's is refused before it takes memory that it has no use for,
// whichever of its columns is made to.
func TestForeignParquetBombs(t *testing.T) {
	sound := toParquet(t, bombRow{1, "m", 1, true, []bombMessage{{"user", "a"}, {"user", "b"}}, []int32{1, 2}}, bombRow{2, "m", 1, true, []bombMessage{{"user", "a"}}, []int32{3}})
	bombs := bombtest.Parquet([]byte(sound), "model", "messages", "ids")
	for _, bomb := range append(bombs, bombtest.Parquet([]byte(sound))...) {
		before := heapOfSystem()
		err := func() error {
			p, err := row.SpoolParquet(bytes.NewReader(bomb.Data))
			if err != nil {
				return err
			}
			defer p.Close(nil)
			rows, err := p.Rows(everything)
			for err == nil {
				_, err = rows.Next()
			}
			return err
		}()
		if _, ok := err.(*fault.Fault); !ok {
			t.Errorf("%s: %v", bomb.Name, err)
		}
		if grown := heapOfSystem() - before; grown > 400<<20 {
			t.Errorf("%s: %d MiB of memory, then %v", bomb.Name, grown>>20, err)
		}
	}
}

// A row is bounded like a record of JSON: in bytes, also where one text stands many times, and in
// values.
func TestParquetRowsAreBounded(t *testing.T) {
	text := strings.Repeat("a", 1<<20)
	for name, c := range map[string]struct {
		row  bombRow
		fits bool
	}{
		"one text of 65 MiB":        {bombRow{Messages: []bombMessage{{Content: strings.Repeat("a", 65<<20)}}}, false},
		"one text 60 times":         {bombRow{Messages: slices.Repeat([]bombMessage{{Content: text}}, 60)}, true},
		"one text 1,000 times":      {bombRow{Messages: slices.Repeat([]bombMessage{{Content: text}}, 1000)}, false},
		"a million token ids":       {bombRow{IDs: make([]int32, 1<<20)}, true},
		"four million token ids":    {bombRow{IDs: make([]int32, 4<<20)}, false},
		"a hundred thousand turns":  {bombRow{Messages: slices.Repeat([]bombMessage{{}}, 100_000)}, true},
		"half a million turns":      {bombRow{Messages: slices.Repeat([]bombMessage{{}}, 500_000)}, false},
		"nothing but empty columns": {bombRow{}, true},
	} {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[bombRow](&b, parquet.Compression(&parquet.Zstd),
			parquet.SkipPageBounds("messages", "list", "element", "content"), parquet.DataPageStatistics(false))
		if _, err := w.Write([]bombRow{c.row}); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		p, err := row.SpoolParquet(&b)
		if err != nil {
			t.Fatal(name, err)
		}
		rows, err := p.Rows(everything)
		if err == nil {
			_, err = rows.Next()
		}
		if (err == nil) != c.fits || err != nil &&
			!strings.HasPrefix(err.(*fault.Fault).Reason, "the row is larger than 64 MiB") {
			t.Errorf("%s: %v", name, err)
		}
		p.Close(nil)
	}
}

// Records of JSON are bounded in bytes and in values, in all the ways in which they can stand.
func TestRecordsAreBounded(t *testing.T) {
	longtest.Skip(t)
	for name, c := range map[string]struct {
		record string
		fits   bool
	}{
		"a text of 63 MiB":           {`{"a":"` + strings.Repeat("a", 63<<20) + `"}`, true},
		"a text of 65 MiB":           {`{"a":"` + strings.Repeat("a", 65<<20) + `"}`, false},
		"a text of commas":           {`{"a":"` + strings.Repeat(`,\"`, 3<<20) + `"}`, true},
		"a million token ids":        {`{"a":[` + strings.Repeat("0,", 1<<20) + `0]}`, true},
		"three million token ids":    {`{"a":[` + strings.Repeat("0,", 3<<20) + `0]}`, false},
		"three million empty turns":  {`{"a":[` + strings.Repeat("{},", 3<<20) + `{}]}`, false},
		"three million fields":       {`{` + strings.Repeat(`"a":1,`, 3<<20) + `"a":1}`, false},
		"texts with commas and more": {`{"a":["` + strings.Repeat(",", 3<<20) + `",` + strings.Repeat(`"\\",`, 1<<20) + `0]}`, true},
	} {
		for layout, in := range map[string]string{"lines": c.record + "\n", "an array": "[" + c.record + "]", "an object": `{"data":[` + c.record + "]}"} {
			r := record.NewJSON(bufio.NewReader(strings.NewReader(in)), []byte(in[:1<<10]))
			_, err := r.Next()
			if (err == nil) != c.fits {
				t.Errorf("%s in %s: %v", name, layout, err)
			}
		}
	}
}
