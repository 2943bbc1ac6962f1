package fault

import (
	"errors"
	"io"
	"slices"
	"testing"
)

// A fault keeps its place, and the sentinel of what went wrong, in the error of a file.
func TestFaults(t *testing.T) {
	for want, f := range map[string]*Fault{
		"log:2:3: why":  Bad(2, 3, "why"),
		"log:4:5: stop": Refuse(4, 5, "stop"),
		"log:6:7: unexpected end of file: of a line": CutOff(6, 7, "of a line"),
		"log:8:9: no disk":                           Broken(8, 9, errors.New("no disk")),
	} {
		if err := f.At("log"); err.Error() != want || f.Stop == (f.Reason == "why") {
			t.Errorf("%v, stops: %v; want %s", err, f.Stop, want)
		}
	}
	if !errors.Is(CutOff(1, 1, "").At("log"), io.ErrUnexpectedEOF) {
		t.Error("an input that is cut off is not told by errors.Is")
	}
	if err := Usage("want %d", 7); err.Error() != "want 7" || !errors.Is(err, ErrUsage) {
		t.Error(err)
	}
}

// Notes stand in the order in which they were said first, once each, with their counts.
func TestNotes(t *testing.T) {
	var n Notes
	n.Count("b")
	n.SayOnce("a")
	n.Count("b")
	n.SayOnce("a")
	n.CountNamed("the word %s", "tool_use")
	n.CountNamed("the word %s", "a secret")
	n.Add("c", 5)
	want := []string{"b: 2", "a", "the word tool_use: 1", "the word another name: 1", "c: 5"}
	if got := n.Lines(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	once := n.Once()
	if got := once.Lines(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("once: %q", got)
	}
}
