// Package jobcheck holds what "reprise job replay" and "reprise job import" print to
// Kubernetes: each manifest is decoded strictly, so that an unknown field is an error, gets the
// defaults of the API server, and goes through its own validation. It needs no cluster. It is a
// module of its own, since it takes the modules of k8s.io/kubernetes and minutes to compile:
//
//	cd cmd/internal/jobcheck && go test -v ./...
package jobcheck
