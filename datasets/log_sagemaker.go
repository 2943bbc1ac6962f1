package datasets

import (
	"bufio"
	"encoding/base64"

	"reprise/datasets/internal/fault"
	"reprise/datasets/internal/row"
	"reprise/datasets/internal/sniff"
	tokenusage "reprise/trace/usage"
)

// sagemakerFields is where a capture has its fields: OpenAI's bodies and those of
// the text-generation containers (TGI).
var sagemakerFields = Mapping{
	"time":          {"eventMetadata.inferenceTime"},
	"model":         {"in.model"},
	"user":          {"in.user"},
	"messages":      {"in.messages"},
	"tools":         {"in.tools", "in.functions"},
	"prompt":        {"in.prompt", "in.inputs"},
	"max_tokens":    {"in.max_completion_tokens", "in.max_tokens", "in.parameters.max_new_tokens"},
	"temperature":   {"in.temperature", "in.parameters.temperature"},
	"stream":        {"in.stream"},
	"output":        {"out.choices.0.message", "out.choices.0.text", "out.generated_text", "out.0.generated_text"},
	"finish_reason": {"out.choices.0.finish_reason"},
	"output_tokens": {"out.details.generated_tokens", "out.0.details.generated_tokens"},
	"error":         {"out.error"},
	bodyAt:          {askedChat},
}

// sagemakerMade is where the payloads stand, and sagemakerReads what is read of
// them beside their fields.
var (
	sagemakerMade  = map[string]string{"in": "captureData.endpointInput.data", "out": "captureData.endpointOutput.data"}
	sagemakerReads = []SourceField{
		fieldAt("captureData.endpointInput.data|captureData.endpointOutput.data", "", packed),
		fieldAt("captureData.endpointInput.encoding|captureData.endpointOutput.encoding", "", decides),
		usageAt("captureData.endpointOutput.data.usage"),
	}
)

// sagemakerFormat reads what SageMaker's data capture writes to S3: JSON lines
// with the payloads of a request and its response as JSON or Base64. The times
// are whole seconds. Headers and custom attributes are not read.
func sagemakerFormat() Format {
	return Format{
		Name:  "sagemaker",
		reads: append(mappedFields(sagemakerFields, sagemakerMade), sagemakerReads...),
		About: "SageMaker data capture: JSON lines with requests and responses of OpenAI's API or TGI",
		Example: `{"captureData":{"endpointInput":{"data":"{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}","encoding":"JSON"}},` +
			`"eventMetadata":{"eventId":"e1","inferenceTime":"2026-01-02T03:04:05Z"}}`,
		bodies: []string{"captureData.endpointInput.data"},
		detect: sniff.Objects(func(has func(string) bool) bool { return has("captureData") && has("eventMetadata") }),
		open: func(in *bufio.Reader, head []byte, o Options, s *Source) (decoder, error) {
			all, first := row.JSONInputs(in, head, s.fields)
			counts := newUsageReader(tokenusage.Body, []string{"out.usage"}, nil, o)
			capture := func(r row.Row, tell *fault.Notes) (row.Row, error) {
				v := row.NewView(r)
				if !unpackPayload(v, "in", "captureData.endpointInput") {
					return nil, row.BadAt(r, "captureData.endpointInput",
						"the request is missing or is not JSON, plain or as Base64")
				}
				putChatBody(v, "in", "captureData.endpointInput.data")
				if _, ok := r.Value("captureData.endpointOutput.data"); ok &&
					!unpackPayload(v, "out", "captureData.endpointOutput") {
					tell.Count(noteOtherResponses)
				}
				return v, counts.show(v, tell)
			}
			return openView(all, first, capture, sagemakerFields.withUsage(), o, s)
		},
	}
}

// unpackPayload decodes what was captured of one direction. Without an encoding it is
// Base64, as SageMaker takes content types that it does not know.
func unpackPayload(v row.View, name, path string) bool {
	data, _ := v.Row.Value(path + ".data")
	text, ok := data.(string)
	if encoding, _ := v.Row.Value(path + ".encoding"); ok && encoding != "JSON" {
		plainText, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return false
		}
		text = string(plainText)
	}
	value, _, valid := row.DecodeJSON([]byte(text))
	if !ok || !valid {
		return false
	}
	v.AdmitAt(path+".data", value)
	v.Put(name, value, path+".data")
	return true
}
