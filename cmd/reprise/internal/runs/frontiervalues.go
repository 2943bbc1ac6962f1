package runs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"reprise/replay/hardware"
	"reprise/trace/quantity"
)

// perGPU is a number for all GPUs, or one for each kind of them.
type perGPU struct {
	all float64
	of  map[string]float64 // by the name in the table of data sheets
}

func (p *perGPU) at(gpu string) float64 {
	if v, ok := p.of[gpu]; ok {
		return v
	}
	return p.all
}

// Set implements [pflag.Value].
func (p *perGPU) Set(text string) error {
	wrong := &quantity.Error{Text: text, Want: "a number above 0, or such numbers by GPU",
		Examples: [3]string{"700", "l4=72", "l4=72,h100=700"}}
	if !strings.Contains(text, "=") {
		v, err := quantity.Number(text)
		if err != nil || !(v > 0) {
			return wrong
		}
		p.all = v
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(part, "=")
		v, err := quantity.Number(number)
		gpu, gerr := hardware.FindGPU(name)
		if gerr != nil {
			return gerr
		}
		if err != nil || !(v > 0) {
			return wrong
		}
		if p.of == nil {
			p.of = map[string]float64{}
		}
		p.of[gpu.Name] = v
	}
	return nil
}

// String implements [pflag.Value].
func (p *perGPU) String() string {
	var parts []string
	for gpu, v := range p.of {
		parts = append(parts, gpu+"="+strconv.FormatFloat(v, 'g', -1, 64))
	}
	slices.Sort(parts)
	if p.all > 0 {
		parts = append([]string{strconv.FormatFloat(p.all, 'g', -1, 64)}, parts...)
	}
	return strings.Join(parts, ",")
}

// Type implements [pflag.Value].
func (p *perGPU) Type() string { return "watts" }

// A priceValue is --price-per-gpu-hour, which a frontier takes by GPU too.
type priceValue struct {
	pflag.Value
	prices *perGPU
}

// Set implements [pflag.Value].
func (p priceValue) Set(text string) error {
	if strings.Contains(text, "=") {
		return p.prices.Set(text)
	}
	if err := p.Value.Set(text); err != nil {
		return err
	}
	v, err := quantity.Number(text)
	p.prices.all = v
	return err
}

// String implements [pflag.Value].
func (p priceValue) String() string {
	if p.prices == nil || p.prices.of == nil {
		return p.Value.String()
	}
	return p.prices.String()
}

// A presetList is --preset where it takes several, as for a frontier.
type presetList struct {
	pflag.Value
	all *[]string
}

// Set implements [pflag.Value].
func (p presetList) Set(text string) error {
	*p.all = append(*p.all, strings.Split(text, ",")...)
	return p.Value.Set(text)
}

// String implements [pflag.Value].
func (p presetList) String() string {
	if p.all == nil || len(*p.all) < 2 {
		return p.Value.String()
	}
	return strings.Join(*p.all, ",")
}
