package datasets

import (
	"strings"
	"testing"

	"reprise/trace"
)

type basetenRow struct {
	At        int64    `parquet:"timestamp_start_unix_ms"`
	In        int32    `parquet:"input_tokens"`
	Out       int32    `parquet:"output_tokens"`
	Session   *string  `parquet:"provided_session_id,optional"`
	Poor      *string  `parquet:"poor_man_session_id,optional"`
	Hashes    []uint64 `parquet:"total_hashes,list"`
	Size      int32    `parquet:"block_size"`
	Cancelled *bool    `parquet:"request_canceled,optional"`
	E2E       float64  `parquet:"duration_e2e_ms"`
	TTFT      float64  `parquet:"duration_ttft_ms"`
	Region    string   `parquet:"region"`
}

func TestBaseten(t *testing.T) {
	const at = 1760000000123
	s1, p1, yes, no := "s1", "p1", true, false
	in := toParquet(t,
		basetenRow{At: at, In: 600, Out: 20, Session: &s1, Poor: &p1, Hashes: []uint64{11, 12}, Size: 512, Cancelled: &no, E2E: 900.5, TTFT: 150},
		basetenRow{At: at + 5, In: 1500, Out: 2, Poor: &p1, Hashes: []uint64{11, 12}, Size: 512, Cancelled: &yes, E2E: 40}, // full blocks only
		basetenRow{At: at + 6, In: 1024, Out: 0, Hashes: []uint64{99, 12}, Size: 512},
		basetenRow{At: at + 7, In: 1024, Out: 1, Hashes: []uint64{1, 2, 3, 4}, Size: 256},
		basetenRow{At: at + 8, In: 1024, Out: 1, Hashes: []uint64{1}, Size: 512},
		basetenRow{At: at + 9, In: 600, Out: 1, Hashes: []uint64{11}, Size: 512},
	)
	all, info := mustRead(t, in, Options{})
	if len(all) != 6 || info.Format != "baseten" || info.TimeUnit != "ms" || info.BlockSize != 512 || !info.BlocksHashed || info.HasText || !info.HasSessions {
		t.Fatalf("%d entries, %+v", len(all), info)
	}
	blocks := make([][]uint64, len(all))
	for i := range all {
		blocks[i], all[i].SourceBlocks = all[i].SourceBlocks, nil
	}
	for i, want := range []string{
		"488888h53m20.123s session=s1 in=600 out=20 ttft=150ms e2e=900.5ms",
		"488888h53m20.128s session=p1 in=1500 out=2 cancelled ttft=0s e2e=40ms",
		"488888h53m20.129s in=1024 out=0 ttft=0s e2e=0s",
	} {
		if got := summary(&all[i]); got != want {
			t.Errorf("%d: %s\nwant %s", i, got, want)
		}
	}
	// The same prefix has the same ids, another has others although a block's own hash is equal.
	same := func(i, j, k int) bool { return blocks[i][k] == blocks[j][k] }
	if len(blocks[0]) != 2 || len(blocks[1]) != 3 || !same(0, 1, 0) || !same(0, 1, 1) || same(0, 2, 1) || blocks[3] != nil || blocks[4] != nil {
		t.Errorf("%v", blocks)
	}
	if len(blocks[5]) != 2 || !same(0, 5, 0) || same(0, 5, 1) {
		t.Errorf("the tail of the last: %v", blocks[5])
	}
	if len(info.Notes) != 3 || !strings.HasSuffix(info.Notes[0], "another than before: 1") || !strings.HasSuffix(info.Notes[1], "each block of the input: 1") || info.Notes[2] != noteMixed+": 1" {
		t.Errorf("%q", info.Notes)
	}
	if all[1].Status != trace.StatusCancelled {
		t.Error(all[1].Status)
	}
}

func TestBasetenLines(t *testing.T) {
	in := `{"timestamp_start_unix_ms":1760000000123,"prompt":"p","input_tokens":3,"output_tokens":2,"request_canceled":true,"total_hashes":["a1"],"block_size":16}` + "\n" +
		`{"timestamp_start_unix_ms":"x","input_tokens":3,"output_tokens":2}` + "\n" + `{"input_tokens":3,"output_tokens":2}` + "\n"
	all, info, err := read(strings.NewReader(in), Options{MaxBad: 1})
	if err != nil || len(all) != 1 || info.Format != "baseten" || info.Bad != 2 || !info.HasText {
		t.Fatalf("%d entries, %+v, %v", len(all), info, err)
	}
	if len(all[0].SourceBlocks) != 1 || all[0].Status != trace.StatusCancelled || all[0].Kind != "completion" {
		t.Error(summary(&all[0]))
	}
}
