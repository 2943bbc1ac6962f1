// Package fetch is the process that speaks to object stores for another one, through
// gocloud.dev/blob: see package objectstore. It holds credentials and the network, and sees
// no more of a file than its bytes. Without the tag clouds it says that it is not there.
//
// # Files
//
//   - serve_clouds.go: requests answered, uploads under way
//   - bucket_clouds.go: buckets by the usual chain of credentials of each cloud
//   - fault_clouds.go: what went wrong, in words that say what to do
//   - main_clouds.go, main_none.go: the process
package fetch
