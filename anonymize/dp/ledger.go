package dp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"
)

// A Release is one entry of a ledger.
type Release struct {
	Source    string    `json:"source"`  // digest of the rows that were measured
	Release   string    `json:"release"` // digest of what was written
	Time      time.Time `json:"time"`
	Budget              // as spent
	Mechanism string    `json:"mechanism"`
	Rho       float64   `json:"rho_zcdp,omitempty"`
}

// A Ledger is a file of releases, one JSON object a line, that is only ever
// appended to. Releases of one source add up, whoever has them: what each would
// have hidden, all of them together may show.
type Ledger struct{ Path string }

// Spent adds up the releases of a source: ε and δ of each, or, when all were
// Gaussian, their ρ, converted at the largest δ among them, where that is less.
// A file that does not exist is an empty ledger. Releases that are not entered
// yet may be given beside.
func (l Ledger) Spent(source string, more ...Release) (Total, error) {
	list, err := l.releases(source)
	if err != nil {
		return Total{}, err
	}
	var sum Budget
	var rho, delta float64
	onlyRho := true
	list = append(list, more...)
	for _, r := range list {
		sum.Epsilon, sum.Delta = sum.Epsilon+r.Epsilon, sum.Delta+r.Delta
		rho, delta = rho+r.Rho, max(delta, r.Delta)
		onlyRho = onlyRho && r.Rho > 0
	}
	if len(list) > 0 && onlyRho {
		if eps := epsilon(rho, delta); eps < sum.Epsilon {
			sum = Budget{eps, delta}
		}
	}
	return Total{sum, len(list)}, nil
}

// releases are those of a source.
func (l Ledger) releases(source string) (list []Release, err error) {
	f, err := os.Open(l.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for line := 1; lines.Scan(); line++ {
		var r Release
		if json.Unmarshal(lines.Bytes(), &r) != nil || !(r.Epsilon > 0) || !(r.Delta >= 0) || !(r.Rho >= 0) {
			return nil, fmt.Errorf("%s:%d: not a ledger entry", l.Path, line)
		}
		if r.Source == source {
			list = append(list, r)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: not a ledger file", l.Path)
	}
	return list, nil
}

// Add appends a release and waits until it is on disk.
func (l Ledger) Add(r Release) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(l.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// epsilon is the least ε at which ρ-zCDP has this δ.
func epsilon(rho, delta float64) float64 {
	lo, hi := 0.0, rho+2*math.Sqrt(rho*math.Log(1/delta)) // Bun and Steinke 2016, which is never less
	for range 100 {
		mid := (lo + hi) / 2
		if zcdpDelta(rho, mid) <= delta {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
