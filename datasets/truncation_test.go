package datasets

import (
	"errors"
	"io"
	"strings"
	"testing"

	"reprise/trace"
)

// fixtures are small inputs of each format.
var fixtures = map[string]string{
	"mooncake": oneRow + `{"timestamp": 3000, "input_length": 513, "output_length": 12, "hash_ids": [0, 1]}` + "\r\n" +
		`{"output_length":12,"timestamp":3001,"input_length":0,"hash_ids":[],"é":"\u00e9"}` + "\n",
	"azure-2023": azureHeader + "2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04.0319600,3180,8",
	"sharegpt": "[{\"id\":\"x_0\",\n\"conversations\":[{\"from\":\"human\",\"value\":\"a \\\"b\\\"\"},{\"from\":\"gpt\",\"value\":\"é\"}]},\n" +
		`{"id":"x_1","conversations":["{\"from\":\"gpt\",\"value\":\"c\"}",{"from":"human","value":"d"},{"from":"gpt","value":"e"}]}]` + "\n",
	"openai-log": `{"timestamp":"2026-01-02T03:04:05.678Z","messages":[{"role":"user","content":[{"type":"text","text":"q"}]}],"usage":{"prompt_tokens":8}}` + "\n" +
		`{"timestamp":"2026-01-02T03:04:06Z","prompt":"p","choices":[{"text":"a"}],"user":"u","session":5}`,
}

// An input that is cut anywhere gives an error that names the place, or, cut
// between records, the records so far. A cut inside the last number of a CSV
// file cannot be told.
func TestCutAnywhere(t *testing.T) {
	for format, whole := range fixtures {
		want, _ := mustRead(t, whole, Options{Format: format})
		cuts := 0
		for k := range len(whole) {
			got, _, err := read(strings.NewReader(whole[:k]), Options{Format: format})
			var at *trace.SourceError
			switch {
			case errors.As(err, &at):
				if at.Line < 1 || at.Column < 1 {
					t.Fatalf("%s cut at %d: %v", format, k, err)
				}
				if !errors.Is(err, io.ErrUnexpectedEOF) && k > len(azureHeader) {
					t.Errorf("%s cut at %d: %v", format, k, err)
				}
				cuts++
			case err != nil:
				t.Fatalf("%s cut at %d: %v", format, k, err)
			case format == "sharegpt" && k > 0 && strings.TrimSpace(whole[k:]) != "":
				t.Fatalf("%s cut at %d: no error", format, k)
			}
			for i := range got {
				inNumber := format == "azure-2023" && i == len(got)-1 && strings.Count(whole[:k], ",")%2 == 0
				if a, b := summary(&got[i]), summary(&want[i]); a != b && !(inNumber && strings.HasPrefix(b, a)) {
					t.Fatalf("%s cut at %d: entry %d is %s, want %s", format, k, i, a, b)
				}
			}
		}
		if cuts < len(whole)*9/10 {
			t.Errorf("%s: only %d of %d cuts were seen", format, cuts, len(whole))
		}
	}
}
