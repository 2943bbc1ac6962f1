package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
)

// vllmParse reads the flags of a replay as RunE does.
func vllmParse(args ...string) (*replayCommandFlags, *cobra.Command, error) {
	var f replayCommandFlags
	cmd := &cobra.Command{Use: "replay"}
	f.registerAll(cmd)
	if err := cmd.ParseFlags(flags.RepeatLists(args)); err != nil {
		return nil, nil, err
	}
	err := f.spellings.Apply(cmd, &f.report.VLLM)
	if err == nil {
		err = f.Check(cmd)
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
		"--isl 550 --osl 150":                    "input-tokens=550 output-tokens=150",
		"--max-seconds 30 --vus 4":               "duration=30s concurrency=4",
		"--benchmark-duration 1m":                "duration=1m0s",
		"--synthetic-input-tokens-mean 9":        "input-tokens=9",
		"--output-tokens-mean 8":                 "output-tokens=8",
		"--random-input-len 550 --random-output-len 150 --random-prefix-len 100 --num-prompts 20": "input-tokens=550 output-tokens=150 shared-prefix=100 max-requests=20",
		"--num-warmups 0":    "warmup=",
		"--ignore-eos":       "force-output=true",
		"--ignore-eos=false": "force-output=false",
		"--disable-tqdm":     "quiet=true",
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
	if err != nil || f.report.VLLM.Model != "org/m" || f.report.VLLM.Backend != "vllm" || f.spellings.Ready != 7*time.Second {
		t.Errorf("%+v: %v", f.report.VLLM, err)
	}
	o, err := f.report.Options()
	if err != nil || o.SLO.String() != "ttft:200ms,tpot:50.5ms" || len(f.report.VLLM.Metadata) != 2 {
		t.Errorf("goodput %s, metadata %v: %v", o.SLO, f.report.VLLM.Metadata, err)
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
		"--dataset-name random":                                                                "--input-tokens",
		"--dataset-name custom --dataset-path f.jsonl":                                         "reprise replay FILE",
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
	if _, errs, code := reprise(t, "replay", "--dataset-path", "f.jsonl", "-o", "r.parquet"); code != cli.Usage || !strings.Contains(errs, "reprise replay FILE") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
