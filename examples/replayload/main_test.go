package main

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"reprise/replay/engine"
)

// The questions after the first find the system prompt and the document cached, so the
// server has read each document once.
func TestReplayQuestions(t *testing.T) {
	server, err := engine.NewServer(engine.DefaultServerConfig())
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(server.Handler())
	defer listener.Close()
	rows := questions(3, 4, 5*time.Millisecond)
	if last := rows[len(rows)-1]; len(last.Blocks) != 13 || last.InputTokens != 12*blockSize+60 || last.Blocks[4] != rows[2].Blocks[4] {
		t.Errorf("the last question has blocks %v, the first of its user %v", last.Blocks, rows[2].Blocks)
	}
	var out strings.Builder
	if err := replayQuestions(t.Context(), &out, listener.URL, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"first questions: 3, median TTFT ", "later questions: 9, median TTFT ", "failed: 0\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
