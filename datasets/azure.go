package datasets

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"slices"
)

// azureFields maps the columns of the Azure LLM inference traces.
var azureFields = Mapping{
	"time":          {"TIMESTAMP"},
	"input_tokens":  {"ContextTokens"},
	"output_tokens": {"GeneratedTokens"},
}

// azureFormat reads the Azure LLM inference traces of 2023 (Splitwise, ISCA'24;
// github.com/Azure/AzurePublicDataset): CSV with dates of seven fractional
// digits and no zone, which are UTC. Columns are matched by name.
func azureFormat() Format {
	return Format{
		Name:    "azure-2023",
		reads:   mappedFields(azureFields, nil),
		About:   "Azure LLM inference traces: CSV of TIMESTAMP, ContextTokens, GeneratedTokens",
		Example: "2023-11-16 18:17:03.9799600,4808,10",
		detect: func(head []byte) bool {
			columns, err := csv.NewReader(bytes.NewReader(head)).Read()
			for _, names := range azureFields {
				if err != nil || !slices.Contains(columns, names[0]) {
					return false
				}
			}
			return true
		},
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			d, err := openCSV(in, head, azureFields, o, s)
			if err == nil {
				d.require()
			}
			return d, err
		},
	}
}
