package machines

import (
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/job"
)

// jobImportFlags are the job's own flags of job import. Those of import are handed on.
type jobImportFlags struct {
	spec   job.Import
	slurm  bool
	merge  bool
	folder string
	own    map[string]bool
}

func jobImportCommand(importFlags func(*cobra.Command)) *cobra.Command {
	var f jobImportFlags
	cmd := &cobra.Command{
		Use:   "import LOG... --shards N",
		Short: "Print the job of an import in shards, for kubectl or sbatch",
		Long: `Job import takes the flags of "reprise import" about how the logs are read, and prints what
imports them on a cluster: each process takes a share of the files. --merge-step prints the
Job that makes one trace of all shards, the same as of one process.

For Kubernetes it is an Indexed Job, for "kubectl apply -f -". LOG is the path in a pod,
/data or below: the volume of --data-claim or --results-claim. Shards go to a folder
with the job's name on the volume of --results-claim, or in --results-bucket; then LOG may be
in a store too. All shards hash under one key, which is mounted from a Secret: the manifest
says how to make it. A pod that is evicted is started
again, one that fails is tried 3 times more, and one whose command line is wrong is not.

With --slurm it is a script for sbatch. LOG, --key-file and --results-dir are paths that all
nodes see.`,
		Example: `  reprise job import /data/logs --shards 32 --parallel 8 --image registry.example/reprise:v1 --results-claim shards --data-claim logs --key-secret import-key/key
  reprise job import /shared/logs --shards 32 --slurm --results-dir /shared/results --key-file /shared/key`,
		Args: flags.Wants(1, math.MaxInt, "which logs?"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	importFlags(cmd)
	flags.Demote(fl)
	f.own = map[string]bool{"quiet": true, "key-file": true, "overwrite": true, "details": true, "json": true}
	before := map[string]bool{}
	fl.VisitAll(func(flag *pflag.Flag) { before[flag.Name] = true })
	everyday, _ := flags.Sections(fl, flags.ShardFlags)
	kube, kubeRest := flags.Sections(fl, "Kubernetes")
	slurm, _ := flags.Sections(fl, "Slurm")
	everyday.IntVar(&f.spec.Shards, "shards", 0, "how many processes, each with a share of the files")
	everyday.IntVar(&f.spec.Parallel, "parallel", 0, "how many run at once; 0 is all")
	register(&f.spec.Job, everyday, kube, kubeRest, "import", "512Mi")
	everyday.DurationVar(&f.spec.Deadline, "deadline", 24*time.Hour, "end the job after this time")
	kube.StringVar(&f.spec.Key, "key-secret", "", "Secret with the key that all shards share, as `NAME/KEY`")
	kube.BoolVar(&f.merge, "merge-step", false,
		"print the Job that makes a trace of the shards, in place of the import")
	slurm.BoolVar(&f.slurm, "slurm", false, "print a script for sbatch")
	slurm.StringVar(&f.folder, "results-dir", "", "`folder` for the shards that all nodes see")
	flags.Promote(fl, "key-file", "format", "tokenizer", "template", "map")
	fl.VisitAll(func(flag *pflag.Flag) { f.own[flag.Name] = f.own[flag.Name] || !before[flag.Name] })
	return cmd
}

// notImported are flags of import that a job gives or cannot have.
var notImported = map[string]string{
	"output":   "each shard has a file of its own in the folder of the results",
	"shard":    "--shards says how many there are",
	"inspect":  "look at a log by reprise import --inspect",
	"arrivals": "it makes times up one after the other: import such a source in one process",
	"tier":     "shards are of tier internal: anonymize the trace that the merge makes",
}

func (f *jobImportFlags) run(cmd *cobra.Command, logs []string) error {
	fl := cmd.Flags()
	for name, why := range notImported {
		if fl.Changed(name) {
			return cli.Usagef("--%s is not for a job: %s", name, why)
		}
	}
	keyFile := fl.Lookup("key-file").Value.String()
	switch {
	case f.spec.Shards < 1:
		return cli.Usagef("--shards: say how many processes are to import")
	case f.slurm && (volumes(&f.spec.Job) || f.spec.Key != "" || f.spec.Namespace != "" ||
		f.spec.Image != "" || f.merge):
		return cli.Usagef("--image, --results-claim, --results-bucket, --bucket-secret, --data-claim, --key-secret, " +
			"--namespace and --merge-step are for Kubernetes, not for --slurm")
	case f.slurm && (f.folder == "" || keyFile == ""):
		return cli.Usagef("--slurm needs --results-dir and --key-file, which all nodes see")
	case !f.slurm && (f.folder != "" || keyFile != ""):
		return cli.Usagef("--results-dir and --key-file are for --slurm; Kubernetes has a volume, --results-claim, " +
			"and a Secret, --key-secret")
	case !f.slurm && (f.spec.Image == "" || f.spec.Results+f.spec.Bucket == "" || f.spec.Key == ""):
		return cli.Usagef("a job of Kubernetes needs --image, --key-secret, and --results-claim or --results-bucket")
	case f.slurm:
		f.spec.Results = f.folder
	}
	for _, log := range logs {
		if log == cli.Standard {
			return cli.Usagef("stdin cannot be shared by processes: name files")
		}
	}
	f.spec.Inputs, f.spec.Args, f.spec.KeyFile = logs, given(fl, f.own), keyFile
	f.spec.MergeOpens = cli.On(cmd, "keep-templates")
	return printJob(cmd, f.slurm, f.merge, &f.spec)
}
