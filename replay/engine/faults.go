package engine

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"reprise/trace/sample"
)

// FaultHeader is the header by which a request chooses the quirks of its answer,
// such as "stall=5s,no-done". It is honoured when [ServerConfig].FaultHeader is set.
const FaultHeader = "X-Reprise-Fault"

// A fault is drawn for each request with its probability.
type fault struct {
	quirks    []chosenQuirk
	threshold uint64 // of 2^53
}

// faults decide in what manner each request is answered.
type faults struct {
	base   behaviour // of the whole server
	random []fault
	seed   uint64
	header bool

	quirkList, randomList string // as they were given
}

// newFaults reads the quirks and faults of the configuration.
func newFaults(imitate, quirks, random string, seed uint64, header bool) (*faults, error) {
	f := &faults{base: defaultBehaviour(), seed: seed, header: header, quirkList: quirks, randomList: random}
	if imitate != "" {
		list := Imitation(imitate)
		if list == "" {
			return nil, fmt.Errorf("simulated engine: unknown server to imitate: want one of %s",
				strings.Join(Imitations(), ", "))
		}
		profile, err := parseQuirks(list, ",")
		if err != nil {
			return nil, err
		}
		f.base.applyQuirks(profile)
	}
	own, err := parseQuirks(quirks, ",")
	if err != nil {
		return nil, fmt.Errorf("simulated engine: %w", err)
	}
	f.base.applyQuirks(own)
	f.random, err = parseFaults(random)
	return f, err
}

// parseFaults reads faults with their shares, such as
// "error=503:5%,error=429+retry-after=2:1%": those joined by "+" strike together.
func parseFaults(list string) ([]fault, error) {
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	var out []fault
	for i, item := range strings.Split(list, ",") {
		at := strings.LastIndexByte(item, ':')
		if at < 0 {
			return nil, fmt.Errorf("simulated engine: fault %d has no share of requests: write it as error=503:5%%",
				i+1)
		}
		percent, ok := strings.CutSuffix(strings.TrimSpace(item[at+1:]), "%")
		share, err := strconv.ParseFloat(percent, 64)
		if err != nil || !ok || !(share >= 0 && share <= 100) {
			return nil, fmt.Errorf("simulated engine: the share of fault %d is not a percentage from 0%% to 100%%", i+1)
		}
		quirks, err := parseQuirks(item[:at], "+")
		switch {
		case err != nil:
			return nil, fmt.Errorf("simulated engine: fault %d: %w", i+1, err)
		case len(quirks) == 0:
			return nil, fmt.Errorf("simulated engine: fault %d has no name", i+1)
		}
		out = append(out, fault{quirks, uint64(math.Round(share / 100 * (1 << 53)))})
	}
	return out, nil
}

// behaviourFor is that of the n-th request: the server's, then what the draw says,
// then what the request itself asks for.
func (f *faults) behaviourFor(r *http.Request, n int64) (*behaviour, error) {
	m := &f.base
	change := func(list []chosenQuirk) {
		if m == &f.base {
			m = new(f.base)
		}
		m.applyQuirks(list)
	}
	for i := range f.random {
		if draw(f.seed, uint64(n), uint64(i)) < f.random[i].threshold {
			change(f.random[i].quirks)
		}
	}
	if !f.header {
		return m, nil
	}
	if list := r.Header.Get(FaultHeader); list != "" {
		asked, err := parseQuirks(list, ",")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", FaultHeader, err)
		}
		change(asked)
	}
	return m, nil
}

// draw is a number below 2^53 that depends on nothing but its arguments, so that
// the n-th request has the same fate in every run.
func draw(seed, request, item uint64) uint64 {
	x := seed
	for _, v := range [...]uint64{request, item} {
		x = sample.Mix64(x + (v+1)*sample.Golden)
	}
	return x >> 11
}

// faultSettings are those in force. They are replaced as a whole.
type faultSettings struct {
	faults  *faults
	imitate string
}
