package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reprise/cmd/reprise/internal/cli"
	"reprise/trace"
)

// published makes a folder of a workload that is of nobody's traffic.
func published(t *testing.T) (workload, folder string) {
	t.Helper()
	dir := t.TempDir()
	workload, folder = filepath.Join(dir, "w.parquet"), filepath.Join(dir, "release")
	must(t, "synth", "chat", "-n", "300", "-o", workload)
	must(t, "export", workload, "--to", "hf", "-o", folder, "--title", "Chat: made up", "--license", "CC-BY-4.0", "--author", "Lovelace, Ada", "--author", "Example GmbH",
		"--repo", "example/chat-requests", "--date", "2026-05-31", "--edition", "1.0.0")
	return workload, folder
}

// A published folder is read back as the trace that it was, and refuses what may not leave.
func TestPublication(t *testing.T) {
	workload, folder := published(t)
	rows := filepath.Join(folder, "data", "requests.parquet")
	if !bytes.Equal(read(t, rows), read(t, workload)) {
		t.Error("the rows were changed")
	}
	must(t, "profile", rows)
	sums := exec.Command("sha256sum", "-c", "SHA256SUMS")
	sums.Dir = folder
	if out, err := sums.CombinedOutput(); err != nil && sums.Err == nil {
		t.Errorf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log.jsonl")
	if err := os.WriteFile(log, []byte(sharingLog(20)), 0o600); err != nil {
		t.Fatal(err)
	}
	house := filepath.Join(dir, "house.parquet")
	must(t, "import", log, "-o", house)
	out := filepath.Join(dir, "out")
	all := []string{"--title", "T", "--license", "MIT", "--author", "A, B", "--repo", "o/n"}
	for want, args := range map[string][]string{
		"house.parquet: it was not released: it is of tier internal": append([]string{house, "-o", out}, all...),
		"is not empty: name a new folder with -o":                    append([]string{workload, "-o", folder}, all...),
		"name a folder for the data set":                             append([]string{workload}, all...),
		"--license: say under which licence":                         {workload, "-o", out, "--title", "T", "--author", "A, B", "--repo", "o/n"},
		"--license: there is no licence \"free\" here":               append([]string{workload, "-o", out}, append(all, "--license", "free")...),
		"--author: say whose":                                        {workload, "-o", out, "--title", "T", "--license", "MIT", "--repo", "o/n"},
		"--date: want a day":                                         append([]string{workload, "-o", out, "--date", "May"}, all...),
		"cannot be used with --to hf":                                append([]string{workload, "-o", out, "--model", "m"}, all...),
		"--to hf takes one trace":                                    append([]string{workload, workload, "-o", out}, all...),
		"does not exist: make it first":                              append([]string{workload, "-o", filepath.Join(out, "x", "y")}, all...),
		"is a file: name a folder":                                   append([]string{workload, "-o", log}, all...),
	} {
		if _, errs, code := reprise(t, append([]string{"export", "--to", "hf"}, args...)...); code != cli.Usage || !strings.Contains(errs, want) {
			t.Errorf("exit code %d, %s\nwant %s", code, errs, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("%s: the folder was made", want)
		}
	}
	if _, errs, code := reprise(t, "export", workload, "--to", "mooncake", "-o", out, "--license", "MIT"); code != cli.Usage || !strings.Contains(errs, "--license is for --to hf") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

// The published validators of Croissant and of the Citation File Format find no fault, and
// the loaders of Hugging Face find the rows. Those that are not installed are left out.
func TestPublicationByValidators(t *testing.T) {
	workload, folder := published(t)
	out, err := exec.Command(anyPython(t), "testdata/publication.py", folder).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var got struct {
		MLCroissant *struct {
			Errors, Warnings, Fields []string
			Rows                     int
			Input                    int32 `json:"input_tokens"`
		}
		CFFConvert *struct{ Fault string }
		Hub        *struct {
			License string
			Title   string `json:"pretty_name"`
			Sizes   []string
		} `json:"huggingface_hub"`
		Datasets *struct {
			Rows    int
			Columns []string
			Input   int32 `json:"input_tokens"`
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	f, err := trace.Open(workload)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := f.Reader()
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]trace.Request, 1)
	if _, err := src.Read(rows); err != nil {
		t.Fatal(err)
	}
	tried := 0
	if c := got.MLCroissant; c != nil {
		tried++
		if len(c.Errors) > 0 || len(c.Warnings) > 0 || c.Rows != 300 || c.Input != rows[0].InputTokens || !slices.Contains(c.Fields, "blocks") {
			t.Errorf("mlcroissant: %+v", *c)
		}
	}
	if c := got.CFFConvert; c != nil {
		tried++
		if c.Fault != "" {
			t.Errorf("cffconvert: %s", c.Fault)
		}
	}
	if c := got.Hub; c != nil {
		tried++
		if c.License != "cc-by-4.0" || c.Title != "Chat: made up" {
			t.Errorf("huggingface_hub: %+v", *c)
		}
	}
	if c := got.Datasets; c != nil {
		tried++
		if c.Rows != 300 || c.Input != rows[0].InputTokens || !slices.Contains(c.Columns, "blocks") {
			t.Errorf("datasets: %+v", *c)
		}
	}
	if tried == 0 {
		t.Skip("that Python has none of mlcroissant, cffconvert, huggingface_hub and datasets")
	}
	t.Logf("%d of 4", tried)
}

// The list of data sets is one screen, and a data set that is not there, or is another one
// than the list says, is refused.
func TestDatasets(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	out, _, code := reprise(t, "datasets")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if code != cli.Good || len(lines) > 25 || !strings.Contains(out, "mooncake-conversation    mooncake  Apache-2.0  3.03 MB     12,031") {
		t.Errorf("%d lines\n%s", len(lines), out)
	}
	for _, line := range lines {
		if len([]rune(line)) > 80 {
			t.Errorf("%d columns: %s", len([]rune(line)), line)
		}
	}
	var list struct {
		Datasets []struct {
			Name, License string
			Files         []struct{ SHA256 string }
		}
	}
	out, _, _ = reprise(t, "datasets", "--json")
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Datasets) < 10 || list.Datasets[0].Files[0].SHA256 == "" {
		t.Errorf("%v\n%s", err, out)
	}
	out, _, _ = reprise(t, "datasets", "azure-2023-code")
	for _, want := range []string{"8,819 requests", "CC-BY-4.0", "54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6", "Patel et al., Splitwise"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	t.Setenv("COLUMNS", "")
	dir := t.TempDir()
	wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("version 1\n")) }))
	defer wrong.Close()
	for want, c := range map[string]struct {
		line string
		code int
	}{
		`there is no data set "mooncake"`:                               {"datasets mooncake", cli.Usage},
		`there is no data set "x"`:                                      {"datasets fetch x", cli.Usage},
		"which data set?":                                               {"datasets fetch", cli.Usage},
		"--from: want an address":                                       {"datasets fetch azure-2023-code --from ftp://x", cli.Usage},
		"has 10 bytes there, and 320117 in the list: it was changed":    {"datasets fetch azure-2023-code --from " + wrong.URL + "/f -o " + dir, cli.Failure},
		"has 10 bytes there, and 131860 in the list: it was changed":    {"datasets fetch servegen-r1 --from " + wrong.URL + "/ -o " + dir, cli.Failure},
		"connection refused. Is this machine offline? A proxy is named": {"datasets fetch azure-2023-code --from http://127.0.0.1:1/f -o " + dir, cli.Failure},
	} {
		if _, errs, code := reprise(t, strings.Fields(c.line)...); code != c.code || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d\n%s\nwant %s", c.line, code, errs, want)
		}
	}
}

// A data set that is fetched is read by the import that the command prints.
func TestFetchedIsImported(t *testing.T) {
	for name, file := range map[string]string{"mooncake-conversation": "mooncake_conversation.jsonl", "azure-2023-code": "azure_llm_2023_code.csv", "tracelab-example": "tracelab_example.jsonl"} {
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(shared(t, file))
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, path) }))
			defer server.Close()
			t.Chdir(t.TempDir())
			out, errs, code := reprise(t, "datasets", "fetch", name, "--from", server.URL+"/x", "-o", "data", "--json")
			var got struct {
				Use   string
				Files []struct{ Verified, Present bool }
			}
			if err := json.Unmarshal([]byte(out), &got); err != nil || code != cli.Good || !got.Files[0].Verified || got.Files[0].Present {
				t.Fatalf("%v, %s%s", err, out, errs)
			}
			must(t, strings.Fields(got.Use)[1:]...)
			server.Close()
			if _, errs, code := reprise(t, "datasets", "fetch", name, "-o", "data"); code != cli.Good || !strings.Contains(errs, ": was there, ") {
				t.Errorf("exit code %d, %s", code, errs)
			}
		})
	}
}
