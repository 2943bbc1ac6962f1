package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"reprise/trace/page"
)

// How a metric moves.
const (
	MovesUp   = "up"
	MovesDown = "down"
	MovesNot  = "same"
)

// A Hypothesis says before a row runs what will come of it: a metric moves against
// another row of the same model.
type Hypothesis struct {
	Says    string
	Metric  Metric
	Moves   string  // up, down or same; empty says nothing that can be judged
	Against string  // name of a row
	By      float64 // share by which it moves at least; of same, at most
}

// defaultSame is within how much a metric has not moved.
const defaultSame = 0.05

// check refuses what cannot be judged.
func (h *Hypothesis) check() error {
	switch {
	case h.Moves == "" && (h.Metric != Metric{} || h.Against != "" || h.By != 0):
		return errors.New("say how the metric moves: moves: up, down or same")
	case h.Moves == "":
		return nil
	case !slices.Contains([]string{MovesUp, MovesDown, MovesNot}, h.Moves):
		return errors.New("moves: want up, down or same")
	case h.Metric == Metric{} || h.Against == "":
		return errors.New("a hypothesis that can be judged names a metric, and the row that it moves against")
	}
	return nil
}

// String is the hypothesis for people.
func (h *Hypothesis) String() string {
	if h.Moves == "" {
		return h.Says
	}
	what := map[string]string{MovesUp: "is above that", MovesDown: "is below that", MovesNot: "is that"}[h.Moves]
	by := ""
	switch {
	case h.Moves == MovesNot:
		by = fmt.Sprintf(", within %s", page.Percent(h.within()))
	case h.By > 0:
		by = fmt.Sprintf(", by %s or more", page.Percent(h.By))
	}
	rest := fmt.Sprintf("%s %s of %s%s", h.Metric, what, h.Against, by)
	if h.Says == "" {
		return rest
	}
	return h.Says + ": " + rest
}

func (h *Hypothesis) within() float64 {
	if h.By > 0 {
		return h.By
	}
	return defaultSame
}

// An Outcome is what became of a hypothesis.
type Outcome struct {
	Held   *bool    `json:"held"` // null where it cannot be judged
	Text   string   `json:"text"`
	Change *float64 `json:"change"` // of the metric against the other row, as a share of that
}

// judge holds a hypothesis against the figures of its row and of the other.
func (h *Hypothesis) judge(got, other Figure, has bool) Outcome {
	if !has || other.V == 0 {
		return Outcome{Text: fmt.Sprintf("not judged: there is no %s to compare", h.Metric)}
	}
	change := got.V/other.V - 1
	held := false
	switch h.Moves {
	case MovesUp:
		held = change > 0 && change >= h.By
	case MovesDown:
		held = change < 0 && -change >= h.By
	case MovesNot:
		held = math.Abs(change) <= h.within()
	}
	return Outcome{&held, fmt.Sprintf("%s: %s is %s, in %s %s (%s)", map[bool]string{true: "as said", false: "NOT as said"}[held],
		h.Metric.Label(), h.Metric.format(got), h.Against, h.Metric.format(other), signed(change)), &change}
}

// signed prints a change in percent.
func signed(share float64) string {
	s := strconv.FormatFloat(share*100, 'f', 1, 64)
	if share >= 10 || share <= -10 {
		s = strconv.FormatFloat(share*100, 'f', 0, 64)
	}
	if !strings.HasPrefix(s, "-") {
		s = "+" + s
	}
	return strings.Replace(s, "-", "−", 1) + " %"
}

// parsePercent reads a share such as 10%.
func parsePercent(s string) (float64, error) {
	digits, ok := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !ok || err != nil || !(v > 0 && v <= 1e6) {
		return 0, errors.New("want a percentage above zero, such as 10%")
	}
	return v / 100, nil
}
