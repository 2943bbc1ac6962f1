package job

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Job is what the jobs of a load and of an import have.
type Job struct {
	Name   string   // of the job, and of the folder of its results
	Shards int      // processes, of one share each
	Inputs []string // of the command: a workload, or logs
	Args   []string // its flags, without those of a shard

	Image     string // that has reprise as its entry point
	Namespace string // empty is that of kubectl
	Results   string // claim of the volume for the results; of Slurm, a folder
	Bucket    string // in place of Results: a folder of an object store, such as s3://bench/runs
	// Secret whose keys are the variables with the store's credentials; empty is the role of the machine
	Grant    string
	Data     string        // claim of the volume with the inputs, at /data; empty is that of the results
	Key      string        // the API key, or the key of an import: SECRET/KEY; empty is none
	Cores    int           // of a pod, whole ones
	Memory   string        // of a pod, such as 2Gi; of Slurm 2G
	Deadline time.Duration // after which all of it is ended
}

// A Spec is a replay in shards. Its deadline includes the time before the start.
type Spec struct {
	Job
	Start     time.Time
	KeyName   string // environment variable that the API key is in
	Alone     bool   // each pod has a node of its own, or is not scheduled
	ClockPeer string // host:port; empty is the first shard, where that can be named
}

// Where volumes are in a pod, and at which port the first shard tells the time.
const (
	resultsAt = "/results"
	dataAt    = "/data"
	clockPort = 7123
)

var (
	nameOf   = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,48}[a-z0-9])?$`)
	memoryOf = regexp.MustCompile(`^[1-9][0-9]*(Mi|Gi|M|G)$`)
	claimOf  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	keyOf    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[-._a-zA-Z0-9]{1,253}$`)
	imageOf  = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9._:/@]*$`)
	bucketOf = regexp.MustCompile(`^(s3|gs|az)://[a-z0-9][-a-z0-9._]*(/[-+a-zA-Z0-9._]+)*/?$`)
	objectOf = regexp.MustCompile(`^(s3|gs|az)://[^?\s]+$`)
	folderOf = regexp.MustCompile(`^[-+a-zA-Z0-9._/~]+$`)
)

// mostShards is the number of indexes beyond which Kubernetes refuses limits by index.
const mostShards = 100_000

// check refuses what no cluster takes.
func (s *Spec) check() error {
	if s.Start.IsZero() {
		return errors.New("a job needs the instant at which its shards start")
	}
	return s.Job.check()
}

// check refuses what no cluster takes.
func (s *Job) check() error {
	switch {
	case !nameOf.MatchString(s.Name):
		return fmt.Errorf("the name %q is none for a Service: write small letters, digits and hyphens, up to 50, a "+
			"letter first", s.Name)
	case s.Shards < 1 || s.Shards > mostShards:
		return fmt.Errorf("%d shards: 1 to %d", s.Shards, mostShards)
	case s.Cores < 1:
		return errors.New("a pod needs a core at least, and whole ones, so that nothing holds it back within a " +
			"period of its quota")
	case !memoryOf.MatchString(s.Memory):
		return fmt.Errorf("the memory %q: write 2Gi or 512Mi", s.Memory)
	case s.Deadline < time.Second:
		return errors.New("the deadline is below a second")
	case len(s.Inputs) == 0:
		return errors.New("a job needs an input, such as a workload")
	}
	return nil
}

// kubernetes refuses what Kubernetes does not take.
func (s *Spec) kubernetes() error {
	if err := s.check(); err != nil {
		return err
	}
	return s.Job.kubernetes()
}

// kubernetes refuses what Kubernetes does not take.
func (s *Job) kubernetes() error {
	for _, input := range s.Inputs {
		switch below := input == dataAt || strings.HasPrefix(input, dataAt+"/"); {
		case !below && !objectOf.MatchString(input):
			return fmt.Errorf("the input %q: name it by where it is in a pod, below %s, or as an object, such as "+
				"s3://bucket/w.parquet", input, dataAt)
		case below && s.Data == "" && s.Results == "":
			return fmt.Errorf("the input %q: results go to a bucket, so that no volume is at %s: name the claim of "+
				"one with the inputs, or an object", input, dataAt)
		}
	}
	switch {
	case s.Bucket != "" && s.Results != "":
		return errors.New("results go to a volume or to a bucket: name one of them")
	case s.Bucket != "" && !bucketOf.MatchString(s.Bucket):
		return fmt.Errorf("the bucket %q: name a folder of a store, such as s3://bucket/runs", s.Bucket)
	case s.Grant != "" && !claimOf.MatchString(s.Grant):
		return fmt.Errorf("the secret %q with the store's credentials is no name of one", s.Grant)
	case !imageOf.MatchString(s.Image):
		return fmt.Errorf("the image %q: name one that has reprise, best by its digest (registry/reprise@sha256:…)",
			s.Image)
	case s.Bucket == "" && !claimOf.MatchString(s.Results):
		return fmt.Errorf("the claim %q of the volume for the results: name a PersistentVolumeClaim that many nodes "+
			"may write (ReadWriteMany)", s.Results)
	case s.Data != "" && !claimOf.MatchString(s.Data):
		return fmt.Errorf("the claim %q of the volume with the inputs is no name of one", s.Data)
	case s.Namespace != "" && (!claimOf.MatchString(s.Namespace) || len(s.Namespace) > 63 ||
		strings.Contains(s.Namespace, ".")):
		return fmt.Errorf("the namespace %q is no name of one", s.Namespace)
	case s.Key != "" && !keyOf.MatchString(s.Key):
		return fmt.Errorf("the secret %q: write NAME/KEY of a Secret", s.Key)
	case s.Deadline > 1<<31*time.Second:
		return errors.New("the deadline is too far")
	}
	return nil
}

// shardArgs are the arguments of a shard, but for where its results go.
func (s *Spec) shardArgs() []string {
	args := slices.Concat([]string{"replay"}, s.Inputs, s.Args)
	return append(args, "--shard=/"+strconv.Itoa(s.Shards),
		"--start-clock="+s.Start.UTC().Format(time.RFC3339Nano), "--quiet")
}
