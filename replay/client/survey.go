package client

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/replay/host"
	"reprise/replay/result"
)

// CaptureEnvironment describes this host, the servers by what they answer, and the
// GPUs where all servers are on this host. What does not answer within 10 s is left
// out.
func (a *Admin) CaptureEnvironment(ctx context.Context, model string) *result.Environment {
	e := &result.Environment{Host: host.This(), Servers: a.Survey(ctx, model)}
	if a.local() {
		e.GPUs = host.GPUs(ctx)
	}
	return e
}

// mostModels is how many models of a server are kept.
const mostModels = 20

// Survey asks every server, all at once, what it is; it takes 10 s at most. The model
// given comes first.
func (a *Admin) Survey(ctx context.Context, model string) []result.ServerModels {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out := make([]result.ServerModels, len(a.bases))
	var all sync.WaitGroup
	for i := range out {
		all.Go(func() { out[i] = a.survey(ctx, i, host.Label(model)) })
	}
	all.Wait()
	if !slices.ContainsFunc(out, func(s result.ServerModels) bool { return s.Version != "" || len(s.Models) > 0 }) {
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
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			OwnedBy string `json:"owned_by"`
			Parent  string `json:"parent"`
			MaxLen  int    `json:"max_model_len"`
			Meta    struct {
				Parameters int64 `json:"n_params"`
				Size       int64 `json:"size"`
			} `json:"meta"`
		} `json:"data"`
	}
	if !a.ask(ctx, server, "/v1/models", &list) {
		return out
	}
	for _, m := range list.Data {
		if m.ID == "" {
			continue
		}
		out.Models = append(out.Models, result.ServedModel{ID: host.Label(m.ID), OwnedBy: host.Label(m.OwnedBy), Parent: host.Label(m.Parent),
			MaxLen: max(m.MaxLen, 0), Parameters: max(m.Meta.Parameters, 0), Bytes: max(m.Meta.Size, 0)})
	}
	if i := slices.IndexFunc(out.Models, func(m result.ServedModel) bool { return m.ID == model }); i > 0 {
		out.Models[0], out.Models[i] = out.Models[i], out.Models[0]
	}
	if n := len(out.Models) - mostModels; n > 0 {
		out.Models, out.Unlisted = out.Models[:mostModels], n
	}
	return out
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
	for _, base := range a.bases {
		if host := base.Hostname(); !strings.HasSuffix(host, socketSuffix) && !localHost(host, net.InterfaceAddrs) {
			return false
		}
	}
	return true
}

// localHost reports whether a name or address is of this machine.
func localHost(host string, addresses func() ([]net.Addr, error)) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if ip.IsLoopback() || ip.IsUnspecified() {
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
