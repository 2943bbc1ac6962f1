package client

import (
	"encoding/json"
	"maps"
	"slices"

	"reprise/replay/client/internal/h1"
	"reprise/replay/host"
	"reprise/replay/result"
)

// samplingFields are the fields of a request body that say how tokens are drawn.
var samplingFields = []string{
	"temperature", "top_p", "top_k", "min_p", "seed", "n", "best_of", "presence_penalty", "frequency_penalty",
	"repetition_penalty",
	"stop", "ignore_eos", "min_tokens", "logit_bias", "logprobs", "top_logprobs",
}

// Endpoints returns the servers' URLs without queries, in the order of
// [result.Result.Endpoint].
func (h *HTTP) Endpoints() (names []string) {
	for i := range h.targets {
		names = append(names, h.targets[i].name)
	}
	return names
}

// Describe implements [result.Endpoint]: it records in run how requests are sent.
func (h *HTTP) Describe(run *result.Run) {
	run.API, run.Model, run.Connections, run.Overhead = h.opt.API, h.model, h.opt.Connections, h.overheads[h.opt.API]
	if run.Prompts = "text"; h.opt.TokenIDs {
		run.Prompts = "ids"
	}
	run.Endpoints = h.Endpoints()
	if len(h.targets) > 1 {
		run.Balance = h.opt.Balance
	}
	if h.opt.API == result.APIAuto {
		run.Overheads = maps.Clone(h.overheads)
	}
	run.Templates = maps.Clone(h.templates)
	run.Uncounted, run.Adapted = slices.Sorted(maps.Keys(h.uncounted)), h.Adapted()
	forced := h.opt.ForceOutput
	for api, d := range h.dialects {
		if d.noOptions {
			run.NoStreamOptions = append(run.NoStreamOptions, api)
		}
		forced = forced && !d.unforced
	}
	slices.Sort(run.NoStreamOptions)
	run.TraceID, run.Affinity = h.traceID, h.opt.AffinityHeader
	run.Retries, run.BackoffNS, run.RetryOther = h.opt.Retries, int64(h.opt.Backoff), h.opt.RetryOther
	run.TLSUnverified = h.opt.TLS != nil && h.opt.TLS.InsecureSkipVerify
	run.HTTP2, run.Proxy = h.opt.HTTP2, h.opt.Proxy
	run.TimeoutNS, run.FirstTokenTimeoutNS, run.IdleTimeoutNS = int64(h.opt.Timeout), int64(h.opt.FirstTokenTimeout),
		int64(h.opt.IdleTimeout)
	if h.opt.API == result.APIEmbeddings {
		return
	}
	// The temperature is that of each row that has one, unless one is given for all.
	run.Sampling = map[string]json.RawMessage{"temperature": json.RawMessage(`"workload"`)}
	if forced {
		run.Sampling["ignore_eos"] = json.RawMessage(`true`)
		if h.opt.API != result.APIResponses {
			run.Sampling["min_tokens"] = json.RawMessage(`"workload"`)
		}
	}
	for _, name := range samplingFields {
		if v, ok := h.opt.Extra.Get(name); ok {
			run.Sampling[name] = v
		}
	}
}

// Report implements [result.Endpoint].
func (h *HTTP) Report() result.EndpointReport {
	report := result.EndpointReport{Odd: h.odd.counts(), Served: h.served.all(), Said: h.words.all()}
	// The connections, unless net/http has them all.
	var all h1.Stats
	own := false
	for i := range h.targets {
		w := h.targets[i].wire
		if w == nil {
			continue
		}
		own = true
		s := w.client.Stats()
		all.Dials, all.Waited, all.Reused = all.Dials+s.Dials, all.Waited+s.Waited, all.Reused+s.Reused
		all.Replaced, all.Stale, all.Closes = all.Replaced+s.Replaced, all.Stale+s.Stale, all.Closes || s.Closes
		all.PortWaits, all.PortWait = all.PortWaits+s.PortWaits, max(all.PortWait, s.PortWait)
		all.MaxMinute = max(all.MaxMinute, s.MaxMinute) // ports are counted for each address
	}
	if own {
		report.Wire = described(all, host.LocalPorts())
	}
	return report
}
