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
		detect:  sniff.Columns("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			return openAzure(in, head, o, s)
		},
	}
}

func openAzure(in *bufio.Reader, head []byte, o Options, s *Source) (*mappedDecoder, error) {
	d, err := openCSV(in, head, azureFields, o, s)
	if err != nil {
		return nil, err
	}
	d.timing = withTimes
	require(d.fields, "input_tokens")
	return d, nil
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
	f := azureFormat()
	f.Name = "azure-2025"
	f.reads = append(f.reads, fieldAt("NumImages", "images", ""))
	f.About = "Azure multimodal inference trace of 2025: CSV of TIMESTAMP, NumImages, ContextTokens, GeneratedTokens"
	f.Example = "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n2024-10-15T12:00:00.269Z,1,1180,42"
	f.detect = sniff.Columns("TIMESTAMP", "NumImages", "ContextTokens", "GeneratedTokens")
	f.open = func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
		d, err := openAzure(in, head, o, s)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(d.rows.(*row.CSV).Names(), "NumImages") {
			return nil, fault.Refuse(1, 1, "the header has no column for images")
		}
		images := countTo(func(b *builder) **int32 { return &b.Entry.Images })
		d.fields = append(d.fields, field{target: target{name: "images", set: images}, paths: []string{"NumImages"},
			required: true})
		return d, nil
	}
	return f
}
