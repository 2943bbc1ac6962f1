package job

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Labels and names of Kubernetes.
const (
	nameLabel     = "app.kubernetes.io/name"
	instanceLabel = "app.kubernetes.io/instance"
	partLabel     = "app.kubernetes.io/component"
	hostTopology  = "kubernetes.io/hostname"
	zoneTopology  = "topology.kubernetes.io/zone"
	indexField    = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
	indexVariable = "JOB_COMPLETION_INDEX"
)

// nobody is the user that pods run as: the one of images without a user.
const nobody = 65532

// Kubernetes is the manifest of the load: a headless Service, by which the shards find the
// first and its clock, and an Indexed Job of one pod for each shard. All pods are wanted at once, and
// none is replaced: one that is started anew has lost the time of its requests, so that the first
// that fails ends the job.
func (s *Spec) Kubernetes() ([]byte, error) {
	if err := s.kubernetes(); err != nil {
		return nil, err
	}
	none, labels := 0, s.labels("shard")
	pod := s.pod("shard", s.shardContainer())
	pod.Metadata.Labels = labels
	pod.Spec.Subdomain = s.Name
	term := podTerm{labelSelector{labels}, hostTopology}
	if s.Alone {
		pod.Spec.Affinity = &affinity{antiAffinity{Required: []podTerm{term}}}
	} else {
		pod.Spec.Affinity = &affinity{antiAffinity{Preferred: []weightedTerm{{100, term}}}}
	}
	pod.Spec.Spread = []topologySpread{{1, zoneTopology, "ScheduleAnyway", labelSelector{labels}}}
	load := batchJob{"batch/v1", "Job", meta{s.Name, s.Namespace, labels}, jobSpec{
		Mode: "Indexed", Completions: s.Shards, Parallelism: s.Shards,
		BackoffPerIndex: &none, MaxFailedIndexes: &none, Replacement: "Failed",
		Deadline: int64(s.Deadline / time.Second), Template: pod,
	}}
	clock := service{"v1", "Service", meta{s.Name, s.Namespace, labels}, serviceSpec{
		ClusterIP: "None", NotReady: true, Selector: labels, Ports: []servicePort{{"clock", "UDP", clockPort}},
	}}
	head := fmt.Sprintf(`# %d shards of one load; they start at %s.
# A plain Job does not wait for room for all: a pod that is scheduled too late refuses to start,
# and its job ends. When it is complete, join the results:
#   kubectl%s wait --for=condition=complete --timeout=%ds job/%s
#   reprise job replay … --merge-step | kubectl apply -f -
`, s.Shards, s.Start.UTC().Format(time.RFC3339), s.inNamespace(), int(s.Deadline.Seconds()), s.Name)
	return documents(head, clock, load)
}

// inNamespace is the flag of kubectl.
func (s *Job) inNamespace() string {
	if s.Namespace == "" {
		return ""
	}
	return " -n " + s.Namespace
}

// KubernetesMerge is the manifest of the Job that joins the results, which end as NAME.parquet on
// the volume or in the bucket.
func (s *Spec) KubernetesMerge() ([]byte, error) {
	if err := s.kubernetes(); err != nil {
		return nil, err
	}
	return documents("", s.merging())
}

// merging is the Job that joins what the shards left.
func (s *Job) merging(flags ...string) batchJob {
	again := 2
	from := resultsAt + "/" + s.Name
	if s.Bucket != "" {
		from = s.folder()
	}
	args := append([]string{"merge", from, "-o", from + ".parquet", "--overwrite"}, flags...)
	c := s.container("merge", args)
	if s.Bucket == "" {
		c.Mounts = append([]volumeMount{{Name: "results", Path: resultsAt}}, c.Mounts...)
	}
	pod := s.pod("merge", c)
	pod.Metadata.Labels = s.labels("merge")
	return batchJob{"batch/v1", "Job", meta{s.Name + "-merge", s.Namespace, s.labels("merge")}, jobSpec{
		Completions: 1, Parallelism: 1, BackoffLimit: &again, Deadline: int64(s.Deadline / time.Second), Template: pod,
	}}
}

func (s *Job) labels(part string) map[string]string {
	return map[string]string{nameLabel: "reprise", instanceLabel: s.Name, partLabel: part}
}

// shardContainer sends one shard.
func (s *Spec) shardContainer() container {
	peer := s.ClockPeer
	if peer == "" { // the pod of an index has its name, below that of the Service
		peer = fmt.Sprintf("%s-0.%s:%d", s.Name, s.Name, clockPort)
	}
	args := append(s.shardArgs(), "--set=clock-listen=:"+strconv.Itoa(clockPort), "--set=clock-peer="+peer)
	args = append(literally(args), "--output="+s.folder()+"/shard-$("+indexVariable+").parquet")
	c := s.container("replay", args)
	c.Env = append([]envVar{{Name: indexVariable, From: &envValue{Field: &fieldRef{indexField}}}}, c.Env...)
	if secret, key, ok := strings.Cut(s.Key, "/"); ok {
		c.Env = append(c.Env, envVar{Name: s.KeyName, From: &envValue{Secret: &secretRef{secret, key}}})
	}
	c.Ports = []containerPort{{"clock", "UDP", clockPort}}
	s.mount(&c)
	return c
}

// folder is where a shard finds the folder of the results.
func (s *Job) folder() string {
	if s.Bucket != "" {
		return strings.TrimSuffix(s.Bucket, "/") + "/" + s.Name
	}
	return resultsAt
}

// mount gives a shard the folder of the results, and the volume of the inputs.
func (s *Job) mount(c *container) {
	from := "data"
	if s.Bucket == "" {
		c.Mounts = append([]volumeMount{{Name: "results", Path: resultsAt, SubPath: s.Name}}, c.Mounts...)
		if s.Data == "" {
			from = "results"
		}
	} else if s.Data == "" {
		return
	}
	c.Mounts = append(c.Mounts, volumeMount{Name: from, Path: dataAt, ReadOnly: true})
}

// literally keeps Kubernetes from taking a part of an argument for a variable.
func literally(args []string) []string {
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, "$(", "$$(")
	}
	return args
}

// container runs reprise with what it needs of a machine. Requests are limits: with whole cores
// the kubelet's static CPU manager then gives a pod cores of its own.
func (s *Job) container(name string, args []string) container {
	needs := amounts{strconv.Itoa(s.Cores), s.Memory}
	var grant []envFrom
	if s.Grant != "" {
		grant = []envFrom{{secretName{s.Grant}}}
	}
	return container{Name: name, Image: s.Image, Args: args,
		Env: []envVar{{Name: "HOME", Value: "/tmp"}}, EnvFrom: grant,
		Resources: resources{needs, needs}, Security: containerSecurity{false, true, capabilities{[]string{"ALL"}}},
		Mounts: []volumeMount{{Name: "tmp", Path: "/tmp"}}}
}

func (s *Job) pod(part string, c container) template {
	spec := podSpec{Restart: "Never", Grace: 30,
		Security: podSecurity{true, nobody, nobody, nobody, seccomp{"RuntimeDefault"}}, Containers: []container{c}}
	if s.Bucket != "" {
		spec.Grace = 180 // what was written is uploaded at the end
	} else {
		spec.Volumes = []volume{{Name: "results", Claim: &claim{Name: s.Results}}}
	}
	spec.Volumes = append(spec.Volumes, volume{Name: "tmp", Empty: &emptyDir{}})
	if s.Data != "" && part == "shard" {
		spec.Volumes = append(spec.Volumes, volume{Name: "data", Claim: &claim{s.Data, true}})
	}
	return template{Spec: spec}
}

// documents writes objects as YAML, one after the other.
func documents(head string, objects ...any) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(head)
	for i, o := range objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		doc, err := yaml.MarshalWithOptions(o, yaml.IndentSequence(false))
		if err != nil {
			return nil, err
		}
		b.Write(doc)
	}
	return b.Bytes(), nil
}
