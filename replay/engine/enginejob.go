package engine

import "errors"

// A Job is a request as an [engineCore] sees it: lengths, and what tells blocks of
// KV apart. Its exported fields must not change while an engine has it.
type Job struct {
	ID     int64 // tells jobs apart that name no blocks; unique in an engine, from 0 to 2^38
	Prompt int   // tokens; the engine computes at least one
	Output int   // tokens; 0 ends with the prefill

	// Blocks are chained ids of the prompt's blocks of BlockSize tokens, the last
	// maybe partial; OutputBlocks continue the chain over the answer, as in
	// trace.Request. What they leave out is shared with no other job.
	Blocks, OutputBlocks []uint64
	BlockSize            int

	// Reused are leading prompt tokens whose KV is not computed, whatever the cache of the
	// engine holds; at most all but one are. It is for requests that were recorded: a server
	// says how many tokens it found in its cache, and not which blocks.
	Reused int

	// Cached is the prompt tokens found in the prefix cache when the job was
	// first scheduled, and Preempted how often it lost its blocks.
	Cached, Preempted int

	answer      *Answer  // that it is part of, in a fleet
	keys        []uint64 // of the leading full blocks, in the engine's size, where they were hashed
	late        Picos    // on its way to the scheduler, beside Costs.Request
	entered     Picos
	started     Picos // when it was first scheduled
	computed    int   // tokens whose KV is held
	generated   int   // tokens of the answer so far
	planned     int   // tokens of the step at hand
	unscheduled bool
	kvBlocks    []int32 // blocks, by position; keyless among them
	state       jobState
}

type jobState uint8

const (
	stateNew jobState = iota
	stateWaiting
	stateRunning
	stateOver
)

const (
	privateKey   = 1 << 63 // keys of blocks that no other job has
	privateBits  = 24
	maxJobID     = 1 << 38
	maxJobTokens = 1 << privateBits
	maxBlockID   = 1 << 43
	maxBlockSize = 1 << 19
)

func (j *Job) check() error {
	switch {
	case j.ID < 0 || j.ID > maxJobID:
		return errors.New("simulated engine: a job's number is out of range")
	case j.Prompt < 0 || j.Output < 0 || j.Prompt+j.Output > maxJobTokens:
		return errors.New("simulated engine: a job has a negative length, or more than 16,777,216 tokens")
	case j.Reused < 0:
		return errors.New("simulated engine: a job reuses a negative number of tokens")
	case j.BlockSize < 0 || j.BlockSize > maxBlockSize || j.BlockSize == 0 && len(j.Blocks)+len(j.OutputBlocks) > 0:
		return errors.New("simulated engine: a job's blocks have no size, or one above 524,288 tokens")
	}
	for _, ids := range [][]uint64{j.Blocks, j.OutputBlocks} {
		for _, id := range ids {
			if id > maxBlockID {
				return errors.New("simulated engine: a block id is above 2^43; ids of a trace are dense")
			}
		}
	}
	return nil
}

// tokens is how many tokens the job has so far: those of the prompt and those
// generated.
func (j *Job) tokens() int { return max(j.Prompt, 1) + j.generated }

// uncomputed is how many tokens must be computed before the next can be generated.
func (j *Job) uncomputed() int { return j.tokens() - j.computed }

// isDecoding says that one token is to be computed, and that was generated.
func (j *Job) isDecoding() bool { return j.generated > 0 && j.uncomputed() == 1 }

// blockKey is that of the job's block k of size tokens. Since ids are chained, the
// id of the block that holds the last of these tokens, and its place in it, tell
// all tokens up to there; so any size of the engine's blocks goes with any size
// of the trace's.
//
// The partial block at the end of a prompt goes by the id that it has once the
// answer completes it, where that is known: the next turn knows it by that.
func (j *Job) blockKey(k, size int) uint64 {
	if k < len(j.keys) {
		return j.keys[k] &^ privateKey
	}
	if j.BlockSize > 0 {
		last := (k+1)*size - 1
		i, whole := last/j.BlockSize, j.Prompt/j.BlockSize
		at := uint64(last % j.BlockSize)
		if o := i - whole; o >= 0 && o < len(j.OutputBlocks) {
			return j.OutputBlocks[o]*uint64(j.BlockSize) + at
		}
		if last < j.Prompt && i < len(j.Blocks) {
			return j.Blocks[i]*uint64(j.BlockSize) + at
		}
	}
	return privateKey | uint64(j.ID)<<privateBits | uint64(k)
}
