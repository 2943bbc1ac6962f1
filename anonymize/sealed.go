package anonymize

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"reprise/trace/shard"
)

// System prompts that many users have are known once all shards are together: a shard sees
// some of the users alone. So a shard keeps all candidates, with who has them: keyed ids of up
// to k users and sessions. The text of each is sealed (AES-256-GCM) under a key that is made of
// the shared one, so that nobody reads it in a shard. The merge opens those that k users have,
// and no others. Once the key is destroyed, nobody can open the rest.

// sealedPrompts are the candidates of a shard.
type sealedPrompts struct {
	Users    bool           `json:"users"`    // some request names its user
	Sessions bool           `json:"sessions"` // some request names its session
	Dropped  int            `json:"dropped"`
	List     []sealedPrompt `json:"list"`
}

type sealedPrompt struct {
	ID       string   `json:"id"` // keyed
	Requests int64    `json:"requests"`
	Users    []string `json:"users"` // keyed, up to k
	Sessions []string `json:"sessions"`
	Sealed   []byte   `json:"sealed"` // a nonce and the messages
}

// seal writes the candidates of a shard.
func (c *templateCounter) seal(key *SharedKey) ([]byte, error) {
	box, err := key.promptBox()
	if err != nil {
		return nil, err
	}
	keyed := func(kind string, names map[string]struct{}) (ids []string) {
		for name := range names {
			ids = append(ids, key.keyed(kind, name))
		}
		slices.Sort(ids)
		return ids
	}
	out := sealedPrompts{Users: c.users, Sessions: c.sessions, Dropped: c.dropped}
	for _, encoded := range slices.Sorted(maps.Keys(c.seen)) {
		x := c.seen[encoded]
		text, err := json.Marshal(x.messages)
		if err != nil {
			return nil, err
		}
		nonce := make([]byte, box.NonceSize())
		rand.Read(nonce) // never fails
		id := key.keyed("system prompt", encoded)
		out.List = append(out.List, sealedPrompt{id, x.requests, keyed("user", x.users), keyed("session", x.sessions),
			box.Seal(nonce, nonce, text, []byte(id))})
	}
	return json.Marshal(out)
}

// promptBox seals and opens system prompts.
func (k *SharedKey) promptBox() (cipher.AEAD, error) {
	c, err := aes.NewCipher(k.hash("seal", "of system prompts"))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(c)
}

// ErrNoKey says that shards keep system prompts, which their key opens.
var ErrNoKey = errors.New("the shards keep sealed system prompts: name the key of the import, which opens the prompts " +
	"that enough users have")

// openPrompts counts the candidates of all shards together, and opens those that k users have.
func openPrompts(set *shard.Set, key *SharedKey, k int) (*templateCounter, error) {
	if key == nil {
		return nil, ErrNoKey
	}
	if key.Check() != set.Shards()[0].KeyCheck {
		return nil, fmt.Errorf("this is not the key of the shards (key check %s, not %s)", key.Check(),
			set.Shards()[0].KeyCheck)
	}
	box, err := key.promptBox()
	if err != nil {
		return nil, err
	}
	c := newTemplateCounter(k)
	for i := range set.Shards() {
		text, err := set.Prompts(i)
		if err != nil {
			return nil, err
		}
		var s sealedPrompts
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("the system prompts of shard %d are damaged", i)
		}
		c.addSealed(&s)
	}
	for id, x := range c.seen {
		if len(x.units(c.users)) < k {
			continue
		}
		if n := box.NonceSize(); len(x.sealed) < n {
			err = errors.New("it is cut off")
		} else if text, fault := box.Open(nil, x.sealed[:n], x.sealed[n:], []byte(id)); fault != nil {
			err = fault
		} else {
			err = json.Unmarshal(text, &x.messages)
		}
		if err != nil {
			return nil, errors.New("a system prompt of the shards is damaged")
		}
	}
	return c, nil
}

// addSealed adds what a shard counted to what the shards before did.
func (c *templateCounter) addSealed(s *sealedPrompts) {
	c.users, c.sessions, c.dropped = c.users || s.Users, c.sessions || s.Sessions, c.dropped+s.Dropped
	for i := range s.List {
		one := &s.List[i]
		x := c.room(one.ID, len(one.Sealed))
		if x == nil {
			continue
		}
		x.sealed = one.Sealed
		x.requests += one.Requests
		x.note(x.users, c.k, one.Users...)
		x.note(x.sessions, c.k, one.Sessions...)
	}
}
