package audit_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"reprise/anonymize/audit"
	"reprise/trace"
)

// Whoever received a trace judges it by itself.
func Example() {
	dir, _ := os.MkdirTemp("", "audit")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "t.parquet")
	err := trace.Create(path, func(w trace.Writer[trace.Request]) (trace.Meta, error) {
		_, err := w.Write([]trace.Request{{InputTokens: 700, Blocks: []uint64{4711, 4712}, Model: "acme-7b", Status: trace.StatusOK}})
		return trace.Meta{Tier: "partner", BlockSize: 512}, err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	output, err := audit.OpenOutput(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer output.Close()
	result, err := audit.Run(context.Background(), &audit.Case{Output: output}, []string{"ids", "free-text", "times"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range result.Findings {
		fmt.Printf("%s: %s\n", f.Check, f.Status)
	}
	fmt.Println("failed:", result.Failed())
	// Output:
	// times: skipped
	// ids: fail
	// free-text: fail
	// failed: true
}
