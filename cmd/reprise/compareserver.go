package main

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"
)

// lookupTime is how long the names of two servers may take to be resolved.
const lookupTime = 5 * time.Second

// oneServer says whether two endpoints may be one server by two names: they have a
// port and an address in common. One whose name cannot be resolved is another, unless
// it has the same name.
//
// Two servers of one address, such as an ingress, count as one too. A mistake costs
// little in that direction: in the other, one side would find the prompts of the other.
func oneServer(ctx context.Context, urls [2]string) bool {
	if urls[0] == "" || urls[1] == "" {
		return false
	}
	if origin(urls[0]) == origin(urls[1]) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	var ports [2]string
	var hosts [2][]string
	for i, s := range urls {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Scheme == "unix" {
			return false
		}
		if ports[i] = u.Port(); ports[i] == "" {
			ports[i] = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		if hosts[i], err = net.DefaultResolver.LookupHost(ctx, u.Hostname()); err != nil {
			hosts[i] = []string{strings.ToLower(u.Hostname())}
		}
		if slices.ContainsFunc(hosts[i], ofThisMachine) {
			hosts[i] = append(hosts[i], "127.0.0.1")
		}
	}
	return ports[0] == ports[1] && slices.ContainsFunc(hosts[0], func(h string) bool { return slices.Contains(hosts[1], h) })
}

// ofThisMachine says whether an address is one of the machine that asks.
func ofThisMachine(address string) bool {
	ip := net.ParseIP(address)
	if ip == nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	return ip.IsLoopback() || ip.IsUnspecified() || err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}
