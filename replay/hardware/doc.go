// Package hardware knows what a model needs and what a GPU can do at best: shapes of
// models from their config.json, data sheets of GPUs, the memory that a server has left
// for KV, and the least time that each part of an engine's step can take.
//
// All of it is a bound: peak bandwidth and arithmetic, no host, no kernel launch, no
// latency of a network. Nothing measured is faster.
//
//   - model.go: a config.json of Hugging Face into a [Model]
//   - recurrent.go: layers that keep a state, and lists of what each layer is
//   - params.go: parameters, and bytes of KV for a token
//   - gpus.go: the data sheets of gpus.csv, each row with its source, and a file of one's own
//   - setup.go: a [Setup] of both; the memory of a GPU and what does not fit
//   - floor.go: the least time of each part of a step
//
// Exported names may change in any release.
package hardware
