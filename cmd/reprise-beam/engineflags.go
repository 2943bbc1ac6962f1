package main

import (
	"flag"

	"github.com/spf13/pflag"

	"reprise/cmd/reprise/internal/flags"
)

// everydayEngine are the flags of Beam that --help shows, in its words.
var everydayEngine = []struct{ name, usage string }{
	{"runner", "engine: prism, universal (any with a job server, such as Flink and Spark) or dataflow; by default " +
		"prism, in this process"},
	{"endpoint", "`host:port` of the engine's job server"},
	{"environment_type", "how workers start: LOOPBACK in this process, PROCESS by a command on each machine, DOCKER " +
		"or EXTERNAL"},
	{"environment_config", "what the environment needs: for PROCESS {\"command\":\"/opt/boot\"}, for DOCKER an image"},
	{"worker_binary", "`file` of this program for the workers; by default the one that runs"},
	{"parallelism", "how many workers at once; by default the engine decides"},
}

// ofWorkers are the flags by which an engine starts a worker.
var ofWorkers = []string{"worker", "id", "options", "semi_persist_dir", "logging_endpoint", "control_endpoint"}

// engineFlags declares Beam's flags, with its own names.
func engineFlags(fl *pflag.FlagSet) {
	everyday, rest := flags.Sections(fl, "Engine")
	for _, f := range everydayEngine {
		everyday.Var(pflag.PFlagFromGoFlag(flag.Lookup(f.name)).Value, f.name, f.usage)
	}
	flag.VisitAll(func(f *flag.Flag) {
		if fl.Lookup(f.Name) != nil {
			return
		}
		of := pflag.PFlagFromGoFlag(f)
		rest.Var(of.Value, f.Name, f.Usage)
		fl.Lookup(f.Name).NoOptDefVal = of.NoOptDefVal
	})
	for _, name := range ofWorkers {
		if f := fl.Lookup(name); f != nil {
			f.Hidden = true
		}
	}
}
