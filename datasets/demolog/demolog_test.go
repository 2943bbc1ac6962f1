package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"testing"
)

// The log in the repository is the one that this program writes.
func TestLogIsReproducible(t *testing.T) {
	f, err := os.Open("../demo.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	want, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Error("the program writes another log than demo.jsonl.gz: run go generate in package datasets")
	}
}

// The log has what a demo needs, in the proportions that its comment promises.
func TestScenario(t *testing.T) {
	var log bytes.Buffer
	if err := write(&log); err != nil {
		t.Fatal(err)
	}
	var records, failed, cut int
	users, systems, prompts, turns := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	var shortest, longest int
	for dec := json.NewDecoder(&log); ; {
		var r record
		if err := dec.Decode(&r); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		records++
		users[r.User]++
		if r.Session != "" {
			turns[r.Session]++
		}
		if r.Messages[0].Role == "system" {
			systems[r.Messages[0].Content]++
		}
		prompt, err := json.Marshal(r.Messages)
		if err != nil {
			t.Fatal(err)
		}
		prompts[string(prompt)]++
		if r.Status != 200 {
			failed++
			if r.Response != nil || r.Usage != nil || r.Error == nil {
				t.Error("a failed request has an answer")
			}
			continue
		}
		if r.Usage.Completion > maxTokens || r.Usage.Completion < 10 {
			t.Errorf("an answer has %d tokens", r.Usage.Completion)
		}
		if r.Response.Choices[0].FinishReason == "length" {
			cut++
		}
		if shortest == 0 {
			shortest = r.Usage.Prompt
		}
		shortest, longest = min(shortest, r.Usage.Prompt), max(longest, r.Usage.Prompt)
	}
	if records < 220 || records > 260 || len(users) != 3 || failed != failures || cut == 0 {
		t.Errorf("%d records of %d users, %d failed, %d cut", records, len(users), failed, cut)
	}
	if len(turns) != chats || len(systems) != 2 || records-len(prompts) != repeats {
		t.Errorf("%d chats, %d system prompts, %d repeats", len(turns), len(systems), records-len(prompts))
	}
	if shortest < 40 || shortest > 100 || longest < 2000 || longest > 3500 {
		t.Errorf("prompts of %d to %d tokens", shortest, longest)
	}
}
