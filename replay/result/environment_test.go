package result

import (
	"strings"
	"testing"
)

func TestDeployment(t *testing.T) {
	for given, want := range map[string]Deployment{
		"8xH100":                        {GPU: "H100", GPUs: 8},
		"8 x H100-SXM, 80GB, NVLink":    {GPU: "H100-SXM", GPUs: 8, GPUMemoryGB: 80, Interconnect: "NVLink"},
		"2×RTX 4090,PCIe 4.0 x16,24 GB": {GPU: "RTX 4090", GPUs: 2, GPUMemoryGB: 24, Interconnect: "PCIe 4.0 x16"},
		"L4":                            {GPU: "L4", GPUs: 1},
	} {
		var d Deployment
		if err := d.SetHardware(given); err != nil || d != want {
			t.Errorf("%s: %+v, error %v", given, d, err)
		}
	}
	for _, bad := range []string{"", "0xH100", "8xH100, 80GB, 80GB", "8xH100, NVLink, PCIe", "8xH100,", " , 80GB"} {
		if err := new(Deployment).SetHardware(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for given, want := range map[string]float64{"70B": 7e10, "0.5b": 5e8, "494M": 494e6, "1T": 1e12, "": 0, "70": 0, "0B": 0, "B": 0, "-1B": 0} {
		var d Deployment
		if err := d.SetModelSize(given); (err == nil) != (want > 0) || d.Parameters != want {
			t.Errorf("%q: %v, error %v", given, d.Parameters, err)
		}
	}
}

func TestRedact(t *testing.T) {
	for given, want := range map[string]string{
		"--max-num-seqs 256 --max-num-batched-tokens 8192 --tokenizer-mode auto":   "--max-num-seqs 256 --max-num-batched-tokens 8192 --tokenizer-mode auto",
		"--kv-cache-dtype fp8 --revision 5f0b02c75b57c5855da9ae460ce51323ea669d8a": "--kv-cache-dtype fp8 --revision 5f0b02c75b57c5855da9ae460ce51323ea669d8a",
		"--api-key SECRET --port 80":               "--api-key [redacted] --port 80",
		"--api-key=SECRET --port 80":               "--api-key=[redacted] --port 80",
		"--api-key SECRET SECRET2 --port 80":       "--api-key [redacted] --port 80",
		`--api-key "SECRET SECRET" --port 80`:      "--api-key [redacted] --port 80",
		"--API-KEY 'SECRET' --port 80":             "--API-KEY [redacted] --port 80",
		"HF_TOKEN=SECRET vllm serve m":             "HF_TOKEN=[redacted] vllm serve m",
		"--hf-token SECRET":                        "--hf-token [redacted]",
		`--config '{"api_key": "SECRET", "n": 4}'`: `--config '{"api_key": [redacted], "n": 4}'`,
		"--header 'Authorization: Bearer SECRET'":  "--header 'Authorization: [redacted] [redacted]'",
		"--otlp https://u:SECRET@host/x?a=1":       "--otlp https://[redacted]host/x?a=1",
		"--lora sk-SECRETSECRET1":                  "--lora [redacted]",
		"hf_SECRETSECRET and ghp_SECRETSECRET":     "[redacted] and [redacted]",
		"--model /home/SECRET/models/m":            "--model /home/[redacted]/models/m",
		"vllm 0.11.0":                              "vllm 0.11.0",
	} {
		got := Redact(given)
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", given, got, want)
		}
		if strings.Contains(got, "SECRET") {
			t.Errorf("%s: the secret is still there: %s", given, got)
		}
	}
}

// Wherever a key follows the name of one, it goes.
func FuzzRedact(f *testing.F) {
	f.Add("--port 80 ", " --x", uint8(0))
	f.Add(`{"a":"`, `"}`, uint8(3))
	f.Fuzz(func(t *testing.T, before, after string, how uint8) {
		const secret = "S3cr3tS3cr3t"
		named := []string{" --api-key " + secret, " --api-key=" + secret, " HF_TOKEN=" + secret, ` "token": "` + secret + `"`, " Bearer " + secret}
		got := Redact(before + named[int(how)%len(named)] + " " + after)
		if strings.Contains(got, secret) && !strings.Contains(before+after, secret) {
			t.Errorf("%q keeps the secret", got)
		}
	})
}
