package machines

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/cmd/reprise/internal/runs"
	"reprise/replay/job"
)

// JobCommand is the command job. importFlags adds the flags of import.
func JobCommand(importFlags func(*cobra.Command)) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "job",
		Short: "Print what a cluster starts for a load or an import on many machines",
		Long: `Job prints; it starts nothing. "reprise job replay" prints a Kubernetes Indexed Job, or with
--slurm a script for sbatch: one process for each shard of a replay. They share no
controller: each sends its share of the sessions, from one instant on, and "reprise merge"
joins the results. "reprise job import" prints the same for an import of logs.`,
		Example: `  reprise job replay /data/w.parquet --url http://llm:8000 --shards 16 --image registry.example/reprise:v1 --results-claim results --start-clock +10m | kubectl apply -f -`,
		Args:    flags.Wants(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			return cli.Usagef("what kind of job? reprise job replay WORKLOAD prints one of a load, reprise job " +
				"import LOG one of an import")
		},
	}
	cmd.AddCommand(jobReplayCommand(), jobImportCommand(importFlags))
	return cmd
}

// jobReplayFlags are the flags of job replay: those of replay, and the job's own.
type jobReplayFlags struct {
	runs.Replay
	spec  job.Spec
	slurm bool
	merge bool
	own   map[string]bool // flags that are the job's
}

func jobReplayCommand() *cobra.Command {
	var f jobReplayFlags
	cmd := &cobra.Command{
		Use:   "replay WORKLOAD --shards N --start-clock TIME",
		Short: "Print the job of a replay in shards, for kubectl or sbatch",
		Long: `Job replay takes every flag of "reprise replay" for requests, targets and times, and
prints what starts it on a cluster.

For Kubernetes it is a headless Service and an Indexed Job, for "kubectl apply -f -". All
pods are wanted at once, none is replaced, and the first that fails ends the job. WORKLOAD
is the path in a pod, below /data: the volume of --data-claim or --results-claim.
Results go to a folder with the job's name on the volume of --results-claim, which many
nodes must be able to write, or in --results-bucket. Then WORKLOAD may be an object too. The
API key is named by its Secret and never in the manifest. --merge-step prints the Job that
joins the results.

With --slurm it is a script for sbatch. WORKLOAD and --results-dir are paths that all nodes
see.

--start-clock must leave time for the pods to be scheduled and the image to be pulled. A
shard that is not ready by then refuses to start.`,
		Example: `  reprise job replay /data/w.parquet --url http://llm:8000 --shards 16 --image registry.example/reprise:v1 --results-claim results --start-clock +10m
  reprise job replay /shared/w.parquet --url http://llm:8000 --shards 16 --slurm --results-dir /shared/results --start-clock +10m`,
		Args: flags.Wants(1, 1, "which workload?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	fl := cmd.Flags()
	f.Replay.Register(cmd)
	f.own = map[string]bool{"output": true, "overwrite": true, "shard": true, "clock-listen": true, "quiet": true,
		"dry-run": true, "start-clock": true, "clock-peer": true}
	flags.Demote(fl)
	flags.Promote(fl, "url", "start-clock")
	before := map[string]bool{}
	fl.VisitAll(func(flag *pflag.Flag) { before[flag.Name] = true })
	everyday, _ := flags.Sections(fl, flags.ShardFlags)
	kube, kubeRest := flags.Sections(fl, "Kubernetes")
	slurm, _ := flags.Sections(fl, "Slurm")
	everyday.IntVar(&f.spec.Shards, "shards", 0, "how many processes, each with a share of the sessions")
	register(&f.spec.Job, everyday, kube, kubeRest, "reprise", "2Gi")
	everyday.DurationVar(&f.spec.Deadline, "deadline", 2*time.Hour,
		"end the job after this time, the wait for the start included")
	everyday.BoolVar(&f.spec.Alone, "alone", false, "a machine of its own for each, and none that shares one")
	kube.StringVar(&f.spec.Key, "api-key-secret", "", "Secret with the API key, as `NAME/KEY`")
	kube.BoolVar(&f.merge, "merge-step", false, "print the Job that joins the results, in place of the load")
	slurm.BoolVar(&f.slurm, "slurm", false, "print a script for sbatch")
	var folder string
	slurm.StringVar(&folder, "results-dir", "", "`folder` for the results that all nodes see")
	fl.VisitAll(func(flag *pflag.Flag) { f.own[flag.Name] = f.own[flag.Name] || !before[flag.Name] })
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch {
		case f.slurm && (volumes(&f.spec.Job) || f.spec.Key != "" || f.spec.Namespace != "" || f.merge):
			return cli.Usagef("--results-claim, --results-bucket, --bucket-secret, --data-claim, --api-key-secret, " +
				"--namespace and --merge-step are for Kubernetes, not for --slurm")
		case f.slurm && folder == "":
			return cli.Usagef("--slurm needs --results-dir, a folder that all nodes see")
		case !f.slurm && folder != "":
			return cli.Usagef("--results-dir is for --slurm; Kubernetes has a volume, --results-claim")
		case !f.slurm && (f.spec.Image == "" || f.spec.Results+f.spec.Bucket == ""):
			return cli.Usagef("a job of Kubernetes needs --image, and --results-claim or --results-bucket")
		case f.slurm:
			f.spec.Results = folder
		}
		return nil
	}
	return cmd
}

// register adds the flags that jobs of all kinds have.
func register(j *job.Job, everyday, kube, kubeRest flags.Section, name, memory string) {
	everyday.StringVar(&j.Name, "name", name, "`name` of the job, and of the folder of its results")
	everyday.IntVar(&j.Cores, "cores", 2, "whole cores of each")
	everyday.StringVar(&j.Memory, "memory", memory, "memory of each")
	kube.StringVar(&j.Image, "image", "", "`image` with reprise, best by its digest")
	kube.StringVar(&j.Results, "results-claim", "", "`claim` of the volume for the results (ReadWriteMany)")
	kube.StringVar(&j.Bucket, "results-bucket", "",
		"folder of an object store for the results, as `URL`, in place of a volume; the image is one of reprise-cloud")
	kubeRest.StringVar(&j.Grant, "bucket-secret", "",
		"`name` of the Secret whose keys are the variables with the store's credentials; by default the role of "+
			"the machine")
	kube.StringVar(&j.Data, "data-claim", "",
		"`claim` of the volume with the inputs, at /data; by default the claim of the results")
	kubeRest.StringVar(&j.Namespace, "namespace", "", "namespace; by default kubectl's")
}

// volumes says whether a job names what is a volume or a bucket of Kubernetes.
func volumes(j *job.Job) bool { return j.Results+j.Bucket+j.Grant+j.Data != "" }

// refused are flags of replay that a job gives or cannot have.
var refused = map[string]string{
	"output":       "each shard has a file of its own in the folder of the results",
	"overwrite":    "each shard has a file of its own in the folder of the results",
	"shard":        "--shards says how many there are",
	"clock-listen": "every shard listens",
	"dry-run":      "reprise replay --dry-run --shard 0/N plans a shard",
	"live":         "no pod has a terminal",
}

func (f *jobReplayFlags) run(cmd *cobra.Command, workload string) error {
	fl := cmd.Flags()
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		if fl.Changed(name) {
			return cli.Usagef("%s is not for a job: %s", flags.Spelled(fl.Lookup(name)), refused[name])
		}
	}
	if f.spec.Shards < 1 {
		return cli.Usagef("--shards: say how many processes are to send")
	}
	if !fl.Changed("start-clock") {
		return cli.Usagef("give the instant at which all shards start: --start-clock +10m, or RFC 3339")
	}
	for _, header := range cli.FlagValues(fl.Lookup("header")) {
		if name, _, _ := strings.Cut(header, "="); secretHeader(name) {
			return cli.Usagef("--header %s would be readable in the job: --api-key-secret names the Secret of the "+
				"API key, and --set header-env the variable of another header", name)
		}
	}
	if err := fl.Set("shard", fmt.Sprintf("0/%d", f.spec.Shards)); err != nil {
		return err
	}
	if err := f.Check(cmd); err != nil {
		return err
	}
	f.spec.Start, f.spec.ClockPeer, f.spec.KeyName = f.Shard.StartAt, f.Shard.ClockPeer, flags.DefaultKeyEnv
	if wait := time.Until(f.spec.Start); f.merge {
		// The load may be over.
	} else if wait <= 0 {
		return cli.Usagef("--start-clock: %s is over", f.spec.Start.Format(time.RFC3339))
	} else if f.spec.Deadline <= wait {
		return cli.Usagef("--deadline: the job would be ended after %v, before its start in %v", f.spec.Deadline,
			wait.Round(time.Second))
	}
	if name := fl.Lookup("api-key-env"); f.spec.Key != "" && name.Changed {
		f.spec.KeyName = name.Value.String()
	}
	f.spec.Inputs, f.spec.Args = []string{workload}, given(fl, f.own)
	return printJob(cmd, f.slurm, f.merge, &f.spec)
}

// printJob prints what a cluster starts.
func printJob(cmd *cobra.Command, slurm, merge bool, j interface {
	Kubernetes() ([]byte, error)
	KubernetesMerge() ([]byte, error)
	Slurm() ([]byte, error)
}) error {
	print := j.Kubernetes
	switch {
	case slurm:
		print = j.Slurm
	case merge:
		print = j.KubernetesMerge
	}
	doc, err := print()
	if err != nil {
		return cli.Usagef("%v", err)
	}
	_, err = cmd.OutOrStdout().Write(doc)
	return err
}

// secretHeader says whether the value of a header is a secret, as a rule.
func secretHeader(name string) bool {
	name = strings.ToLower(strings.TrimSpace(name))
	return slices.ContainsFunc([]string{"authorization", "api-key", "apikey", "token", "cookie", "secret"},
		func(part string) bool { return strings.Contains(name, part) })
}

// given are the flags and settings that were given, but for the job's own, as a shard takes them.
func given(fl *pflag.FlagSet, own map[string]bool) (args []string) {
	fl.Visit(func(flag *pflag.Flag) {
		if own[flag.Name] || flag.Name == "config" || flag.Name == "target" {
			return
		}
		values := cli.FlagValues(flag)
		if flag.Value.Type() == "stringSlice" {
			values = []string{strings.Join(values, ",")}
		}
		for _, v := range values {
			args = append(args, flags.Typed(flag, v))
		}
	})
	return args
}
