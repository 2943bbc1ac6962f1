package page

// Drawn keeps the plots that have a point, and of them the series that have.
func Drawn(plots ...Plot) []Plot {
	var out []Plot
	for _, p := range plots {
		var series []Series
		for _, s := range p.Series {
			if len(s.X) > 0 {
				series = append(series, s)
			}
		}
		if p.Series = series; len(series) > 0 {
			out = append(out, p)
		}
	}
	return out
}
