//go:build unix

// Command importcost imports one source log, as reprise import does, and says
// what that cost. It is not part of the tests:
//
//	go run ./anonymize/testdata/importcost -o big.parquet big.jsonl
//
// MB are of the file as it is on disk, and a core's second is one of CPU time,
// user and system, of all threads together.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"syscall"
	"time"

	"reprise/anonymize"
	"reprise/datasets"
	"reprise/trace"
	"reprise/trace/arrival"
	"reprise/trace/token"
)

func main() {
	out := flag.String("o", os.DevNull, "trace to write")
	profile := flag.String("cpuprofile", "", "file for a CPU profile")
	blockSize := flag.Int("block-size", 512, "tokens in a block of text")
	spillDir := flag.String("spill-dir", "", "directory of spill files")
	flag.Parse()
	debug.SetMemoryLimit(240 << 20) // as the command does
	if err := run(flag.Arg(0), *out, *profile, anonymize.Policy{Tier: anonymize.Internal, BlockSize: *blockSize, SpillDir: *spillDir}); err != nil {
		fmt.Fprintln(os.Stderr, "importcost:", err)
		os.Exit(1)
	}
}

func run(in, out, profile string, p anonymize.Policy) error {
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	files, err := datasets.Expand(in)
	if err != nil {
		return err
	}
	begin := time.Now()
	src, err := datasets.OpenFiles(files, datasets.Options{MaxBad: 0.001})
	if err != nil {
		return err
	}
	info := src.Info()
	p.SourceBlock = info.BlockSize
	var entries trace.EntryReader = src
	if info.HasText {
		if p.Tokenizer, err = token.Open("o200k_base"); err != nil {
			return err
		}
	}
	if !info.HasTimes {
		if entries, err = timed(src); err != nil {
			return err
		}
	}
	var card anonymize.Card
	if err := trace.Create(out, func(dst trace.Writer[trace.Request]) (trace.Meta, error) {
		var err error
		card, err = anonymize.Run(context.Background(), p, entries, dst)
		return trace.Meta{BlockSize: card.BlockSize}, err
	}); err != nil {
		return err
	}
	return say(in, time.Since(begin), card.Totals)
}

// timed gives the times that the command gives by default and --arrivals poisson:2.
func timed(src trace.EntryReader) (trace.EntryReader, error) {
	process, err := arrival.ParseProcess("poisson:2")
	if err != nil {
		return nil, err
	}
	service, err := arrival.ParseDist("lognormal:5s,1")
	if err != nil {
		return nil, err
	}
	think, err := arrival.ParseDist("lognormal:30s,1.5")
	if err != nil {
		return nil, err
	}
	return datasets.Timed(src, process.New(arrival.Stream(1, "arrivals")), service.New(arrival.Stream(1, "service")), think.New(arrival.Stream(1, "think"))), nil
}

func say(in string, wall time.Duration, t anonymize.Totals) error {
	fi, err := os.Stat(in)
	if err != nil {
		return err
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err
	}
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	mb := float64(fi.Size()) / 1e6
	fmt.Printf("%.0f MB, %d requests, %d distinct blocks: %.1f MB/s of a core, %.1f s CPU, %.1f s wall, %.1f MB/s, RSS %d MB, spilled %.0f MB\n",
		mb, t.Requests, t.Blocks, mb/cpu.Seconds(), cpu.Seconds(), wall.Seconds(), mb/wall.Seconds(), u.Maxrss>>10, float64(t.SpillBytes)/1e6)
	return nil
}
