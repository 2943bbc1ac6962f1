package main

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	tiktoken_loader "github.com/pkoukk/tiktoken-go-loader"

	"reprise/trace"
)

// lengths are the input and output tokens of a request.
type lengths struct{ in, out int32 }

func byLengths(a, b lengths) int { return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.out, b.out)) }

// The counts of every turn of a chat log are tiktoken's, one message at a time:
// a reply is counted behind everything before it, replies that follow each
// other are one, and a reply before any question is context.
func TestChatCountsAreTiktokens(t *testing.T) {
	long(t)
	src := shared(t, "sharegpt_sample.json")
	raw, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	var chats []struct {
		Conversations []struct{ From, Value string }
	}
	if err := json.Unmarshal(raw, &chats); err != nil {
		t.Fatal(err)
	}
	tiktoken.SetBpeLoader(tiktoken_loader.NewOfflineLoader())
	oracle, err := tiktoken.GetEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	var want []lengths
	for _, c := range chats {
		before, asked := int32(0), false
		for i := 0; i < len(c.Conversations); i++ {
			turn := c.Conversations[i]
			text := turn.Value
			for turn.From == "gpt" && i+1 < len(c.Conversations) && c.Conversations[i+1].From == "gpt" {
				i++
				text += c.Conversations[i].Value
			}
			n := int32(len(oracle.EncodeOrdinary(text)))
			if turn.From == "gpt" && asked {
				want = append(want, lengths{before, n})
			}
			asked = asked || turn.From == "human"
			before += n
		}
	}

	out := filepath.Join(t.TempDir(), "t.parquet")
	must(t, "import", src, "--arrivals", "poisson:2", "-o", out)
	tr, err := trace.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	rows, err := tr.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var got []lengths
	err = trace.Each(rows, func(_ int64, r *trace.Request) error {
		got = append(got, lengths{r.InputTokens, *r.OutputTokens})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, byLengths)
	slices.SortFunc(want, byLengths)
	if !slices.Equal(got, want) {
		t.Errorf("%d requests are not counted as tiktoken counts the %d of the log", len(got), len(want))
	}
}
