package stamp

import (
	"testing"
	"time"
)

// A date that is read says a layout that reads the same instant.
func FuzzReadWrittenDate(f *testing.F) {
	for _, s := range []string{"02.01.2026 15:04:05", "11/03/2026 09:00:01 AM", "Mon, 02 Jan 2026 15:04:05 +0100", "2/Jan/2026:15:04:05.5 Z",
		"May 4, 2026 9:00pm", "MAY 1 1000 1:00Am", "1 JAn 1000 0:00+0:0", "1 Jan 1000 0:00z",
		"Mon, 0002 Jan 2026 15:04:05 +0100"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		st, ok := readWrittenDate(s)
		if !ok {
			return
		}
		readings := map[string]time.Time{st.layout: st.Time}
		if st.open {
			readings[monthFirst(st.layout)] = st.Swapped
		}
		for layout, want := range readings {
			layouts, err := timeLayouts(layout)
			if err != nil {
				t.Fatalf("%q has the layout %q: %v", s, layout, err)
			}
			if got, ok := readByLayout(layouts, s); !want.IsZero() && (!ok || !got.Time.Equal(want)) {
				t.Fatalf("%q is %v, but by %q %v, %v", s, want, layout, got.Time, ok)
			}
		}
	})
}

// What is no date of a layout that people write is left to others.
func TestNoWrittenDates(t *testing.T) {
	for _, in := range []string{"32.01.2026 15:04:05", "01.01.26 15:04", "01.01.2026", "13/13/2026 09:00",
		"11/23/2026 13:00 PM",
		"11/23/2026 09:60", "23.11/2026 09:00", "2026 Nov 3 09:00", "Nov Nov 2026 09:00", "11/23/2026 24:00", "11/23/2026 09:00 CET", "/", "Mon, "} {
		if st, ok := readWrittenDate(in); ok {
			t.Errorf("%q was read as %v", in, st)
		}
	}
}
