package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"reprise/datasets/internal/fault"
)

// Formats lists the formats that a trace can be written in.
func Formats() []Format {
	return []Format{
		mooncakeFormat(), bailianFormat(), aiperfFormat(), vllmCustomFormat(), vllmTimedFormat(),
		sglangFormat(), guideLLMFormat(), inferencePerfFormat(), openAIBatchFormat(), blisFormat(),
	}
}

// NewWriter writes to w in the format of that name. Errors in what was asked
// for match [datasets.ErrUsage].
func NewWriter(name string, w io.Writer, o Options) (Writer, error) {
	outputs := Formats()
	i := slices.IndexFunc(outputs, func(out Format) bool { return out.Name == name })
	if i < 0 {
		names := make([]string, len(outputs))
		for i, out := range outputs {
			names[i] = out.Name
		}
		return nil, fault.Usage("unknown format to write: want one of %s", strings.Join(names, ", "))
	}
	out := outputs[i]
	switch {
	case o.BlockSize < 0:
		return nil, fault.Usage("the block size is negative")
	case out.NeedsBlocks && o.BlockSize == 0:
		return nil, fmt.Errorf("the trace has no block ids, which the format %s needs", name)
	case out.NeedsPrompts && o.Prompter == nil:
		return nil, fault.Usage("the format %s holds prompts: say how to make them", name)
	case out.HeaderExt != "" && o.Header == nil:
		return nil, fault.Usage("the format %s has a second file, with the header: say where to write it", name)
	}
	f := &writer{w: bufio.NewWriter(w), losses: newLosses(out.says)}
	var err error
	if f.encode, err = out.open(o, f.losses); err != nil {
		return nil, err
	}
	_, err = f.w.WriteString(out.top)
	return f, err
}
