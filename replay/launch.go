package replay

import (
	"context"
	"time"

	"reprise/replay/result"
)

// Launch implements [result.Launcher].
func (h *HTTP) Launch(ctx context.Context, s result.Shot, r *result.Result) (land func()) {
	c := s.Call.(*httpCall)
	w := h.targets[c.target].wire
	if w == nil {
		return nil
	}
	var at int64
	await := w.start(c, func() { at = int64(time.Since(s.Start)) })
	if await == nil {
		return nil
	}
	return func() {
		h.fire(ctx, s, r, func(ctx context.Context, t *try, sent func(at int64)) (*reply, error) {
			sent(at)
			return await(ctx, t)
		})
	}
}
