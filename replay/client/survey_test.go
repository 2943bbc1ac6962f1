package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"

	"reprise/replay/result"
)

func TestLocalHost(t *testing.T) {
	own := func() ([]net.Addr, error) {
		return []net.Addr{&net.IPNet{IP: net.IPv4(10, 1, 2, 3), Mask: net.CIDRMask(8, 32)}, &net.IPNet{IP: net.ParseIP("fd00::1"), Mask: net.CIDRMask(64, 128)}}, nil
	}
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "10.1.2.3": true, "fd00::1": true,
		"10.1.2.4": false, "gpu1": false, "example.com": false, "8.8.8.8": false, "": false,
	} {
		if localHost(host, own) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
	if localHost("10.1.2.3", func() ([]net.Addr, error) { return nil, errors.New("no") }) {
		t.Error("an address that is not known is taken for one of this host")
	}
	if !adminOf(t, "unix:///x.sock", "http://127.0.0.1:1").local() || adminOf(t, "http://127.0.0.1:1", "http://192.0.2.1").local() {
		t.Error("of several servers, all must be on this host")
	}
}

// Servers say who they are as far as they do, in bounds, and never fail a run.
func TestSurvey(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf(`{"id":"adapter-%d","parent":"m"}`, i))
	}
	vllm := (&adminServer{gets: map[string]string{"/version": `{"version":"0.11.0"}`,
		"/v1/models": `{"data":[` + strings.Join(many, ",") + `,{"id":"m","owned_by":"vllm","root":"/home/SECRET/m","max_model_len":4096}]}`}}).start(t)
	llama := (&adminServer{gets: map[string]string{"/v1/models": `{"data":[{"id":"q\u001b","owned_by":"` + strings.Repeat("x", 1000) + `","meta":{"n_params":494032768,"size":987654}}]}`}}).start(t)
	other := (&adminServer{gets: map[string]string{"/version": `<html>`, "/v1/models": `[]`}}).start(t)
	got := adminOf(t, vllm, llama, other).Survey(t.Context(), "m")
	if len(got) != 3 || got[0].Version != "0.11.0" || len(got[0].Models) != mostModels || got[0].Unlisted != 11 ||
		got[0].Models[0] != (result.ServedModel{ID: "m", OwnedBy: "vllm", MaxLen: 4096}) || got[0].Models[1].Parent != "m" {
		t.Errorf("%+v", got)
	}
	if m := got[1].Models[0]; m.ID != "q?" || len([]rune(m.OwnedBy)) != 200 || m.Parameters != 494032768 || m.Bytes != 987654 {
		t.Errorf("%+v", m)
	}
	if !reflect.DeepEqual(got[2], result.ServerModels{}) {
		t.Errorf("%+v", got[2])
	}
	if doc, _ := json.Marshal(got); strings.Contains(string(doc), "SECRET") {
		t.Error("where the model lies is told")
	}
	if got := adminOf(t, other).Survey(t.Context(), "m"); got != nil {
		t.Errorf("a server that says nothing: %+v", got)
	}
}
