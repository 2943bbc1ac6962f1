package block

// The functions below count tokens and blocks. A size below 1 makes no blocks, and a number of tokens below 0 counts as
// 0.

// Count is the number of blocks, a partial last one included, that tokens take at size tokens a block:
// ceil(tokens/size).
func Count(tokens, size int) int {
	n := Full(tokens, size)
	if size >= 1 && tokens > n*size {
		n++
	}
	return n
}

// Full is the number of full blocks that tokens take at size tokens a block: floor(tokens/size).
func Full(tokens, size int) int {
	if size < 1 || tokens < 0 {
		return 0
	}
	return tokens / size
}

// Known is the number of tokens covered by the first hit blocks of a prompt of that many tokens: min(hit·size, prompt),
// since the last block may be partial.
func Known(hit, prompt, size int) int {
	switch {
	case size < 1 || hit < 1 || prompt < 1:
		return 0
	case hit >= Count(prompt, size): // tested by blocks, since hit·size might overflow
		return prompt
	}
	return hit * size
}

// Reusable is the number of a prompt's known leading tokens that a server with blocks of serverSize tokens can take
// from its cache. It keeps full blocks only, and must compute at least the last token of the prompt to get the logits
// of the first output token; so a prompt that is known whole, and a multiple of serverSize long, loses its last block.
// This is vLLM's rule (KVCacheManager.get_computed_blocks looks up at most num_tokens − 1).
func Reusable(known, prompt, serverSize int) int {
	return Full(min(known, prompt-1), serverSize) * serverSize
}
