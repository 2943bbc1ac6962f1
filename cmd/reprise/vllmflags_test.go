package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
)

// vllmParse reads the flags of a replay as RunE does.
func vllmParse(args ...string) (*replayFlags, *cobra.Command, error) {
	var f replayFlags
	cmd := &cobra.Command{}
	f.register(cmd)
	if err := cmd.ParseFlags(vllmLists(args)); err != nil {
		return nil, nil, err
	}
	err := f.vllm.args(cmd, []string{"w.parquet"})
	if err == nil {
		err = f.vllm.apply(cmd, &f.judge.vllm)
	}
	if err == nil {
		err = f.check(cmd)
	}
	return &f, cmd, err
}

func TestVLLMSpellings(t *testing.T) {
	for typed, want := range map[string]string{
		"--base-url http://h:9":           "url=[http://h:9]",
		"--host h --port 9":               "url=[http://h:9]",
		"--port 9":                        "url=[http://127.0.0.1:9]",
		"--host ::1":                      "url=[http://[::1]:8000]",
		"--endpoint /v1/chat/completions": "api=chat",
		"--backend openai-chat --endpoint /v1/chat/completions": "api=chat",
		"--backend vllm":                         "api=completions",
		"--backend openai-embeddings":            "api=embeddings",
		"--served-model-name m":                  "model=m",
		"--model org/m --served-model-name m":    "model=m",
		"--request-rate 2.50":                    "rate=poisson:2.5",
		"--request-rate 2 --burstiness 1.0":      "rate=poisson:2",
		"--request-rate 2 --burstiness 0.25":     "rate=gamma:2,burstiness=0.25",
		"--request-rate 2 --burstiness inf":      "rate=constant:2",
		"--request-rate inf":                     "rate=inf",
		"--request-rate inf --max-concurrency 8": "concurrency=8 rate= max-in-flight=0",
		"--request-rate 2 --max-concurrency 8":   "max-in-flight=8 rate=poisson:2 concurrency=0",
		"--max-concurrency 8":                    "max-in-flight=8 rate=",
		"--num-warmups 3":                        "warmup=3",
		"--num-warmups 0":                        "warmup=",
		"--ignore-eos":                           "force-output=true",
		"--ignore-eos=false":                     "force-output=false",
		"--disable-tqdm":                         "quiet=true",
		"--ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 9":                       "rate=ramp-up:linear,1-9,burstiness=1",
		"--ramp-up-strategy exponential --ramp-up-start-rps 1 --ramp-up-end-rps 9 --burstiness 0.5": "rate=ramp-up:exponential,1-9,burstiness=0.5",
	} {
		_, cmd, err := vllmParse(strings.Fields(typed)...)
		if err != nil {
			t.Errorf("%s: %v", typed, err)
			continue
		}
		for _, pair := range strings.Fields(want) {
			name, value, _ := strings.Cut(pair, "=")
			if got := cmd.Flags().Lookup(name).Value.String(); got != value {
				t.Errorf("%s: --%s is %q, want %q", typed, name, got, value)
			}
		}
	}
	f, _, err := vllmParse("--model", "org/m", "--served-model-name", "m", "--backend", "vllm", "--ready-check-timeout-sec", "7", "--goodput", "ttft:200", "tpot:50.5", "--metadata", "a=1", "b=2")
	if err != nil || f.judge.vllm.model != "org/m" || f.judge.vllm.backend != "vllm" || f.vllm.ready != 7*time.Second {
		t.Errorf("%+v: %v", f.judge.vllm, err)
	}
	o, err := f.judge.options()
	if err != nil || o.SLO.String() != "ttft:200ms,tpot:50.5ms" || len(f.judge.vllm.metadata) != 2 {
		t.Errorf("goodput %s, metadata %v: %v", o.SLO, f.judge.vllm.metadata, err)
	}
}

func TestVLLMSpellingsThatContradict(t *testing.T) {
	for typed, want := range map[string]string{
		"--url http://a --base-url http://b":               "give one of --base-url and --url",
		"--base-url http://b --port 9":                     "--base-url has the host",
		"--api chat --backend openai-chat":                 "give one of --backend and --api",
		"--backend openai --endpoint /v1/chat/completions": "different APIs",
		"--backend tgi":                                    "--backend: want vllm",
		"--endpoint /generate":                             "--endpoint: want /v1/completions",
		"--rate poisson:1 --request-rate 2":                "give one of --request-rate and --rate",
		"--burstiness 2":                                   "--burstiness is one of a finite",
		"--request-rate 0":                                 "--request-rate: want a number above zero",
		"--request-rate x":                                 "--request-rate: want a number above zero",
		"--max-concurrency 0":                              "--max-concurrency: want a whole number",
		"--max-in-flight 3 --max-concurrency 2":            "give one of --max-concurrency and --max-in-flight",
		"--ramp-up-strategy linear":                        "go together",
		"--ramp-up-start-rps 1":                            "go together",
		"--ramp-up-strategy cubic --ramp-up-start-rps 1 --ramp-up-end-rps 2":                   "want ramp-up:linear",
		"--ramp-up-strategy linear --ramp-up-start-rps 3 --ramp-up-end-rps 2":                  "want ramp-up:linear",
		"--request-rate 2 --ramp-up-strategy linear --ramp-up-start-rps 1 --ramp-up-end-rps 2": "contradicts",
		"--ready-check-timeout-sec 1.5":                                                        "want whole seconds",
		"--num-warmups -1":                                                                     "--num-warmups: want a whole number",
		"--dataset-name random":                                                                "reprise import FILE",
		"--dataset-name custom --dataset-path f.jsonl":                                         "reprise import FILE",
		"--top-k 20":      "--extra-body",
		"--no-self-timed": "--request-rate",
	} {
		_, _, err := vllmParse(strings.Fields(typed)...)
		var exit *cli.ExitError
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &exit) || exit.Code != cli.Usage {
			t.Errorf("%s: %v, want %q", typed, err, want)
		}
	}
	// Without a workload the data set is what is wrong.
	if _, errs, code := reprise(t, "replay", "--dataset-path", "f.jsonl", "-o", "r.parquet"); code != cli.Usage || !strings.Contains(errs, "reprise import FILE -o w.parquet") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A spelling is there when its counterpart is, and not otherwise.
func TestVLLMSpellingsFollowOurs(t *testing.T) {
	var v vllmFlags
	cmd := &cobra.Command{}
	requests := cmd.Flags().Int64("max-requests", 0, "")
	insecure := cmd.Flags().Bool("tls-insecure", false, "")
	v.register(cmd)
	if err := cmd.ParseFlags([]string{"--num-prompts", "12", "--insecure"}); err != nil {
		t.Fatal(err)
	}
	if err := v.apply(cmd, &vllmResult{}); err != nil || *requests != 12 || !*insecure {
		t.Errorf("%d requests, insecure %v: %v", *requests, *insecure, err)
	}
	if cmd.Flags().Lookup("base-url") != nil {
		t.Error("--base-url is there without --url")
	}
}

// The table in the documentation has every spelling, and no other.
func TestVLLMSpellingsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "\n## Coming from vllm bench serve\n")
	if !ok {
		t.Fatal("the section is missing")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for _, line := range strings.Split(section, "\n") {
		if cell, rest, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | "); ok && strings.HasPrefix(line, "| `--") && rest != "" {
			rows = append(rows, regexp.MustCompile("`--([a-z-]+)`").ReplaceAllString(cell, "$1"))
		}
	}
	documented := strings.Fields(strings.ReplaceAll(strings.Join(rows, ","), ",", " "))
	var known []string
	for _, s := range spellings {
		known = append(known, s.name)
	}
	for name := range refused {
		known = append(known, name)
	}
	var result vllmResult
	cmd := &cobra.Command{}
	result.register(cmd)
	result.registerSave(cmd)
	for _, flag := range []string{"save-result", "append-result", "result-dir", "result-filename", "save-detailed", "metadata", "label",
		"percentile-metrics", "metric-percentiles", "goodput"} {
		if cmd.Flags().Lookup(flag) == nil {
			t.Errorf("--%s is not a flag", flag)
		}
		known = append(known, flag)
	}
	for _, name := range known {
		if !slices.Contains(documented, name) {
			t.Errorf("--%s is not in the table", name)
		}
	}
	own := []string{"model", "tokenizer", "seed", "header", "extra-body"}
	for _, name := range documented {
		if !slices.Contains(known, name) && !slices.Contains(own, name) {
			t.Errorf("--%s is in the table, and nothing takes it", name)
		}
	}
}

func TestWhenReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		asked := 0
		ask := func() error {
			if asked++; asked < 4 {
				return down
			}
			return nil
		}
		f := vllmFlags{}
		if err := f.whenReady(t.Context(), ask); err != down || asked != 1 {
			t.Errorf("without a time: asked %d times, %v", asked, err)
		}
		f.ready = 10 * time.Second
		begin := time.Now()
		if err := f.whenReady(t.Context(), ask); err != nil || asked != 4 || time.Since(begin) != 2*time.Second {
			t.Errorf("asked %d times in %v: %v", asked, time.Since(begin), err)
		}
		asked, f.ready = 0, 2500*time.Millisecond
		if err := f.whenReady(t.Context(), ask); !errors.Is(err, down) || asked != 3 {
			t.Errorf("asked %d times: %v", asked, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := f.whenReady(ctx, func() error { return down }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
