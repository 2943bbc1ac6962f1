package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/replay/bench"
	"reprise/replay/engine"
)

// GPUs, power and price of each engine: of a preset, of a data sheet, and of a file, whose
// GPUs stand behind its name.
func TestFrontierOfPresets(t *testing.T) {
	t.Chdir(t.TempDir())
	const file = "engine.yaml"
	writeFiles(t, map[string]string{"config.json": llama8B, file: calibratedFile(t)})
	var r bench.FrontierResult
	out := must(t, "sweep", "--frontier", "--preset", "t4-llama-3.2-3b,roofline:config.json:2xl4:fp8", "--preset", file+":4xa10,"+file, "--lengths", "chat,64/8k,32/16",
		"--concurrencies", "1,4", "--price-per-gpu-hour", "2", "--price-per-gpu-hour", "l4=0.5", "--watts", "a10=100", "--json", "--html", "f.html", "--replicas", "2")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	type known struct {
		name, gpu     string
		gpus          int
		watts, price  float64
		sheet, assume bool
	}
	for i, want := range []known{
		{"t4-llama-3.2-3b", "t4", 2, 70, 2, true, false},
		{"config.json:2xl4:fp8", "l4", 4, 72, 0.5, true, false},
		{"engine.yaml:4xa10", "a10", 8, 100, 2, false, false},
		{"engine.yaml", "", 2, 0, 2, false, true},
	} {
		e := r.Engines[i]
		if got := (known{e.Name, e.GPU, e.GPUs, e.Watts, e.PerGPUHour, e.DataSheet, e.Assumed}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	if !r.Engines[1].Bound || r.Engines[0].Bound || len(r.Classes) != 3 || len(r.Classes[2].Curves) != 4 {
		t.Errorf("%+v", r.Engines)
	}
	for i, c := range r.Classes[2].Curves {
		for j, p := range c.Points {
			e := r.Engines[i]
			cost := e.PerGPUHour / 3600 / p.OutputPerGPU * 1e6
			if p.Concurrency != []int{1, 4}[j] || p.PerMillion == nil || *p.PerMillion < cost*0.999 || *p.PerMillion > cost*1.001 || (p.JoulesPerToken == nil) != (e.Watts == 0) {
				t.Errorf("%s: %+v, cost %v", c.Engine, p, cost)
			}
		}
	}
	// A file on four GPUs gives each a quarter of what it gives one.
	a, b := r.Classes[2].Curves[2].Points[1], r.Classes[2].Curves[3].Points[1]
	if ratio := b.OutputPerGPU / a.OutputPerGPU; a.PerUser != b.PerUser || ratio < 3.999 || ratio > 4.001 {
		t.Errorf("%+v and %+v", a, b)
	}
	if page, err := os.ReadFile("f.html"); err != nil || !strings.Contains(string(page), "joules") && !strings.Contains(string(page), "energy per output token") {
		t.Errorf("page: %v", err)
	}
	answer := must(t, "sweep", "--frontier", "--costs", "step=10ms", "--lengths", "32/16", "--concurrencies", "1")
	expect(t, answer, "of costs.", "32/16", "GPUs: costs: the number is not known")
}

func TestFrontierMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	const frontier = "sweep --frontier --preset l4-qwen2.5-0.5b "
	for line, want := range map[string]string{
		"sweep chat --frontier --preset l4-qwen2.5-0.5b": "--frontier makes its own requests, see --lengths, and an argument is a directory that sweep, bench or compare wrote (-o): there is no file chat",
		"sweep --frontier": "no engine given: --preset",
		"sweep --frontier --url http://localhost:1 --set kv-tokens=5":   "--set kv-tokens is of a simulated engine",
		"sweep --frontier --url http://h:1 --url http://h:1":            "--url: h:1 is there twice",
		"sweep --frontier --serve-cmd x":                                "--serve-cmd cannot be used with --frontier: start the server",
		frontier + "--rates 1,2":                                        "--rates cannot be used with --frontier",
		frontier + "--api chat":                                         "--api is about a server, and no --url names one",
		frontier + "--contract c.yaml":                                  "--contract cannot be used with --frontier",
		frontier + "--gpus 2":                                           "--gpus cannot be used with --frontier",
		frontier + "--process constant":                                 "--process cannot be used with --frontier",
		frontier + "--lengths 5":                                        `--lengths: "5" is not a class of lengths: PROMPT/OUTPUT`,
		frontier + "--lengths chat,chat":                                "--lengths: chat is there twice",
		frontier + "--concurrencies 4,2":                                "ascending order",
		frontier + "--concurrencies two":                                `--concurrencies: "two" is not a whole number`,
		frontier + "--watts lots":                                       `--watts: "lots" is not a number above 0`,
		frontier + "--watts v100=5":                                     "no data sheet of that GPU",
		frontier + "--watts h100=5":                                     "--watts: no engine has a GPU h100",
		frontier + "--price-per-gpu-hour l4=x":                          `--price-per-gpu-hour: "l4=x" is not a number above 0`,
		frontier + "--preset l4-qwen2.5-0.5b":                           "--preset: l4-qwen2.5-0.5b is there twice",
		frontier + "--router all":                                       "--router all compares routers",
		"sweep --frontier --preset none":                                "unknown preset",
		"sweep --frontier --preset no.yaml:2xl4":                        `there is no file "no.yaml"`,
		"sweep chat --preset l4-qwen2.5-0.5b,t4-llama-3.2-3b":           "a sweep has one --preset: several are for --frontier",
		"sweep chat --preset l4-qwen2.5-0.5b --lengths chat":            "--lengths is for --frontier",
		"sweep chat --preset l4-qwen2.5-0.5b --watts 5":                 "--watts is for --frontier",
		"sweep chat --preset l4-qwen2.5-0.5b --price-per-gpu-hour l4=5": "prices by GPU are for --frontier",
	} {
		if _, errs, code := reprise(t, strings.Fields(line)...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d\n got %s\nwant %s", line, code, errs, want)
		}
	}
	// What no engine serves is a failure, and no usage.
	if _, errs, code := reprise(t, strings.Fields("sweep --frontier --preset t4-llama-3.2-3b --lengths 100k/5")...); code != cli.Failure || !strings.Contains(errs, "no engine serves any of these lengths: t4-llama-3.2-3b, 100k/5: requests are longer than the KV memory") {
		t.Errorf("exit code %d\n%s", code, errs)
	}
}

// A server is measured beside a preset, kept in a directory, and laid over another frontier.
func TestFrontierOfServers(t *testing.T) {
	long(t)
	t.Chdir(t.TempDir())
	c := engine.DefaultServerConfig()
	c.Engine.Costs = engine.Costs{Request: 1e9, Step: 2e9}
	sim, err := engine.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim.Handler())
	defer server.Close()
	const off = "max-lag=off,max-lag-p50=off,max-lag-p999=off,max-lag-drift=off,max-cpu=off,max-gc-pause=off,max-stall=off,max-stall-ttft=off,max-stall-gap=off,max-clock-jump=off"
	var r bench.FrontierResult
	out := must(t, "sweep", "--frontier", "--preset", "l4-qwen2.5-0.5b", "--url", server.URL, "--set", "engine=sim 1", "--set", "hardware=2xL4", "--lengths", "16/8", "--concurrencies", "1,2",
		"--level-requests", "8", "--price-per-gpu-hour", "l4=0.8", "--trust", off, "--json", "-o", "a", "--quiet")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	e := r.Engines[1]
	if e.Name != "sim 1" || e.GPU != "l4" || e.GPUs != 2 || e.Watts != 72 || e.PerGPUHour != 0.8 || e.Assumed || e.Model == "" || e.Endpoint == "" {
		t.Errorf("%+v", e)
	}
	for _, curve := range r.Classes[0].Curves {
		if len(curve.Points) != 2 || curve.Points[0].PerMillion == nil || curve.Points[0].JoulesPerToken == nil {
			t.Errorf("%+v", curve)
		}
	}
	must(t, "sweep", "--frontier", "--preset", "t4-llama-3.2-3b", "--lengths", "16/8", "--concurrencies", "1", "-o", "b")
	both := must(t, "sweep", "--frontier", "a", "b/frontier.json", "--html", "f.html", "--details")
	expect(t, both, "sim 1", "l4-qwen2.5-0.5b", "t4-llama-3.2-3b")
}
