package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// adminSettings are what /admin/config shows of a running server, and changes.
// Durations are written as "20ms".
type adminSettings struct {
	Base        string  `json:"prefill_base,omitempty"` // of the timeline
	PrefillRate float64 `json:"prefill_rate,omitempty"` // of the timeline, tokens per second
	ITL         string  `json:"itl,omitempty"`          // of the timeline
	MaxWaiting  int     `json:"max_waiting"`            // requests that wait
	Imitate     string  `json:"imitate"`                // see [ServerConfig]
	Quirks      string  `json:"quirks"`                 // see [ServerConfig]
	Faults      string  `json:"faults"`                 // see [ServerConfig]
	FaultSeed   uint64  `json:"fault_seed"`             // see [ServerConfig]
}

// settings are those in force.
func (s *Server) settings() adminSettings {
	now := s.current.Load()
	out := adminSettings{Imitate: now.imitate, Quirks: now.faults.quirkList, Faults: now.faults.randomList, FaultSeed: now.faults.seed}
	if s.live != nil {
		s.live.mu.Lock()
		defer s.live.mu.Unlock()
		out.MaxWaiting = s.live.engine.c.MaxWaiting
		return out
	}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	c := s.engine.c
	out.Base, out.PrefillRate, out.ITL, out.MaxWaiting = c.Base.String(), c.PrefillRate, c.ITL.String(), c.MaxWaiting
	return out
}

// admin shows the settings, or changes those that a JSON object names and shows
// all. What it refuses it names, and changes nothing then.
func (s *Server) admin(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err == nil {
			s.changing.Lock()
			err = s.change(body)
			s.changing.Unlock()
		}
		if err != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			text, _ := json.Marshal(map[string]string{"error": err.Error()})
			w.Write(text)
			return
		}
	}
	writeJSON(w, s.settings())
}

// change takes the settings that a JSON object names.
func (s *Server) change(body []byte) error {
	next := s.settings()
	var named map[string]json.RawMessage
	if json.Unmarshal(body, &named) != nil || named == nil {
		return errors.New("the body is not a JSON object")
	}
	for _, name := range []string{"prefill_base", "prefill_rate", "itl"} {
		if _, ok := named[name]; ok && s.live != nil {
			return fmt.Errorf("%s: it cannot be set on a server with an engine model, which takes its costs from the preset", name)
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&next); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%s: not a value of its type", wrong.Field)
		}
		if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return fmt.Errorf("%s: no such setting", strings.Trim(field, `"`))
		}
		return errors.New("the body is not a JSON object of settings")
	}
	f, err := newFaults(next.Imitate, next.Quirks, next.Faults, next.FaultSeed, s.c.FaultHeader)
	if err != nil {
		return err
	}
	if next.MaxWaiting < 0 {
		return errors.New("max_waiting: it must not be negative")
	}
	// Streams that run keep the times that they began with.
	if s.live != nil {
		s.live.mu.Lock()
		s.live.engine.c.MaxWaiting = next.MaxWaiting
		s.live.mu.Unlock()
	} else {
		base, err := time.ParseDuration(next.Base)
		if err != nil || base < 0 {
			return errors.New("prefill_base: not a duration such as 5ms")
		}
		itl, err := time.ParseDuration(next.ITL)
		if err != nil || itl < 0 {
			return errors.New("itl: not a duration such as 20ms")
		}
		if !(next.PrefillRate > 0) {
			return errors.New("prefill_rate: it must be positive")
		}
		s.engine.mu.Lock()
		c := &s.engine.c
		c.Base, c.ITL, c.PrefillRate, c.MaxWaiting = base, itl, next.PrefillRate, next.MaxWaiting
		s.engine.mu.Unlock()
	}
	s.current.Store(&faultSettings{f, next.Imitate})
	return nil
}
