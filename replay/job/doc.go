// Package job writes down what a cluster is to start for a load that many machines send, or for
// an import that they share. It starts nothing itself: kubectl and
// sbatch do.
//
//  1. A [Spec] is a replay in shards: the command of one, and what it needs of a machine.
//  2. [Spec.Kubernetes] is an Indexed Job with a headless Service, by which shards ask the
//     first for the time; [Spec.KubernetesMerge] is the Job that joins the results; [Spec.Slurm]
//     is an array of sbatch.
//  3. An [Import] is an import in shards, with the same three.
//
// # Files
//
//   - spec.go: the job to start, and the options that a job cannot have
//   - kubernetes.go, objects.go: the manifests, and the part of Kubernetes' objects that they use
//   - import.go: the same for an import
//   - slurm.go: the script of an array
package job
