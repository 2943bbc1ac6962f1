package bench

// Knee finds where a curve of latency over throughput bends: the point of the
// largest power, which is throughput divided by latency. Before it, more load brings
// more throughput for little delay; behind it, more delay for little throughput. The
// points are in ascending order of load. It is not found when the curve is not
// followed beyond its largest power, since it may lie further on.
//
// Power is of Kleinrock, "Power and deterministic rules of thumb for probabilistic
// problems in computer communications" (ICC 1979); that its maximum is the knee, of
// Jain, Ramakrishnan and Chiu, "Congestion avoidance in computer networks with a
// connectionless network layer" (1988). Kneedle (Satopää et al., 2011) was not taken:
// it scales both axes to what was measured, so that one more level far in saturation
// moves the knee.
func Knee(throughput, latency []float64) (at int, found bool) {
	at = -1
	best := 0.0
	for i := range throughput {
		if latency[i] <= 0 {
			continue
		}
		if power := throughput[i] / latency[i]; power > best {
			at, best = i, power
		}
	}
	return at, at >= 0 && at < len(throughput)-1
}

// A KneeResult is the knee of a sweep.
type KneeResult struct {
	Load  float64 `json:"load"`
	Found bool    `json:"found"` // else the load is the last that was measured, and the knee there or beyond
	Of    string  `json:"of"`    // what the power is made of
}

// knee is that of the levels of the ladder, nil where too few can be trusted. In an
// open loop the delay is the mean time to the first token, where a queue shows first;
// a closed loop has no queue, and the delay is that of whole requests. Both are means,
// as in the sources: tails are what a contract is for.
func (r *SweepResult) knee() *KneeResult {
	of := "achieved requests per second ÷ mean of TTFT from due"
	if r.Closed {
		of = "achieved requests per second ÷ mean of E2E"
	}
	var loads, throughput, latency []float64
	for _, l := range r.Ladder() {
		delay := l.TTFTDue.Mean
		if r.Closed {
			delay = l.E2EMean
		}
		if l.Outcome == Untrusted || delay == nil || l.Flow.AchievedPerS == nil {
			continue
		}
		loads, throughput, latency = append(loads, l.Load), append(throughput, *l.Flow.AchievedPerS), append(latency, *delay)
	}
	at, found := Knee(throughput, latency)
	if at < 0 {
		return nil
	}
	return &KneeResult{Load: loads[at], Found: found, Of: of}
}
