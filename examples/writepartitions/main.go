// Command writepartitions writes the partitions of a trace as several processes would, each on
// its own, and then the manifest that makes a trace of them:
//
//	make demo; mkdir parts
//	for i in 0 1 2 3; do go run ./examples/writepartitions demo/trace.parquet parts $i 4 & done; wait
//	go run ./examples/writepartitions demo/trace.parquet parts finish
//	bin/reprise profile parts
//
// It needs only package trace, whose exported names are stable.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strconv"

	"reprise/trace"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer, args []string) error {
	switch {
	case len(args) == 3 && args[2] == "finish":
		return finish(w, args[0], args[1])
	case len(args) == 4:
		i, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		of, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		return write(w, args[0], args[1], i, of)
	}
	return fmt.Errorf("usage: writepartitions TRACE FOLDER I N, for each I below N, and then writepartitions TRACE " +
		"FOLDER finish")
}

// write writes partition i of so many: its share of the rows, with row numbers, ids and parents
// of the whole trace. If it is killed, nothing is left; run again, it replaces the file.
func write(w io.Writer, from, to string, i, of int) error {
	t, err := trace.Open(from)
	if err != nil {
		return err
	}
	defer t.Close()
	rows, err := t.Reader()
	if err != nil {
		return err
	}
	first, end := rows.Rows()*int64(i)/int64(max(of, 1)), rows.Rows()*int64(i+1)/int64(max(of, 1))
	p, err := trace.CreatePartition(to, i, of, func(dst trace.Writer[trace.Request]) error {
		one := make([]trace.Request, 1)
		return trace.Each(rows, func(row int64, r *trace.Request) error {
			if row < first || row >= end {
				return nil
			}
			one[0] = *r
			_, err := dst.Write(one)
			return err
		})
	})
	if err == nil {
		_, err = fmt.Fprintf(w, "%s: %d rows, %d bytes\n", p.Name, p.Rows, p.Bytes)
	}
	return err
}

// finish writes the manifest of all partitions. It refuses a set that is not whole.
func finish(w io.Writer, from, to string) error {
	t, err := trace.Open(from)
	if err != nil {
		return err
	}
	defer t.Close()
	m, err := trace.Assemble(to, t.Meta)
	if err == nil {
		_, err = fmt.Fprintf(w, "%d rows in %d partitions, %s\n", m.Rows, len(m.Partitions),
			m.Metadata["reprise.digest"])
	}
	return err
}
