package engine

import (
	"bytes"
	"encoding/base64"
	"errors"
	"hash/fnv"
	"image"
	_ "image/jpeg" // that images are read as
	_ "image/png"

	"reprise/trace/sample"
)

// cell is how many pixels wide and high a token of an image is, as in Qwen2-VL.
const cell = 28

// maxPixels is the most that an image may have, as vLLM and Pillow limit it.
const maxPixels = 178_956_970

// errImage says which images are taken.
var errImage = errors.New("an image must be a data: URL with a PNG or JPEG in base64, of at most 178,956,970 pixels")

// appendImage appends the tokens of an image: one for each square of 28 by 28 pixels, begun
// ones included. They have numbers that no text has, and equal ones only in equal images.
func appendImage(dst []uint32, url []byte) ([]uint32, error) {
	head, data, ok := bytes.Cut(url, []byte(","))
	if !ok || !bytes.HasPrefix(head, []byte("data:image/")) || !bytes.HasSuffix(head, []byte(";base64")) {
		return dst, errImage
	}
	of, _, err := image.DecodeConfig(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data)))
	if err != nil || of.Width < 1 || of.Height < 1 || of.Width > maxPixels/of.Height {
		return dst, errImage
	}
	hash := fnv.New64a()
	hash.Write(data)
	seed := hash.Sum64()
	for i := range uint64((of.Width+cell-1)/cell) * uint64((of.Height+cell-1)/cell) {
		dst = append(dst, 1<<31|uint32(sample.Mix64(seed+i*sample.Golden)))
	}
	return dst, nil
}
