package openai

import (
	"cmp"
	"encoding/json"
	"strings"
)

// maxSaid is how many characters are kept of what a server says about an error.
const maxSaid = 300

// Said is what a server says about an error, in one line of at most 300 characters: the
// message of a body of any of the forms that servers have, or a body that is no JSON. A page
// of HTML says nothing. It may quote the request.
func Said(body []byte) string {
	body = body[:min(len(body), maxErrorBody)]
	if !json.Valid(body) {
		text := strings.TrimSpace(string(body))
		if strings.HasPrefix(text, "<") {
			return ""
		}
		return oneLine(text)
	}
	return oneLine(said(body, 0))
}

// said finds the message in a value: a text, the member that holds it, or those of a list, as
// FastAPI sends them, with the field that each is about.
func said(value json.RawMessage, depth int) string {
	var text string
	var list []json.RawMessage
	var members struct {
		Error    json.RawMessage   `json:"error"`
		Response json.RawMessage   `json:"response"` // of an event of the Responses API
		Message  json.RawMessage   `json:"message"`
		Detail   json.RawMessage   `json:"detail"`
		Msg      json.RawMessage   `json:"msg"`
		Where    []json.RawMessage `json:"loc"`
	}
	switch {
	case depth > 3 || len(value) == 0:
		return ""
	case json.Unmarshal(value, &text) == nil:
		return text
	case json.Unmarshal(value, &list) == nil:
		var all []string
		for _, one := range list[:min(len(list), 5)] {
			if s := said(one, depth+1); s != "" {
				all = append(all, s)
			}
		}
		return strings.Join(all, "; ")
	case json.Unmarshal(value, &members) != nil:
		return ""
	}
	found := ""
	for _, inner := range []json.RawMessage{members.Error, members.Message, members.Detail, members.Msg,
		members.Response} {
		found = cmp.Or(found, said(inner, depth+1))
	}
	if where := len(members.Where); where > 0 && found != "" {
		found = strings.Trim(string(members.Where[where-1]), `"`) + ": " + found
	}
	return found
}

// oneLine is a text of valid UTF-8 without line ends, cut to maxSaid characters.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if r := []rune(s); len(r) > maxSaid {
		s = string(r[:maxSaid-1]) + "…"
	}
	return s
}
