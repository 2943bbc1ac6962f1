package job

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// Slurm is the script of an array with a task for each shard, for sbatch. Results is a folder
// that all nodes see. Slurm starts the tasks as it has room: one that begins too late
// refuses.
func (s *Spec) Slurm() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if !folderOf.MatchString(s.Results) {
		return nil, fmt.Errorf("the folder %q for the results: name one that all nodes see, by letters, "+
			"digits, and ._-/", s.Results)
	}
	if s.Image != "" && !imageOf.MatchString(s.Image) {
		return nil, fmt.Errorf("the image %q is no name of one", s.Image)
	}
	folder := strings.TrimSuffix(s.Results, "/") + "/" + s.Name
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	s.head(line, fmt.Sprintf("0-%d", s.Shards-1))
	line("#SBATCH --no-requeue")
	if s.Alone {
		line("#SBATCH --exclusive")
	}
	line("#SBATCH --output=%s-%%a.log", s.Name)
	line("#")
	line("# %d shards of one load; they start at %s.", s.Shards, s.Start.UTC().Format(time.RFC3339))
	line("# Submit this and the step that joins the results:")
	line("#   load=$(sbatch --parsable %s.sh)", s.Name)
	line("#   sbatch --dependency=afterok:$load --wrap 'reprise merge %s -o %s.parquet'", folder, folder)
	line("set -eu")
	line("mkdir -p %s", folder)
	words := []string{"exec", "srun"}
	if s.Image != "" {
		words = append(words, "--container-image="+s.Image, "--container-mounts="+s.Results+":"+s.Results)
	}
	words = append(words, "reprise")
	for _, a := range s.shardArgs() {
		words = append(words, quoted(a))
	}
	if s.ClockPeer != "" {
		words = append(words, quoted("--set=clock-peer="+s.ClockPeer))
	}
	words = append(words, `--output=`+folder+`/shard-"$SLURM_ARRAY_TASK_ID".parquet`)
	line("%s", strings.Join(words, " \\\n  "))
	return b.Bytes(), nil
}

// head is how a script of an array begins.
func (s *Job) head(line func(format string, args ...any), array string) {
	line("#!/bin/bash")
	line("#SBATCH --job-name=%s", s.Name)
	line("#SBATCH --array=%s", array)
	line("#SBATCH --nodes=1")
	line("#SBATCH --ntasks=1")
	line("#SBATCH --cpus-per-task=%d", s.Cores)
	line("#SBATCH --mem=%s", strings.TrimSuffix(s.Memory, "i"))
	line("#SBATCH --time=%s", slurmTime(s.Deadline))
}

// slurmTime is a time limit in whole seconds, as Slurm reads it.
func slurmTime(d time.Duration) string {
	seconds := int64(d.Round(time.Second) / time.Second)
	days, rest := seconds/86400, seconds%86400
	return fmt.Sprintf("%d-%02d:%02d:%02d", days, rest/3600, rest/60%60, rest%60)
}

// quoted is an argument as the shell reads it.
func quoted(arg string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_=./:,+@%", r)
	}
	if arg != "" && strings.IndexFunc(arg, func(r rune) bool { return !plain(r) }) < 0 {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
