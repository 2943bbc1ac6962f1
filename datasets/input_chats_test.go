package datasets

import (
	"strings"
	"testing"

	"reprise/datasets/internal/row"
)

// Several files of these formats are one source: sessions and parents go on.
func TestChatFilesGoOn(t *testing.T) {
	csvTop := "session_id,arrival_time,round_idx,prefix_len,input_len,output_len,tool_wait_after_ms\n"
	lm := func(id string) string {
		return `{"conversation_id":"` + id + `","model":"v","conversation":[{"content":"a","role":"user"},{"content":"b","role":"assistant"},{"content":"c","role":"user"},{"content":"d","role":"assistant"}]}` + "\n"
	}
	baseten := `{"timestamp_start_unix_ms":1760000000123,"input_tokens":16,"output_tokens":2,"total_hashes":[7],"block_size":16}` + "\n"
	for format, files := range map[string][]string{
		"tracelab":          {round("s", 0, "user_message@01", "text@02"), round("s", 1, "tool_result@04", "text@05")},
		"tracelab-sessions": {csvTop + "a,5,0,0,600,50,300\n", csvTop + "a,5,1,650,600,50,0\n"},
		"blis":              {blisTop + "0,c,,,s,0,g,600,false,1,1,0,0,0,0,0,,0,0,100,150,200,300,0,ok,,\n", blisTop + "1,c,,,s,1,g,600,false,1,1,0,0,0,0,0,,0,0,1300,1300,0,0,0,ok,,\n"},
		"lmsys":             {lm("x"), lm("y")},
		"wildchat":          {foreign(t), foreign(t)},
		"baseten":           {baseten, baseten},
		"sharegpt": {`[{"id":"x_0","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"},{"from":"gpt","value":"d"}]}]`,
			`[{"id":"y_0","conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"},{"from":"gpt","value":"d"}]}]`},
	} {
		all, info, err := readAs(format, textFiles(files...), Options{})
		if err != nil || info.Format != format {
			t.Errorf("%s: %+v, %v", format, info, err)
			continue
		}
		// Without a header of their own the records in one file are the same source.
		one := files[0]
		switch {
		case row.IsParquet([]byte(one)):
			if len(all) != 6 || len(all[4].Parents) != 1 || all[4].Parents[0] != 3 || all[3].Session.Reveal() != "3/c0" {
				t.Errorf("%s: %d entries, %s", format, len(all), summary(&all[4]))
			}
			continue
		case format == "sharegpt":
			one = strings.TrimSuffix(one, "]") + "," + strings.TrimPrefix(files[1], "[")
		case strings.HasPrefix(one, "{"):
			one += files[1]
		default:
			_, rows, _ := strings.Cut(files[1], "\n")
			one += rows
		}
		want, _ := mustRead(t, one, Options{})
		if len(all) != len(want) || len(all) < 2 {
			t.Fatalf("%s: %d entries, want %d", format, len(all), len(want))
		}
		for i := range all {
			got, want := summary(&all[i])+pauses(&all[i]), summary(&want[i])+pauses(&want[i])
			if got != want {
				t.Errorf("%s: entry %d is\n%s, want\n%s", format, i, got, want)
			}
		}
	}
}

// A pool is detected among its files, by their names.
func TestPoolIsDetected(t *testing.T) {
	s, err := OpenFiles(pool(map[int][2]string{1: {windowsOf(1, "1", "Gamma,1"), someLengths}}), Options{})
	if err != nil || s.Info().Format != "servegen" {
		t.Error(err)
	}
	files := textFiles("trace_version: 2\n", blisTop+"0,c,,,s,0,g,600,false,1,1,0,0,0,0,0,,0,0,100,150,200,300,0,ok,,\n")
	files[0].Name, files[1].Name = "h.yaml", "d.csv"
	if s, err = OpenFiles(files, Options{}); err != nil || s.Info().Format != "blis" {
		t.Error(err)
	}
}
