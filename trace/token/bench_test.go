package token

import (
	"runtime"
	"strings"
	"testing"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// The texts are varied enough, within a few kilobytes repeated, to show what ordinary text costs once the cache is warm.
var (
	english = strings.Repeat(`The afternoon train left Shrewsbury eleven minutes late, and nobody on the platform seemed surprised.
"It's the bridge," said Mrs Abernathy, who'd taken the 16:40 every weekday since 1987; "they've been mending it for years."
A good tokeniser spends most of its time on words like these: short, common, and already in the vocabulary. Rarer ones
(antimacassar, wainscoting, Llanfairpwllgwyngyll) must be put together from pieces, and that's where implementations differ.
1. Measure what you mean to improve. 2. Change one thing. 3. Measure again — and don't forget to write down what you saw!
`, 20)
	goCode = strings.Repeat(`// Read implements io.Reader. It returns io.EOF once the window is used up.
func (w *windowReader) Read(p []byte) (n int, err error) {
	if w.remaining <= 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > w.remaining {
		p = p[:w.remaining]
	}
	n, err = w.src.ReadAt(p, w.offset)
	w.offset += int64(n)
	w.remaining -= int64(n)
	if err == io.EOF && w.remaining > 0 {
		err = fmt.Errorf("window of %q: %w", w.name, io.ErrUnexpectedEOF)
	}
	return n, err
}

`, 20)
	chinese = strings.Repeat(`下午的火车晚点了十一分钟，站台上似乎没有人感到惊讶。“是因为那座桥，”阿伯内西太太说，她从一九八七年起每个工作日都坐这趟车。
一个好的分词器把大部分时间花在常见的词语上：它们很短，而且已经在词表里。少见的词语则必须由更小的片段拼接而成，各种实现的差别就在这里。
首先测量你想要改进的东西，然后只改变一处，最后再测量一次，并且不要忘记把看到的结果写下来！大语言模型的推理服务需要复用键值缓存，因此前缀相同的请求应当被送到同一个副本。
`, 20)
)

func BenchmarkAppend(b *testing.B) {
	for _, name := range Names() {
		for _, text := range benchTexts(b) {
			b.Run(name+"/"+text.name, func(b *testing.B) { benchmarkAppend(b, mustOpen(b, name), text.text) })
		}
	}
}

type benchText struct{ name, text string }

// benchTexts leaves the published sample out where it is absent.
func benchTexts(b *testing.B) []benchText {
	texts := []benchText{{"english", english}, {"go", goCode}, {"chinese", chinese}}
	if sample := strings.Join(shareGPT(b), "\n"); sample != "" {
		texts = append(texts, benchText{"sharegpt", sample})
	}
	return texts
}

func benchmarkAppend(b *testing.B, e *Encoding, text string) {
	dst := e.Append(nil, text)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		dst = e.Append(dst[:0], text)
	}
	b.ReportMetric(float64(len(dst))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mtok/s")
}

// BenchmarkOracle is the library on the same texts, to compare within one run.
func BenchmarkOracle(b *testing.B) {
	for _, name := range Names() {
		for _, text := range benchTexts(b) {
			b.Run(name+"/"+text.name, func(b *testing.B) {
				o, err := oracles[name]()
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(text.text)))
				b.ReportAllocs()
				for b.Loop() {
					o.EncodeOrdinary(text.text)
				}
			})
		}
	}
}

// BenchmarkOpen reads a vocabulary anew each time, and reports what stays in memory of one.
func BenchmarkOpen(b *testing.B) {
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			data, err := assets.Assets.ReadFile(name + ".tiktoken")
			if err != nil {
				b.Fatal(err)
			}
			var special []uint32
			if name == "p50k_base" {
				special = []uint32{50256}
			}
			before := heapInUse()
			v, err := parseVocab(data, special...)
			if err != nil {
				b.Fatal(err)
			}
			retained := heapInUse() - before
			for b.Loop() {
				if _, err := parseVocab(data, special...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(retained), "retained-B")
			runtime.KeepAlive(v)
			runtime.KeepAlive(data)
		})
	}
}

func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
