package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowWriter takes 7 ms for the flush with the number slow.
type slowWriter struct {
	*httptest.ResponseRecorder
	slow, flushes int
}

func (w *slowWriter) Flush() {
	if w.flushes++; w.flushes == w.slow {
		time.Sleep(7 * time.Millisecond)
	}
	w.ResponseRecorder.Flush()
}

// The record says when tokens were written, and a late one does not move those after it.
func TestStampsAreOfTheActualWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(200*time.Millisecond, 20*time.Millisecond)
		time.Sleep(3 * time.Second)
		arrival := time.Now().UnixNano()
		body := `{"prompt":[5,6,7],"max_tokens":4,"stream":true,"stream_options":{"include_usage":true}}`
		w := &slowWriter{ResponseRecorder: httptest.NewRecorder(), slow: 3} // headers, first token, second token
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(body)))

		if got := s.records[0]; got.ArrivalUnixNS != arrival || got.MaxTokens != 4 || got.BodyBytes != len(body) ||
			!slices.Equal(got.WritesUS, []int64{200_000, 227_000, 240_000, 260_000}) {
			t.Errorf("%+v; the request arrived at %d and has %d bytes", got, arrival, len(body))
		}
		answer := w.Body.String()
		if strings.Count(answer, `"text":" the"`) != 4 || !strings.Contains(answer, `"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}`) || !strings.HasSuffix(answer, "data: [DONE]\n\n") {
			t.Errorf("answer:\n%s", answer)
		}
	})
}

func TestAnswerWithoutStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(200*time.Millisecond, 20*time.Millisecond)
		w, began := httptest.NewRecorder(), time.Now()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/completions", strings.NewReader(`{"prompt":["two words","three more words"],"max_tokens":6}`)))
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if got := w.Body.String(); !strings.Contains(got, `"usage":{"prompt_tokens":5,`) {
			t.Errorf("answer %s", got)
		}
		if got := s.records[0].WritesUS; got != nil {
			t.Errorf("no token was streamed, and the record has writes at %v", got)
		}
	})
}

func TestOtherPaths(t *testing.T) {
	s := newServer(0, 0)
	for _, c := range []struct {
		path, body, want string
		status           int
	}{
		{"/v1/models", "", `"id":"truth"`, http.StatusOK},
		{"/health", "", "", http.StatusOK},
		{"/v1/completions", `{"prompt":`, `{"error":{"message":"the body is not a completion request in JSON","code":400}}`, http.StatusBadRequest},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.path, w.Code, w.Body)
		}
	}
	if len(s.records) > 0 {
		t.Errorf("records %+v of requests that asked for nothing", s.records)
	}
}

func TestWriteRecords(t *testing.T) {
	s := newServer(0, 0)
	s.records = []record{{ArrivalUnixNS: 1_700_000_000_000_000_001, MaxTokens: 2, BodyBytes: 9, WritesUS: []int64{3, 5}}}
	name := filepath.Join(t.TempDir(), "truth.jsonl")
	if err := s.writeRecords(name); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if want := `{"arrival_unix_ns":1700000000000000001,"max_tokens":2,"body_bytes":9,"writes_us":[3,5]}` + "\n"; err != nil || string(got) != want || !json.Valid(got) {
		t.Errorf("%v, got %s", err, got)
	}
}
