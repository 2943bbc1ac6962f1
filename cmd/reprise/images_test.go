package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/result"
	"reprise/trace"
)

// imagesWorkload has 8 requests: two without images, and two that are the same prompt.
func imagesWorkload(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "w.parquet")
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		for i, n := range []int32{0, 0, 64, 65, 100, 300, 300, 301} {
			row := trace.Request{ArrivalNS: int64(i) * 1e6, Kind: "chat", Status: trace.StatusOK, InputTokens: 60 + n, OutputTokens: trace.Ptr[int32](2)}
			if n > 0 {
				row.ImageTokens, row.Images = trace.Ptr(n), trace.Ptr(int32(1+i/7*2)) // three in the last
			}
			for b := range (60 + n + 15) / 16 {
				row.Blocks = append(row.Blocks, uint64(min(i, 5+i/7))<<10+uint64(b)) // 5 and 6 are the same
			}
			if _, err := w.Write([]trace.Request{row}); err != nil {
				return trace.Meta{}, err
			}
		}
		return trace.Meta{BlockSize: 16}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func imagesReplayed(t *testing.T, workload string, args ...string) (result.Run, []result.Result, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.parquet")
	out, errs, code := reprise(t, slices.Concat([]string{"replay", workload, "-o", path, "--trust", "max-stall-ttft=off,max-stall-gap=off,max-lag=off,max-lag-p50=off,max-lag-drift=off,max-cpu=off,max-gc-pause=off,max-stall=off"}, args)...)
	if code != cli.Good {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	run, rows := targetResults(t, path)
	return run, rows, out + errs
}

// With --images prompts have exactly the recorded length, part of it as images, and what is
// the same in the trace is the same image.
func TestReplayImages(t *testing.T) {
	sim := simulate(t)
	var mu sync.Mutex
	var sent [][]string // images of the requests of a run
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var req struct {
			Messages []struct {
				Content json.RawMessage `json:"content"`
			} `json:"messages"`
			MaxTokens int `json:"max_tokens"`
		}
		var parts []struct {
			URL struct {
				URL string `json:"url"`
			} `json:"image_url"`
		}
		if json.Unmarshal(body, &req) == nil && req.MaxTokens == 2 && json.Unmarshal(req.Messages[0].Content, &parts) == nil {
			var urls []string
			for _, p := range parts[1:] {
				urls = append(urls, p.URL.URL)
			}
			mu.Lock()
			sent = append(sent, urls)
			mu.Unlock()
		}
		again, err := http.NewRequestWithContext(r.Context(), r.Method, sim+r.URL.Path, strings.NewReader(string(body)))
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := http.DefaultClient.Do(again)
		if err != nil {
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(w, resp.Body)
	}))
	t.Cleanup(s.Close)
	w := imagesWorkload(t)
	run, results, errs := imagesReplayed(t, w, "--url", s.URL, "--images", "--cache", "as-is")
	if i := run.Images; i == nil || i.Requests != 6 || i.Tokens != 1130 || !i.Sent || i.Rule != "the server counts a token for each 28 by 28 pixels of an image, and 0 more, from 1 to 576 tokens" || run.API != "chat" {
		t.Errorf("%+v, %s", run.Images, run.API)
	}
	if !strings.Contains(errs, "images: sent with 6 requests, 1,130 tokens in all by the workload; the server counts") {
		t.Errorf("%s", errs)
	}
	for _, r := range results {
		if r.Error != "" || r.Input == nil || *r.Input != r.WantInput {
			t.Errorf("row %d: %s, %v tokens, want %d", r.Row, r.Error, r.Input, r.WantInput)
		}
	}
	mu.Lock()
	first := sent
	sent = nil
	mu.Unlock()
	different := map[string]bool{}
	for _, urls := range first {
		for _, url := range urls {
			different[url] = true
		}
	}
	if len(first) != 6 || len(different) != 7 { // 8 images, of which two are the same
		t.Errorf("%d requests with images, %d different images", len(first), len(different))
	}
	// The same seed sends the same images, another one others.
	for seed, same := range map[string]bool{"1": true, "2": false} {
		imagesReplayed(t, w, "--url", s.URL, "--images", "--seed", seed)
		mu.Lock()
		for _, urls := range sent {
			for _, url := range urls {
				if different[url] != same {
					t.Errorf("seed %s: the same images: %v", seed, !same)
				}
			}
		}
		sent = nil
		mu.Unlock()
	}
}

// Without --images, what is not sent is said; with it, where it cannot be sent is refused.
func TestImagesSaid(t *testing.T) {
	w, url := imagesWorkload(t), simulate(t)
	said := "images: 6 of 8 requests have images, which are not sent: text stands for their 1,130 tokens (--images sends images, over chat)"
	out, errs, _ := reprise(t, "replay", w, "--url", url, "--dry-run")
	if !strings.Contains(errs, said) || !strings.Contains(out, "image tokens        1130 of 6 requests, sent as text (--images sends images)") {
		t.Errorf("%s%s", out, errs)
	}
	run, _, errs := imagesReplayed(t, w, "--url", url)
	if !strings.Contains(errs, said) || run.Images == nil || run.Images.Sent || run.Images.Tokens != 1130 {
		t.Errorf("%+v\n%s", run.Images, errs)
	}
	for _, row := range [][2]string{
		{"--api completions", "--images: images are sent over --api chat only"}, {"--thread", "--images: cannot be used with --thread"}, {"--verify", "--images: cannot be used with --verify"},
	} {
		args := slices.Concat([]string{"replay", w, "--url", url, "--images", "-o", filepath.Join(t.TempDir(), "r.parquet")}, strings.Fields(row[0]))
		if _, errs, code := reprise(t, args...); code != cli.Usage || !strings.Contains(errs, row[1]) {
			t.Errorf("%s: exit code %d\n%s", row[0], code, errs)
		}
	}
	if _, errs, code := reprise(t, "replay", killWorkload(t, 2, 0), "--url", url, "--images", "-o", filepath.Join(t.TempDir(), "r.parquet")); code != cli.Usage || !strings.Contains(errs, "--images: no request has image tokens (column image_tokens)") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}
