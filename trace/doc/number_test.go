package doc

import "testing"

func TestPercent(t *testing.T) {
	for share, want := range map[float64]string{
		0: "0 %", 1: "100 %", 0.4: "40 %", 0.123456: "12.3 %", 0.0999: "9.99 %", 0.00123456: "0.12 %", 0.00005: "0.005 %", 1e-6: "0.0001 %", -0.0512: "-5.12 %",
		12.5: "1,250 %", 1.23456: "123 %", 0.9994: "99.9 %", 0.9996: "99.96 %", 0.99996: "99.996 %", -0.9996: "-99.96 %", 1e-16: "0 %", 0.09999: "10 %",
	} {
		if got := Percent(share); got != want {
			t.Errorf("%v: %q, want %q", share, got, want)
		}
	}
	if got := PercentagePoints(-0.0123); got != "-1.23 pt" {
		t.Errorf("points: %q", got)
	}
}

func TestPrinters(t *testing.T) {
	for got, want := range map[string]string{
		Count(-1234567): "-1,234,567", Count(999): "999", Count(12_345_678): "12,345,678", Brief(12_345_678): "12 M", Brief(9_999_999): "9,999,999",
		Many(1, "row"): "1 row", Many(1200, "row"): "1,200 rows",
		Number(1234.5): "1,230", Number(1234): "1,234", Number(0.5): "0.5", Number(-0.0000123): "-0.0000123", Number(1e-9): "0", Number(12.3456): "12.3", Number(99.96): "100", Number(2.5e9): "2.50e9",
		Short(1.5): "1.50", Short(15): "15.0", Short(1843.2): "1,840", Short(1.5e6): "1.50e6", Short(0.04512): "0.0451", Short(0.00012): "0.0001", Short(0.00001): "0", Short(123456): "123,000", Short(9.996): "10.0", Short(0): "0", Short(-1.5): "-1.50", Short(2.5e10): "2.50e10",
		Beside(1.004, 1): "1.004", Beside(1.4, 1): "1.4", Beside(1, 1): "1", Fixed(1234.5, 2): "1,234.50",
		Was(1): "was", Was(0): "were", OrDash(nil, Percent): "–", OrDash(new(float64), Percent): "0 %",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
