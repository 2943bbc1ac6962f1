package dp

import "math"

// A Budget is what a release may cost. The defaults of this field are ε = 1 and
// δ = 1e-6; δ must be well below one over the number of users.
type Budget struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
}

// Rho is the largest ρ for which every ρ-zCDP mechanism is (ε, δ)-differentially
// private by zcdpDelta. ε and δ must be above 0.
func Rho(eps, delta float64) float64 {
	lo, hi := 0.0, eps // ρ-zCDP is at best (ρ, ·)-private
	for range 60 {
		mid := (lo + hi) / 2
		if zcdpDelta(mid, eps) <= delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
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

// zcdpDelta is the δ that ρ-zCDP gives at ε:
//
//	δ = inf over α>1 of exp((α−1)(αρ−ε))/(α−1) · (1−1/α)^α
//
// (Canonne, Kamath and Steinke 2020, corollary 13). The logarithm is convex
// enough in α for a search by thirds; a point beside the best one only makes the
// answer larger, which is safe.
func zcdpDelta(rho, eps float64) float64 {
	if rho <= 0 {
		return 0
	}
	log := func(alpha float64) float64 {
		return (alpha-1)*(alpha*rho-eps) - math.Log(alpha-1) + alpha*math.Log1p(-1/alpha)
	}
	lo, hi := math.Log(1e-5), math.Log((eps+1)/rho+2) // of α−1
	for range 90 {
		a, b := lo+(hi-lo)/3, hi-(hi-lo)/3
		if log(1+math.Exp(a)) < log(1+math.Exp(b)) {
			hi = b
		} else {
			lo = a
		}
	}
	return min(1, math.Exp(log(1+math.Exp(lo))))
}
