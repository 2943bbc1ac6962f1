package flags

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A spelling is there when its counterpart is, and not otherwise.
func TestVLLMSpellingsFollowOurs(t *testing.T) {
	var v Spellings
	cmd := &cobra.Command{}
	requests := cmd.Flags().Int64("max-requests", 0, "")
	insecure := cmd.Flags().Bool("tls-insecure", false, "")
	v.Register(cmd)
	if err := cmd.ParseFlags([]string{"--num-prompts", "12", "--insecure"}); err != nil {
		t.Fatal(err)
	}
	if err := v.Apply(cmd, &VLLMResult{}); err != nil || *requests != 12 || !*insecure {
		t.Errorf("%d requests, insecure %v: %v", *requests, *insecure, err)
	}
	if cmd.Flags().Lookup("base-url") != nil {
		t.Error("--base-url is there without --url")
	}
}

// The table in the documentation has every spelling, and no other.
func TestVLLMSpellingsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../../docs/from-other-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut("\n"+string(doc), "\n## Flags of vllm bench serve\n")
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
	var result VLLMResult
	cmd := &cobra.Command{}
	result.register(cmd)
	result.RegisterSave(cmd)
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
