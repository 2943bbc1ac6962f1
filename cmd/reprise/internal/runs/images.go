package runs

import (
	"fmt"

	"github.com/spf13/cobra"

	"reprise/cmd/reprise/internal/cli"
	"reprise/cmd/reprise/internal/flags"
	"reprise/replay/client"
	"reprise/replay/result"
	"reprise/trace"
	"reprise/trace/page"
)

// An imageRow is what a row says of its images.
type imageRow struct {
	trace.Row `parquet:"-"`

	ImageTokens *int32 `parquet:"image_tokens,optional"`
	Images      *int32 `parquet:"images,optional"`
}

// countImages counts the rows with image tokens, nil for none, and how many tokens the
// largest image has. Where they are not to be sent, it says so.
func (f *Replay) countImages(cmd *cobra.Command, p *workloadPart) (found *result.ImageLoad, largest int32, err error) {
	rows, err := trace.Columns[imageRow](p.w)
	if err != nil {
		return nil, 0, err
	}
	var sum result.ImageLoad
	err = trace.Each(trace.Pick(rows, p.rows, nil), func(_ int64, r *imageRow) error {
		if r.ImageTokens == nil || *r.ImageTokens < 1 {
			return nil
		}
		sum.Requests++
		sum.Tokens += int64(*r.ImageTokens)
		n := int32(1)
		if r.Images != nil && *r.Images > 1 {
			n = *r.Images
		}
		largest = max(largest, *r.ImageTokens/n)
		return nil
	})
	if err != nil || sum.Requests == 0 {
		if err == nil && f.images {
			err = cli.Usagef("--images: no request has image tokens (column image_tokens)")
		}
		return nil, 0, err
	}
	if sum.Sent = f.images; !sum.Sent {
		cli.Notef(cmd, "images: %d of %d requests have images, which are not sent: text stands for their %s (--images sends images, over chat)",
			sum.Requests, p.rows.Len(), page.Many(sum.Tokens, "token"))
	}
	return &sum, largest, nil
}

// measureImages finds how the server counts images, and has them sent.
func (s *replayServers) measureImages(cmd *cobra.Command, load *result.ImageLoad, largest int32, blockSize int) (err error) {
	if load == nil || !load.Sent {
		return nil
	}
	s.images, err = s.endpoint.MeasureImages(cmd.Context(), s.maker.Tok.Words().Text[0], blockSize, largest)
	if err != nil {
		return fmt.Errorf("--images: the server does not count images: %w\nWithout --images, text stands for them", advised(err, &s.flags.Target))
	}
	s.endpoint.SendImages(s.images)
	load.Rule = s.images.String()
	cli.Notef(cmd, "images: sent with %d requests, %s in all by the workload; %s", load.Requests, page.Many(load.Tokens, "token"), load.Rule)
	return nil
}

// besideImages makes the text of rows that are sent with images.
type besideImages struct {
	flags.RowPrompter
	images *client.Images
}

func (b besideImages) Prompt(row *trace.Request, buf []byte) ([]byte, error) {
	return b.RowPrompter.Prompt(b.images.Text(row), buf)
}
