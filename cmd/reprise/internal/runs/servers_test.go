package runs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhenReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("down")
		asked := 0
		ask := func() error {
			if asked++; asked < 4 {
				return down
			}
			return nil
		}
		if err := whenReady(t.Context(), 0, ask); err != down || asked != 1 {
			t.Errorf("without a time: asked %d times, %v", asked, err)
		}
		begin := time.Now()
		if err := whenReady(t.Context(), 10*time.Second, ask); err != nil || asked != 4 || time.Since(begin) != 2*time.Second {
			t.Errorf("asked %d times in %v: %v", asked, time.Since(begin), err)
		}
		asked = 0
		if err := whenReady(t.Context(), 2500*time.Millisecond, ask); !errors.Is(err, down) || asked != 3 {
			t.Errorf("asked %d times: %v", asked, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := whenReady(ctx, time.Second, func() error { return down }); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
