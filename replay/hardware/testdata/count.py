"""Counts the parameters of models from their config.json by formulas of its own: an oracle for the package.

count.py CONFIG.json … prints a line for each: total and active parameters without norms and biases, in billions, and
the bytes of KV that a token leaves in 16 bits, with the FP8 keys of an indexer.
"""
import json
import sys


def count(path):
    whole = json.load(open(path))
    t = whole.get("text_config") or whole
    get = lambda key, other=0: t.get(key) or other
    hidden, layers, vocab, heads = (get(k) for k in (
        "hidden_size", "num_hidden_layers", "vocab_size", "num_attention_heads"))
    dim, kv = get("head_dim", hidden // heads), get("num_key_value_heads", heads)
    tied = t.get("tie_word_embeddings", whole.get("tie_word_embeddings", False))
    experts = max(get("num_local_experts"), get("num_experts"), get("n_routed_experts"))
    taken, width = get("num_experts_per_tok"), get("moe_intermediate_size", get("intermediate_size"))
    total, active, kept = vocab * hidden * (1 if tied else 2), vocab * hidden, 0

    def grouped(kv, key, value, gates=1, keys_only=False):
        out = heads * value * hidden
        return hidden * heads * key * gates + hidden * kv * key + (0 if keys_only else hidden * kv * value) + out

    def delta_net():
        hk, hv, dk, dv, kernel = (t["linear_" + k] for k in (
            "num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim", "conv_kernel_dim"))
        return (hidden * (2 * hk * dk + 2 * hv * dv + 2 * hv) + (2 * hk * dk + hv * dv) * kernel
                + hv * dv * hidden)

    words = {"mamba": "M", "moe": "E", "attention": "*", "mlp": "-"}
    pattern = get("hybrid_override_pattern", "") or "".join(words[k] for k in get("layers_block_type", []))
    for kind in pattern:
        inner, inputs = get("mamba_num_heads") * get("mamba_head_dim"), 2 * get("n_groups") * get("ssm_state_size")
        latent = get("moe_latent_size", hidden)
        if kind == "E":
            each = hidden * experts + 2 * hidden * get("moe_shared_expert_intermediate_size") * get("n_shared_experts")
            each += 2 * hidden * latent if latent != hidden else 0
            total, active = total + each + 2 * experts * latent * width, active + each + 2 * taken * latent * width
            continue
        each = grouped(kv, dim, dim)
        if kind == "M":
            each = hidden * (2 * inner + inputs + get("mamba_num_heads")) + (inner + inputs) * (
                get("conv_kernel") + 1) + inner * hidden
        else:
            kept += 2 * kv * dim * 2
        total, active = total + each, active + each
    if pattern:
        return total / 1e9, active / 1e9, kept

    kinds, slides, freq = get("layer_types", []), get("hybrid_layer_pattern", []), t.get("moe_layer_freq")
    for i in range(layers):
        kind = kinds[i] if i < len(kinds) else ""
        window = kind == "sliding_attention" or i < len(slides) and slides[i] == 1
        if kind == "linear_attention":
            each = delta_net()
        elif get("kv_lora_rank"):
            q, rank, nope, rope, value = get("q_lora_rank"), get("kv_lora_rank"), *(t[k] for k in (
                "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"))
            each = hidden * q + q * heads * (nope + rope) if q else hidden * heads * (nope + rope)
            each += hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden
            kept += (rank + rope) * 2
            index, size = get("index_n_heads"), get("index_head_dim")
            if index and (get("indexer_types", []) or ["full"] * layers)[i] != "shared":
                each, kept = each + q * index * size + hidden * (size + index), kept + size + 4
        else:
            shape = kv, dim, get("v_head_dim", dim)
            if window and get("swa_num_key_value_heads"):
                shape = t["swa_num_key_value_heads"], t["swa_head_dim"], t["swa_v_head_dim"]
            if not window and get("global_head_dim"):
                shape = get("num_global_key_value_heads", kv), t["global_head_dim"], t["global_head_dim"]
            each = grouped(*shape, 2 if get("attn_output_gate") else 1, bool(get("attention_k_eq_v")) and not window)
            kept += 0 if window else shape[0] * (shape[1] + shape[2]) * 2

        step, types = get("interleave_moe_layer_step", get("decoder_sparse_step")), get("mlp_layer_types", [])
        mixture = i >= get("first_k_dense_replace")
        if isinstance(freq, list):
            mixture = freq[i] == 1
        elif types:
            mixture = types[i] == "sparse"
        elif step:
            mixture = (i + 1) % step == 0 and i not in get("mlp_only_layers", [])
        if experts and mixture:
            shared = get("shared_expert_intermediate_size") or get("n_shared_experts") * get("share_expert_dim", width)
            shared = get("intermediate_size") if get("interleave_moe_layer_step") else shared
            each += hidden * experts + 3 * hidden * shared
            total, active = total + 3 * experts * hidden * width, active + 3 * taken * hidden * width
        else:
            each += 3 * hidden * get("intermediate_size_mlp", get("intermediate_size"))
        total, active = total + each, active + each
    return total / 1e9, active / 1e9, kept


for path in sys.argv[1:]:
    print(*count(path))
