package hardware

import "cmp"

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
	moe := float64(m.MoELayers)
	p.Rest = h + float64(m.blocks())*h + float64(m.keepers())*m.attention(m.Attention) +
		float64(m.Sliding)*m.attention(m.window()) + float64(m.Recurrent.Layers)*m.Recurrent.Params +
		float64(m.Index.Layers)*m.indexer() + float64(m.denseLayers())*m.mlp(m.Hidden, m.Intermediate)
	if m.MoELayers > 0 {
		e := &m.Experts
		p.Expert = m.mlp(cmp.Or(e.Latent, m.Hidden), e.Intermediate)
		each := h*float64(e.Routed) + 2*h*float64(e.Latent) // the router, and the ways to the experts and back
		if e.RouterBias {
			each += float64(e.Routed)
		}
		if e.Shared > 0 {
			each += m.mlp(m.Hidden, e.Shared)
		}
		if e.SharedGate {
			each += h
		}
		p.Rest += moe * each
	}
	p.Total = p.Embedding + p.Head + p.Rest + moe*float64(m.Experts.Routed)*p.Expert
	return p
}

// blocks are the parts of all layers that each have a norm and add to the residual stream: attention or a state, and
// an MLP.
func (m *Model) blocks() int { return 2*m.Layers - m.MLPAlone - m.NoMLP }

func (m *Model) denseLayers() int { return m.Layers - m.NoMLP - m.MoELayers }

// window is the attention of layers that slide.
func (m *Model) window() Attention {
	if m.Window == (Attention{}) {
		return m.Attention
	}
	return m.Window
}

// value is the width of a head's value.
func (a *Attention) value() int { return cmp.Or(a.ValueDim, a.HeadDim) }

// attention are the parameters of one layer's attention.
func (m *Model) attention(a Attention) float64 {
	h, heads := float64(m.Hidden), float64(m.Heads)
	if l := &m.Latent; l.KV > 0 {
		key, rope, kv := float64(l.NoPE+l.RoPE), float64(l.RoPE), float64(l.KV)
		query := h * heads * key
		if rank := float64(l.Query); rank > 0 {
			query = h*rank + rank + rank*heads*key
		}
		return query + h*(kv+rope) + kv + kv*heads*float64(l.NoPE+l.Out) + heads*float64(l.Out)*h
	}
	query, key := heads*float64(a.HeadDim), float64(a.KVHeads)*float64(a.HeadDim)
	out, value := heads*float64(a.value()), float64(a.KVHeads)*float64(a.value())
	if a.Gated {
		query *= 2
	}
	if a.KeyIsValue {
		value = 0
	}
	n := h * (query + key + value + out)
	if m.QKVBias {
		n += query + key + value
	}
	if m.OutBias {
		n += h
	}
	if m.QKNorm {
		n += 2 * float64(a.HeadDim)
	}
	return n
}

// indexer are the parameters of one layer's indexer: queries from the low-rank ones of attention, one key for all
// heads with its norm, and the weights of the heads.
func (m *Model) indexer() float64 {
	heads, dim, h := float64(m.Index.Heads), float64(m.Index.Dim), float64(m.Hidden)
	return float64(m.Latent.Query)*heads*dim + h*dim + 2*dim + h*heads
}

// mlp are the parameters of an MLP of this width, from and to vectors of another one.
func (m *Model) mlp(outer, width int) float64 {
	matrices := 3.0
	if m.Ungated {
		matrices = 2
	}
	n := matrices * float64(outer) * float64(width)
	if m.MLPBias {
		n += (matrices-1)*float64(width) + float64(outer)
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
func (m *Model) keepers() int { return m.Layers - m.Sliding - m.Recurrent.Layers - m.MLPAlone }

// StateBytes are what recurrent layers keep of one sequence, whatever its length.
func (m *Model) StateBytes() float64 { return float64(m.Recurrent.Layers) * m.Recurrent.State }

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
	return m.keepers() * ((m.KVHeads + tp - 1) / tp) * (m.HeadDim + m.value())
}

// pairFLOPs are the operations by which one prompt token attends to one token, over all layers and heads: a product with
// its key and one with its value. In sparse attention it is the work of the indexer, which alone looks at every token.
// Recurrent layers compute far less, and are left out of this bound.
func (m *Model) pairFLOPs() float64 {
	if m.Index.Layers > 0 {
		return float64(m.Index.Layers) * float64(m.Index.Heads) * 2 * float64(m.Index.Dim)
	}
	each := 2 * float64(m.HeadDim+m.value())
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
