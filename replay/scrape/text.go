package scrape

import (
	"bytes"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// DefaultPrefixes are the families that are measured unless others are named:
// those of vLLM, SGLang, llama.cpp, NVIDIA Dynamo's frontend and TensorRT-LLM, and of
// NVIDIA's DCGM exporter.
func DefaultPrefixes() []string {
	return []string{"vllm:", "sglang:", "llamacpp:", "dynamo_frontend_", "trtllm_", "DCGM_FI_"}
}

// errText stands for every error of the decoder, because the decoder's own quote the input.
var errText = errors.New("the answer is not Prometheus text")

// decodeText decodes the families of a page whose names begin with a prefix:
// points sorted by name, buckets after all others and only when asked for.
func decodeText(page []byte, prefixes []string, buckets bool) ([]point, error) {
	// Only the lines of these families and their types are parsed. The rest, often the
	// larger part of a page, costs no decoding and cannot fail it.
	measured := make([]byte, 0, len(page))
	for len(page) > 0 {
		line, rest, _ := bytes.Cut(page, []byte{'\n'})
		page = rest
		name := bytes.TrimPrefix(bytes.TrimLeft(line, " \t"), []byte("# TYPE "))
		for _, p := range prefixes {
			if bytes.HasPrefix(name, []byte(p)) {
				measured = append(append(measured, bytes.TrimRight(line, "\r")...), '\n')
				break
			}
		}
	}
	parser := expfmt.NewTextParser(model.UTF8Validation) // its zero value panics
	families, err := parser.TextToMetricFamilies(bytes.NewReader(measured))
	if err != nil {
		return nil, errText
	}
	var names []string
	for name := range families {
		if !strings.HasSuffix(name, "_created") { // when a counter began, which Python's client adds
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var points, behind []point
	for _, name := range names {
		for _, m := range families[name].GetMetric() {
			plain, b := pointsOf(name, families[name].GetType(), m)
			points = append(points, plain...)
			if buckets {
				behind = append(behind, b...)
			}
		}
	}
	return append(points, behind...), nil
}

// mostOthers is how many names are kept of a page that has none with a prefix.
const mostOthers = 5

// otherNames are the names of the first families of a page, at most mostOthers, whatever
// their prefix, but those of the processes and languages that servers run in come last.
func otherNames(page []byte) (names []string) {
	var common []string
	for line := range bytes.Lines(page) {
		rest, found := bytes.CutPrefix(bytes.TrimLeft(line, " \t"), []byte("# TYPE "))
		name, _, _ := strings.Cut(strings.TrimSpace(string(rest)), " ")
		if !found || !familyName.MatchString(name) || slices.Contains(names, name) || slices.Contains(common, name) {
			continue
		}
		if strings.HasPrefix(name, "process_") || strings.HasPrefix(name, "python_") || strings.HasPrefix(name, "go_") {
			common = append(common, name)
			continue
		}
		if names = append(names, name); len(names) == mostOthers {
			break
		}
	}
	names = append(names, common...)
	return names[:min(len(names), mostOthers)]
}

var familyName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]{0,127}$`)

// pointsOf turns a metric into points: a counter or a gauge is one, a histogram
// its sum and count, and its buckets apart.
func pointsOf(name string, kind dto.MetricType, m *dto.Metric) (points, buckets []point) {
	labels := make([]label, 0, len(m.GetLabel())+1)
	for _, l := range m.GetLabel() {
		labels = append(labels, label{l.GetName(), l.GetValue()})
	}
	one := func(name, kind string, value float64) point {
		return point{metric: name, kind: kind, labels: labels, value: value}
	}
	with := func(name, kind, key string, edge, value float64) point {
		p := one(name, kind, value)
		p.labels = append(slices.Clone(labels), label{key, strconv.FormatFloat(edge, 'g', -1, 64)})
		return p
	}
	switch kind {
	case dto.MetricType_COUNTER:
		points = append(points, one(name, Counter, m.GetCounter().GetValue()))
	case dto.MetricType_GAUGE:
		points = append(points, one(name, Gauge, m.GetGauge().GetValue()))
	case dto.MetricType_HISTOGRAM, dto.MetricType_GAUGE_HISTOGRAM:
		h := m.GetHistogram()
		count := float64(h.GetSampleCount())
		if h.SampleCountFloat != nil {
			count = h.GetSampleCountFloat()
		}
		points = append(points, one(name+"_count", Counter, count), one(name+"_sum", Counter, h.GetSampleSum()))
		for _, b := range h.GetBucket() {
			n := float64(b.GetCumulativeCount())
			if b.CumulativeCountFloat != nil {
				n = b.GetCumulativeCountFloat()
			}
			buckets = append(buckets, with(name+"_bucket", Counter, "le", b.GetUpperBound(), n))
		}
	case dto.MetricType_SUMMARY:
		s := m.GetSummary()
		points = append(points, one(name+"_count", Counter, float64(s.GetSampleCount())),
			one(name+"_sum", Counter, s.GetSampleSum()))
		for _, q := range s.GetQuantile() {
			points = append(points, with(name, Gauge, "quantile", q.GetQuantile(), q.GetValue()))
		}
	default:
		points = append(points, one(name, kindOf(name), m.GetUntyped().GetValue()))
	}
	return points, buckets
}
