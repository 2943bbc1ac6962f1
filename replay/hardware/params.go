package hardware

// Params are the parameters of a model, by what a step does with them.
type Params struct {
	Total     float64
	Embedding float64 // looked up: of a prompt token one row is read
	Head      float64 // the output layer; only tokens that are sampled need it. 0 where it is the embedding
	Expert    float64 // one routed expert of one layer; 0 without a mixture
	Rest      float64 // read by every token
}

// Params counts the parameters, norms and biases included, from the shape alone.
func (m *Model) Params() Params {
	h := float64(m.Hidden)
	var p Params
	p.Embedding = float64(m.Vocab) * h
	if !m.Tied {
		p.Head = p.Embedding
	}
	dense, moe := float64(m.Layers-m.MoELayers), float64(m.MoELayers)
	p.Rest = h + float64(m.Layers)*(m.attention()+2*h) + float64(m.Index.Layers)*m.indexer() +
		dense*m.mlp(m.Intermediate)
	if m.MoELayers > 0 {
		e := &m.Experts
		p.Expert = m.mlp(e.Intermediate)
		each := h * float64(e.Routed) // the router
		if e.RouterBias {
			each += float64(e.Routed)
		}
		if e.Shared > 0 {
			each += m.mlp(e.Shared)
		}
		if e.SharedGate {
			each += h
		}
		p.Rest += moe * each
	}
	p.Total = p.Embedding + p.Head + p.Rest + moe*float64(m.Experts.Routed)*p.Expert
	return p
}

// attention are the parameters of one layer's attention.
func (m *Model) attention() float64 {
	h, heads := float64(m.Hidden), float64(m.Heads)
	if l := &m.Latent; l.KV > 0 {
		key, rope, kv := float64(l.NoPE+l.RoPE), float64(l.RoPE), float64(l.KV)
		query := h * heads * key
		if rank := float64(l.Query); rank > 0 {
			query = h*rank + rank + rank*heads*key
		}
		return query + h*(kv+rope) + kv + kv*heads*float64(l.NoPE+l.Out) + heads*float64(l.Out)*h
	}
	q, kv := heads*float64(m.HeadDim), float64(m.KVHeads)*float64(m.HeadDim)
	n := 2*h*q + 2*h*kv
	if m.QKVBias {
		n += q + 2*kv
	}
	if m.OutBias {
		n += h
	}
	if m.QKNorm {
		n += 2 * float64(m.HeadDim)
	}
	return n
}

// indexer are the parameters of one layer's indexer: queries from the low-rank ones of attention, one key for all
// heads with its norm, and the weights of the heads.
func (m *Model) indexer() float64 {
	heads, dim, h := float64(m.Index.Heads), float64(m.Index.Dim), float64(m.Hidden)
	return float64(m.Latent.Query)*heads*dim + h*dim + 2*dim + h*heads
}

// mlp are the parameters of a gated MLP of this width.
func (m *Model) mlp(width int) float64 {
	n := 3 * float64(m.Hidden) * float64(width)
	if m.MLPBias {
		n += 2*float64(width) + float64(m.Hidden)
	}
	return n
}

// Active are the parameters that one token alone reads: all but the embedding, and of
// the experts those that it is routed to.
func (p *Params) Active(m *Model) float64 { return p.sampled(m) + p.Rest + p.routed(m, 1) }

// sampled are those of the output layer, the embedding where that is the same.
func (p *Params) sampled(m *Model) float64 {
	if m.Tied {
		return p.Embedding
	}
	return p.Head
}

// routed are the parameters of the different experts that so many tokens read, on
// average: of E experts, of which each token takes k at random,
//
//	E × (1 − (1 − k/E)^tokens)
//
// in each layer.
func (p *Params) routed(m *Model, tokens int) float64 {
	return float64(m.MoELayers) * p.Expert * m.Experts.Different(tokens)
}

// Different is how many different experts of a layer so many tokens read, on average.
func (e *Experts) Different(tokens int) float64 {
	if e.Routed == 0 {
		return 0
	}
	unread := 1.0
	share := 1 - float64(e.PerToken)/float64(e.Routed)
	for power := tokens; power > 0; power >>= 1 { // by squaring: the same on every machine
		if power&1 == 1 {
			unread = float64(unread * share)
		}
		share = float64(share * share)
	}
	return float64(e.Routed) * (1 - unread)
}

// KVValues is how many numbers are kept of one token, over all layers: 2 × KV heads ×
// head dimension, or of latent attention the one compressed vector and the rotary key. Layers that slide keep those of
// their window alone, and have no part in it.
func (m *Model) KVValues() int { return m.kvValuesOn(1) }

// keepers are the layers that keep every token.
func (m *Model) keepers() int { return m.Layers - m.Sliding }

// indexBytes are the bytes that indexers keep for one token: a key in FP8 and its scale, in each layer that has one.
func (m *Model) indexBytes() float64 {
	const scale = 4
	if m.Index.Layers == 0 {
		return 0
	}
	return float64(m.Index.Layers * (m.Index.Dim + scale))
}

// kvValuesOn is how many of them each of tp GPUs keeps: heads are dealt out, and copied
// where there are fewer than GPUs; a compressed vector is copied.
func (m *Model) kvValuesOn(tp int) int {
	if m.Latent.KV > 0 {
		return m.keepers() * (m.Latent.KV + m.Latent.RoPE)
	}
	return 2 * m.keepers() * ((m.KVHeads + tp - 1) / tp) * m.HeadDim
}

// pairFLOPs are the operations by which one prompt token attends to one token, over all
// layers and heads: a product with its key and one with its value. Of sparse attention they are those of the indexer,
// which alone looks at every token.
func (m *Model) pairFLOPs() float64 {
	if m.Index.Layers > 0 {
		return float64(m.Index.Layers) * float64(m.Index.Heads) * 2 * float64(m.Index.Dim)
	}
	each := 4 * float64(m.HeadDim)
	if l := &m.Latent; l.KV > 0 {
		each = 2 * float64(l.NoPE+l.RoPE+l.Out)
	}
	return float64(m.keepers()) * float64(m.Heads) * each
}

// decodePairFLOPs are those of a token of an answer. Latent attention then works in the
// compressed space, so as not to expand the keys of the whole sequence.
func (m *Model) decodePairFLOPs() float64 {
	if l := &m.Latent; l.KV > 0 && m.Index.Layers == 0 {
		return float64(m.keepers()) * float64(m.Heads) * 2 * float64(2*l.KV+l.RoPE)
	}
	return m.pairFLOPs()
}
