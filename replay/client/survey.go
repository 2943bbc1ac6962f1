package client

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/replay/host"
	"reprise/replay/result"
	"reprise/replay/scrape"
	"reprise/trace/crash"
)

// CaptureEnvironment describes this host, the servers by what a [Admin.Survey] found, and
// the GPUs where all servers are on this host.
func (a *Admin) CaptureEnvironment(ctx context.Context, servers []result.ServerModels) *result.Environment {
	e := &result.Environment{Host: host.This(), Servers: servers}
	if a.local() {
		e.GPUs = host.GPUs(ctx)
	}
	return e
}

// mostModels is how many models of a server are kept.
const mostModels = 20

// Survey asks every server, all at once, what it is, by three to five GETs: its version, its models, its
// metrics, and the settings that llama.cpp and SGLang show. It takes 10 s at most. The
// model given comes first.
func (a *Admin) Survey(ctx context.Context, model string) []result.ServerModels {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out := make([]result.ServerModels, len(a.bases))
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() {
			defer crash.Caught()
			out[i] = a.survey(ctx, i, host.Label(model))
		})
	}
	all.Wait()
	if !slices.ContainsFunc(out, func(s result.ServerModels) bool {
		return s.Version != "" || s.Engine != "" || len(s.Models) > 0
	}) {
		return nil
	}
	return out
}

func (a *Admin) survey(ctx context.Context, server int, model string) (out result.ServerModels) {
	var v struct {
		Version string `json:"version"`
	}
	if a.ask(ctx, server, "/version", &v) {
		out.Version = host.Label(v.Version)
	}
	a.listModels(ctx, server, model, &out)
	facts := a.facts(ctx, server)
	out.BlockSize, out.BlockFrom, out.KVTokens = facts.BlockSize, facts.BlockFrom, facts.KVTokens
	out.PrefixCaching, out.Speculates = facts.PrefixCaching, facts.Speculates
	out.Engine = facts.Engine
	hint := ""
	if len(out.Models) > 0 {
		out.Models[0].MaxLen = cmp.Or(out.Models[0].MaxLen, facts.MaxLen)
		hint = ownerEngines[out.Models[0].OwnedBy]
	}
	switch { // reprise serve has the metrics of vLLM
	case facts.Engine == "vllm" && hint == "reprise", facts.Engine == "" && out.Version != "" &&
		(hint == "vllm" || hint == "trtllm"):
		out.Engine = hint
	}
	a.settings(ctx, server, cmp.Or(out.Engine, hint), &out)
	return out
}

// ownerEngines are the engines whose models have this owner. Gateways, and servers that are like
// them, hand the name on or use it too: it says what to ask for, and not what the engine is.
var ownerEngines = map[string]string{"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp",
	"tensorrt_llm": "trtllm", "reprise": "reprise"}

// facts are what the metrics of a server state, at the path that all engines have them at
// or at that of TensorRT-LLM.
func (a *Admin) facts(ctx context.Context, server int) (f scrape.Facts) {
	for _, path := range []string{"/metrics", "/prometheus/metrics"} {
		page := scrape.Target{Name: "server", URL: below(a.bases[server], path).String(), Header: a.header}
		s, err := scrape.New(scrape.Options{Targets: []scrape.Target{page}, Transport: a.client.Transport})
		if err != nil {
			return f
		}
		if f = scrape.FactsOf(s.Once(ctx)); f.Engine != "" || s.Stats().Targets[0].Scrapes == 0 {
			return f
		}
	}
	return f
}

// settings adds what llama.cpp and SGLang tell of their settings, and Dynamo of its
// version. Nothing else of their answers, which can hold a key and a path, is kept. A server
// whose engine is not known is the one that it may be if it has that engine's settings.
func (a *Admin) settings(ctx context.Context, server int, engine string, out *result.ServerModels) {
	switch engine {
	case "llamacpp":
		var props struct {
			Slots    int    `json:"total_slots"`
			Build    string `json:"build_info"`
			Defaults struct {
				Params struct {
					Speculative string `json:"speculative.types"`
				} `json:"params"`
			} `json:"default_generation_settings"`
		}
		if a.ask(ctx, server, "/props", &props) && (props.Slots > 0 || props.Build != "") {
			out.Engine = engine
			out.Slots, out.Version = max(props.Slots, 0), cmp.Or(out.Version, host.Label(props.Build))
			if s := props.Defaults.Params.Speculative; s != "" && s != "none" {
				out.Speculates = true
			}
		}
		if out.Engine == engine {
			out.BlockSize, out.BlockFrom = 1, "llama.cpp, which reuses a slot by token"
		}
	case "sglang":
		var info struct {
			Version     string `json:"version"`
			PageSize    int    `json:"page_size"`
			NoCache     *bool  `json:"disable_radix_cache"`
			Tokens      int64  `json:"max_total_num_tokens"`
			Speculative string `json:"speculative_algorithm"`
		}
		if !a.ask(ctx, server, "/server_info", &info) && !a.ask(ctx, server, "/get_server_info", &info) {
			return
		}
		if out.Engine == "" && info.PageSize == 0 && info.Tokens == 0 && info.NoCache == nil {
			return // a page of another server
		}
		out.Engine = engine
		out.Version, out.Speculates = cmp.Or(out.Version, host.Label(info.Version)), out.Speculates ||
			info.Speculative != ""
		out.KVTokens = cmp.Or(out.KVTokens, max(info.Tokens, 0))
		if out.BlockSize == 0 && info.PageSize > 0 {
			out.BlockSize, out.BlockFrom = info.PageSize, "/server_info"
		}
		if info.NoCache != nil {
			out.PrefixCaching = new(!*info.NoCache)
		}
	case "dynamo":
		var api struct {
			Info struct {
				Version string `json:"version"`
			} `json:"info"`
		}
		if a.ask(ctx, server, "/openapi.json", &api) {
			out.Version = cmp.Or(out.Version, host.Label(api.Info.Version))
		}
	}
}

// listModels reads the models of a server, the given one first.
func (a *Admin) listModels(ctx context.Context, server int, model string, out *result.ServerModels) {
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			OwnedBy string `json:"owned_by"`
			Parent  string `json:"parent"`
			Root    string `json:"root"`
			MaxLen  int    `json:"max_model_len"`
			Meta    struct {
				Parameters int64 `json:"n_params"`
				Size       int64 `json:"size"`
				Context    int   `json:"n_ctx"`
			} `json:"meta"`
			Window int `json:"context_window"` // of Dynamo
		} `json:"data"`
	}
	if !a.ask(ctx, server, modelsPath, &list) {
		return
	}
	for _, m := range list.Data {
		if m.ID == "" {
			continue
		}
		out.Models = append(out.Models, result.ServedModel{ID: host.Label(m.ID), OwnedBy: host.Label(m.OwnedBy),
			Parent: host.Label(m.Parent), Root: m.Root,
			MaxLen: max(cmp.Or(m.MaxLen, m.Meta.Context, m.Window), 0), Parameters: max(m.Meta.Parameters, 0),
			Bytes: max(m.Meta.Size, 0)})
	}
	if i := slices.IndexFunc(out.Models, func(m result.ServedModel) bool { return m.ID == model }); i > 0 {
		out.Models[0], out.Models[i] = out.Models[i], out.Models[0]
	}
	if n := len(out.Models) - mostModels; n > 0 {
		out.Models, out.Unlisted = out.Models[:mostModels], n
	}
}

// NamesOf are the names under which a model's files may be at hand: the one that requests have, the place that a server
// says it loaded the model from, and both of the model that an adapter belongs to.
func NamesOf(servers []result.ServerModels, model string) []string {
	names := []string{model}
	for _, s := range servers {
		m := served(s.Models, model)
		if m == nil {
			continue
		}
		names = append(names, m.ID, m.Root)
		if of := served(s.Models, m.Parent); of != nil {
			names = append(names, of.ID, of.Root)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// served is the model of a name in a server's list, or nil.
func served(models []result.ServedModel, name string) *result.ServedModel {
	i := slices.IndexFunc(models, func(m result.ServedModel) bool { return m.ID == host.Label(name) })
	if i < 0 {
		return nil
	}
	return &models[i]
}

// Unlisted is a model that the servers list where none of them lists the one that is asked for, and "" where one lists
// it or tells too little.
func Unlisted(servers []result.ServerModels, model string) (other string) {
	for _, s := range servers {
		if len(s.Models) == 0 || s.Unlisted > 0 || served(s.Models, model) != nil {
			return ""
		}
		other = s.Models[0].ID
	}
	return other
}

// About sums a survey up: which versions there are, joined by commas, and the smallest
// context length that is listed for the model. What servers do not say stays empty.
func About(servers []result.ServerModels, model string) (version string, maxLen int) {
	var versions []string
	for _, s := range servers {
		if s.Version != "" {
			versions = append(versions, s.Version)
		}
		for _, m := range s.Models {
			if m.ID == host.Label(model) && m.MaxLen > 0 && (maxLen == 0 || m.MaxLen < maxLen) {
				maxLen = m.MaxLen
			}
		}
	}
	slices.Sort(versions)
	return strings.Join(slices.Compact(versions), ", "), maxLen
}

// local reports whether all servers are at an address or a Unix socket of this machine.
// A name other than localhost is not looked up.
func (a *Admin) local() bool {
	return !slices.ContainsFunc(a.bases, func(base *url.URL) bool {
		host := base.Hostname()
		return !strings.HasSuffix(host, socketSuffix) && !localHost(host, net.InterfaceAddrs)
	})
}

// localHost reports whether a name or address is of this machine.
func localHost(name string, addresses func() ([]net.Addr, error)) bool {
	if host.Loopback(name) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	if err != nil {
		return false
	}
	if ip.IsUnspecified() {
		return true
	}
	own, err := addresses()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().WithZone("") == ip.Unmap().WithZone("")
	})
}
