package main

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/engine"
	"reprise/replay/hardware"
)

// llama8B is the shape of Llama 3.1's 8B, as a config.json has it.
const llama8B = `{"model_type":"llama","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256}`

// An engine that was never measured comes from a model's shape and a data sheet, by flags
// or as a preset; it says that it is a bound, and what would fit where it does not.
func TestSimulateUnmeasuredHardware(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"config.json": llama8B, "other.json": "{}"})
	must(t, "synth", "chat", "-n", "40", "-o", "w.parquet")
	flags := []string{"simulate", "w.parquet", "--model-config", "config.json", "--hardware", "l4"}
	out, errs, code := reprise(t, flags...)
	if code != cli.Good || !strings.Contains(errs, "KV fits") {
		t.Fatalf("exit code %d\n%s", code, errs)
	}
	expect(t, out, "a bound from the data sheet", "nearest measured engine")
	ttft := func(args ...string) float64 {
		var all []engine.FleetSummary
		if err := json.Unmarshal([]byte(must(t, append(args, "--json")...)), &all); err != nil {
			t.Fatal(err)
		}
		return *all[0].TTFTP50MS
	}
	bound := ttft(flags...)
	// What lies beside a config says how its weights are quantised, unless a flag does.
	writeFiles(t, map[string]string{"hf_quant_config.json": `{"quantization":{"quant_algo":"NVFP4"}}`})
	predict := []string{"capacity", "predict", "--model-config", "config.json", "--hardware", "h100"}
	expect(t, must(t, predict...), "H100 SXM, fp4.")
	expect(t, must(t, append(predict, "--dtype", "fp8")...), "H100 SXM, fp8.")
	if err := os.Remove("hf_quant_config.json"); err != nil {
		t.Fatal(err)
	}
	if preset := ttft("simulate", "w.parquet", "--preset", "roofline:config.json:l4"); preset != bound {
		t.Errorf("as a preset TTFT is %g ms, by flags %g", preset, bound)
	}
	half := ttft(append(flags, "--efficiency", "0.5")...)
	if again := ttft("simulate", "w.parquet", "--preset", "roofline:config.json:l4@50%"); half < 1.9*bound || again != half {
		t.Errorf("at half the efficiency TTFT is %g and %g ms, at all of it %g", half, again, bound)
	}
	for _, same := range [][2]string{{"--set kv-cache-dtype=fp8 --set gpu-memory-utilization=0.95 --dtype fp8", "roofline:config.json:l4:fp8:kv=fp8:memory=95%"}, {"--set gpu-memory-utilization=1 --efficiency 0.5", "roofline:config.json:l4:memory=1@50%"}} {
		a, b := must(t, append(append([]string{}, flags...), append(strings.Fields(same[0]), "--json")...)...), must(t, "simulate", "w.parquet", "--preset", same[1], "--json")
		var x, y []engine.FleetSummary
		if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil || x[0].CapacityBlocks != y[0].CapacityBlocks || *x[0].TTFTP50MS != *y[0].TTFTP50MS {
			t.Errorf("%s: %s\n%s: %s", same[0], a, same[1], b)
		}
	}
	// Every command with --preset takes it, and says that it is a bound.
	for _, line := range []string{"sweep chat --rates 1 --level-duration 1s --level-requests 0 --no-confirm", "compare w.parquet --set-b max-num-seqs=8 --rounds 5 -o c", "bench b.yaml -o b"} {
		writeFiles(t, map[string]string{"b.yaml": "name: b\nrows: [{name: one, workload: chat, requests: 20, load: sequential}]\n"})
		out, errs, code := reprise(t, append(strings.Fields(line), "--preset", "roofline:config.json:l4")...)
		if code == cli.Usage || code == cli.Failure || !strings.Contains(strings.Join(strings.Fields(out), " "), "a bound from the data sheet") {
			t.Errorf("%s: exit code %d\n%s%s", line, code, out, errs)
		}
	}
	if two := ttft("simulate", "w.parquet", "--preset", "roofline:config.json:2xl4:bf16"); two >= bound {
		t.Errorf("on two GPUs TTFT is %g ms, on one %g", two, bound)
	}
	for line, want := range map[string]string{
		"simulate w.parquet --hardware l4":                                                     "--hardware needs a model",
		"simulate w.parquet --model-config config.json":                                        "--model-config needs a GPU",
		"simulate w.parquet --model-config config.json --hardware v100":                        "no data sheet of that GPU",
		"simulate w.parquet --model-config none.json --hardware l4":                            "--model-config none.json: there is no such file",
		"simulate w.parquet --model-config other.json --hardware l4":                           "other.json: it has no model_type",
		"simulate w.parquet --model-config config.json --hardware t4":                          "does not fit: of 15.6 GB of each GPU",
		"simulate w.parquet --model-config config.json --hardware l4 --tp 3":                   "3 GPUs cannot share 32 attention heads",
		"simulate w.parquet --model-config config.json --hardware l4 --dtype fp3":              "no such type of weights",
		"simulate w.parquet --model-config config.json --hardware l4 --preset t4-llama-3.2-3b": "--preset cannot be used with --model-config",
		"simulate w.parquet --preset roofline:config.json":                                     "want roofline:CONFIG.json:GPU",
		"sweep chat --model-config config.json":                                                "here a preset names the model and its GPUs, such as --preset roofline:config.json:8xh100:fp8",
		"simulate w.parquet --preset roofline:config.json:l4:kv=fp3":                           "no such type of KV cache",
		"simulate w.parquet --preset roofline:config.json:l4:memory=most":                      "the share of GPU memory behind memory=",
		"simulate w.parquet --preset roofline:config.json:l4@0":                                "an efficiency is above 0",
		"capacity predict --model-config config.json --hardware l4 --params 8B":                "--params cannot be used with --model-config",
		"capacity predict --model-config config.json --hardware t4":                            "does not fit",
	} {
		if _, errs, code := reprise(t, strings.Fields(line)...); code != cli.Usage || !strings.Contains(strings.Join(strings.Fields(errs), " "), want) {
			t.Errorf("%s: exit code %d\n%s", line, code, errs)
		}
	}
}

// The memory calculator is printed after the floor.
func TestPredictFromConfig(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFiles(t, map[string]string{"config.json": llama8B})
	args := []string{"capacity", "predict", "--model-config", "config.json", "--hardware", "rtx4090", "--prompt-tokens", "1000"}
	expect(t, must(t, args...), "a step reads 15 GB of weights", "weights take 16.1 GB", "KV fits 44,836 tokens", "a step of 2,048 tokens and 256 sequences some 0.8 GB", "KV has 5.9 GB at 131.1 kB a token")
	var p struct {
		Prediction engine.Prediction `json:"prediction"`
		Memory     hardware.Memory   `json:"memory"`
	}
	if err := json.Unmarshal([]byte(must(t, append(args, "--json")...)), &p); err != nil || p.Memory.KVTokens != 44_836 || p.Prediction.WeightBytes != 15_009_849_344 || p.Prediction.TPOTMS < 14.8 || p.Prediction.TPOTMS > 15 {
		t.Errorf("%+v, %v", p, err)
	}
}
