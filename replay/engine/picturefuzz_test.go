package engine

import "testing"

func FuzzImage(f *testing.F) {
	for _, url := range []string{"data:image/gif;base64,", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAABwAAAAcCAIAAAD9b0jD"} {
		f.Add([]byte(url))
	}
	f.Fuzz(func(t *testing.T, url []byte) {
		tokens, err := appendImage(nil, url)
		if (err == nil) != (len(tokens) > 0) || len(tokens) > maxPixels {
			t.Fatalf("%d tokens, %v", len(tokens), err)
		}
	})
}
