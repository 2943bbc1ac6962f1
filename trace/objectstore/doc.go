// Package objectstore opens files of the machine and objects of S3, Google Cloud Storage
// and Azure Blob Storage by one set of functions. They are like the functions of packages os and
// path/filepath, and for a path of the machine they are nothing else. A path such as
// s3://bucket/folder/t.parquet, gs://… or az://container/… is an object.
//
// A program that is built with the tag clouds starts itself again, as a fetch process, when
// it first meets such a path ([Start]). That process alone speaks to the store and reads
// credentials; this one asks it over two pipes, which stay open when it gives up its network
// and files. Reading is by range, with read-ahead, so that a footer or a column of Parquet is
// read without the rest of the file. An object is uploaded whole by [Put] or not at all. What
// fails for the moment, such as a server that restarts, is tried again for two minutes, once
// the store has answered before.
//
// Without the tag, every such path gives an error that names reprise-cloud.
//
// # Files
//
//   - path.go: which paths are objects; joining and taking apart
//   - files.go: Open, Stat, ReadDir, ReadFile, Glob, WalkDir, Remove and Put
//   - pipe_unix.go, pipe_other.go: a named pipe is not waited for without end
//   - object.go: an open object: ranged reads, cache, read-ahead
//   - client.go: the fetch process, requests to it, trying again
//   - wire.go: requests and answers on the pipes, and errors
//   - linked_clouds.go, linked_none.go: the fetch process, or that there is none
//   - serve_clouds.go: requests answered, uploads under way
//   - bucket_clouds.go: buckets by the usual chain of credentials of each cloud
//   - fault_clouds.go: what went wrong, in words that say what to do
package objectstore
