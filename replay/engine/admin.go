package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// adminSettings are what /admin/config shows of a running server, and changes.
type adminSettings struct {
	Costs      string `json:"costs"`       // see [ParseCosts]; those that are not named stay
	MaxWaiting int    `json:"max_waiting"` // requests that wait
	Imitate    string `json:"imitate"`     // see [ServerConfig]
	Quirks     string `json:"quirks"`      // see [ServerConfig]
	Faults     string `json:"faults"`      // see [ServerConfig]
	FaultSeed  uint64 `json:"fault_seed"`  // see [ServerConfig]
}

// settings are those in force.
func (s *Server) settings() adminSettings {
	now := s.current.Load()
	out := adminSettings{Imitate: now.imitate, Quirks: now.faults.quirkList, Faults: now.faults.randomList,
		FaultSeed: now.faults.seed}
	out.Costs, out.MaxWaiting = s.engine.settings()
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
	if !json.Valid(body) || bytes.TrimSpace(body)[0] != '{' {
		return errors.New("the body is not a JSON object")
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
	if err := s.engine.change(next.Costs, next.MaxWaiting); err != nil {
		return err
	}
	s.current.Store(&faultSettings{f, next.Imitate})
	return nil
}
