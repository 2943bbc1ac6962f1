package datasets

import (
	"bufio"
	"bytes"
	"io"
	"slices"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	"reprise/datasets/internal/stamp"
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
		dated:   true,
		csv:     true,
		detect: func(head *sniff.Sample) bool {
			columns := head.Header()
			for _, names := range azureFields {
				if !slices.Contains(columns, names[0]) {
					return false
				}
			}
			return true
		},
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			d, err := openCSV(in, head, azureFields, o, s)
			if err != nil {
				return nil, err
			}
			d.timing = withTimes
			require(d.fields, "input_tokens")
			return d, nil
		},
	}
}

// azure2024Format reads the Azure LLM inference traces of 2024 (DynamoLLM;
// github.com/Azure/AzurePublicDataset). The columns are those of 2023; the dates
// have a zone, and those on a whole second no fraction.
func azure2024Format() Format {
	f := azureFormat()
	columns := f.detect
	f.Name = "azure-2024"
	f.About = "Azure LLM inference traces of 2024: as azure-2023, with a zone in the times"
	f.Example = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,2162,5"
	f.detect = func(head *sniff.Sample) bool {
		if !columns(head) {
			return false
		}
		rows, err := row.NewCSV(bytes.NewReader(head.Bytes), row.CSVOptions{})
		if err != nil {
			return false
		}
		for range 10 { // until a row has a time
			r, err := rows.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				continue
			}
			if st, ok := row.TimeAt(r, azureFields["time"]); ok {
				return st.Style == stamp.Zoned
			}
		}
		return false
	}
	return f
}

// azure2025Format reads the Azure multimodal trace of 2025 (ModServe, SoCC'25),
// which says how many images were in each request.
func azure2025Format() Format {
	return Format{
		Name:  "azure-2025",
		reads: append(mappedFields(azureFields, nil), fieldAt("NumImages", "images", "")),
		About: "Azure multimodal inference trace of 2025: CSV of TIMESTAMP, NumImages, ContextTokens, " +
			"GeneratedTokens",
		Example: "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15T12:00:00.269Z,1,1180,42",
		dated:   true,
		csv:     true,
		detect: func(head *sniff.Sample) bool {
			return azureFormat().detect(head) && slices.Contains(head.Header(), "NumImages")
		},
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			d, err := openCSV(in, head, azureFields, o, s)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(d.rows.(*row.CSV).Names(), "NumImages") {
				return nil, fault.Refuse(1, 1, "the header has no column for images")
			}
			d.fields = append(d.fields, field{
				target: target{name: "images", set: countTo(func(b *builder) **int32 { return &b.Entry.Images })},
				paths:  []string{"NumImages"}})
			d.timing = withTimes
			require(d.fields, "input_tokens", "images")
			return d, nil
		},
	}
}
