// Command proxycost measures what reprise record costs the traffic that passes through it:
//
//	go run ./examples/proxycost -reprise bin/reprise -rate 100 -tokens 50 -rounds 5
//
// It serves an engine of known answers, starts reprise record in front of it, and sends
// the same load to the engine and to the proxy in turn. For each it prints the median over
// the rounds of TTFT and of the gaps between tokens, at p50 and p99, and what the proxy
// adds. Every answer is compared byte for byte with what the engine sends for that
// request; at the end, what was recorded with what was sent.
//
// With -engine and -beside it measures another proxy in the same rounds, one that is
// already running in front of the engine:
//
//	go run ./examples/proxycost -reprise bin/reprise -engine 127.0.0.1:9000 -beside http://127.0.0.1:9001
//
// -tls puts TLS between the client and the proxy, and between the proxy and the engine; the
// direct way has it once. -engines serves several engines, to which the proxy spreads.
//
// With -streams it opens that many streams at once through the proxy and lets them run
// together for as long as their tokens take. Its client speaks HTTP/2 then, so that the
// proxy needs a file for each stream, and not two:
//
//	go run ./examples/proxycost -reprise bin/reprise -streams 10000 -tokens 20 -itl 500ms
//
// The engine, the client and the proxy share the machine: measure on an idle one with 4
// cores or more. The exit code is 1 if an answer differs or a request was not recorded.
package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	var l load
	reprise := flag.String("reprise", "bin/reprise", "the program to measure")
	flag.Float64Var(&l.rate, "rate", 100, "requests a second")
	flag.IntVar(&l.tokens, "tokens", 50, "tokens of an answer")
	flag.DurationVar(&l.itl, "itl", 10*time.Millisecond, "time between two tokens")
	flag.DurationVar(&l.lasts, "duration", 20*time.Second, "of a round")
	flag.IntVar(&l.prompt, "prompt", 2000, "words of a prompt")
	rounds := flag.Int("rounds", 5, "rounds, each against the engine and through the proxy")
	listen := flag.String("engine", "127.0.0.1:0", "where the engine listens")
	beside := flag.String("beside", "", "URL of another proxy in front of the engine, to be measured too")
	streams := flag.Int("streams", 0, "open so many streams at once through the proxy, in place of rounds")
	flag.BoolVar(&l.tls, "tls", false, "TLS between client and proxy, and between proxy and engine")
	engines := flag.Int("engines", 1, "engines behind the proxy")
	flag.Parse()
	if err := measure(*reprise, *listen, *beside, l, *rounds, *streams, *engines); err != nil {
		log.Fatal(err)
	}
}

// A load is what is sent in a round.
type load struct {
	rate   float64
	tokens int
	itl    time.Duration
	lasts  time.Duration
	prompt int
	tls    bool
}

func measure(reprise, listen, beside string, l load, rounds, streams, engines int) error {
	folder, err := os.MkdirTemp("", "proxycost-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	transport := &http.Transport{MaxIdleConnsPerHost: 1 << 15, DisableCompression: true}
	if l.tls {
		if transport.TLSClientConfig, err = writeCertificate(folder); err != nil {
			return err
		}
	}
	var urls []string
	for range engines {
		engine, err := net.Listen("tcp", listen)
		if err != nil {
			return err
		}
		url := "http://" + engine.Addr().String()
		if !l.tls {
			go http.Serve(engine, http.HandlerFunc(l.answer))
		} else {
			url = "https://" + engine.Addr().String()
			go http.ServeTLS(engine, http.HandlerFunc(l.answer), filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"))
		}
		urls, listen = append(urls, url), "127.0.0.1:0"
	}
	direct := urls[0]
	p, err := startProxy(reprise, urls, folder, l.tls)
	if err != nil {
		return err
	}
	defer p.cmd.Process.Kill()
	client := &http.Client{Transport: transport}
	var total *figures
	if streams > 0 {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetUnencryptedHTTP2(!l.tls)
		transport.Protocols.SetHTTP2(l.tls)
		l.rate, l.lasts = float64(streams), time.Second // all within a second
		total = l.send(client, p.url)
		fmt.Printf("%d streams at once through the proxy, %d of them whole and equal\n", total.sent, total.equal)
	} else {
		ways := []way{{"direct", direct}, {"record", p.url}}
		if beside != "" {
			ways = append(ways, way{"beside", beside})
		}
		if total, err = l.alternate(client, ways, rounds); err != nil {
			return err
		}
	}
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)); err == nil {
		_, peak, _ := strings.Cut(string(status), "VmHWM:")
		peak, _, _ = strings.Cut(peak, "\n")
		fmt.Println("memory of the proxy at its peak:", strings.TrimSpace(peak))
	}
	recorded, err := p.stop()
	if err != nil {
		return err
	}
	fmt.Printf("recorded %d of %d requests through the proxy\n", recorded, total.sent)
	if total.equal != total.sent || recorded != total.sent {
		return fmt.Errorf("%d answers of %d are equal, %d requests were recorded", total.equal, total.sent, recorded)
	}
	return nil
}

// A way is to the engine itself, or through a proxy.
type way struct{ name, url string }

// alternate sends rounds by each way in turn, and prints the medians. The first way is the
// engine itself, the second the recording proxy: it returns the sum of what went through
// that, and fails where an answer of the engine differs.
func (l load) alternate(client *http.Client, ways []way, rounds int) (through *figures, err error) {
	through = new(figures)
	values := make([][measures][]float64, len(ways)) // by way, measure and round
	for round := range rounds {
		for i := range ways {
			at := (i + round) % len(ways)
			f := l.send(client, ways[at].url)
			for m, v := range f.summary() {
				values[at][m] = append(values[at][m], v)
			}
			switch {
			case at == 1:
				through.sent, through.equal = through.sent+f.sent, through.equal+f.equal
			case at == 0 && f.equal != f.sent:
				return through, fmt.Errorf("%d of %d answers of the engine itself differ: the machine is too slow for this load", f.sent-f.equal, f.sent)
			}
		}
	}
	fmt.Printf("%g requests/s of %d tokens, %d rounds of %v, medians\n%-14s", l.rate, l.tokens, rounds, l.lasts, "")
	for _, w := range ways {
		fmt.Printf("%10s", w.name)
		if w != ways[0] {
			fmt.Printf("%10s", "added")
		}
	}
	fmt.Println()
	for m, name := range [measures]string{"TTFT p50, µs", "TTFT p99, µs", "gap p50, µs", "gap p99, µs", "requests/s"} {
		direct := median(values[0][m])
		fmt.Printf("%-14s%10.1f", name, direct)
		for i := range ways[1:] {
			v := median(values[1+i][m])
			fmt.Printf("%10.1f%+10.1f", v, v-direct)
		}
		fmt.Println()
	}
	fmt.Printf("answers through record: %d of %d equal byte for byte\n", through.equal, through.sent)
	return through, nil
}

// measures is how many figures a round gives.
const measures = 5

func (f *figures) summary() [measures]float64 {
	return [measures]float64{at(f.ttft, 0.5), at(f.ttft, 0.99), at(f.gaps, 0.5), at(f.gaps, 0.99), float64(f.sent) / f.lasted.Seconds()}
}

// answer is the engine: token i of request n is said after the time of i gaps.
func (l load) answer(w http.ResponseWriter, r *http.Request) {
	n := r.Header.Get("X-Number")
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	start := time.Now()
	for i := range l.tokens {
		time.Sleep(time.Until(start.Add(time.Duration(i) * l.itl)))
		if _, err := w.Write(event(n, i)); err != nil {
			return
		}
		flush.Flush()
	}
	w.Write(l.end(n))
}

func event(n string, i int) []byte {
	return fmt.Appendf(nil, `data: {"id":"cmpl-%s","object":"text_completion","choices":[{"index":0,"text":" token %d of %[1]s","finish_reason":null}]}`+"\n\n", n, i)
}

func (l load) end(n string) []byte {
	return fmt.Appendf(nil, `data: {"id":"cmpl-%s","choices":[{"index":0,"text":"","finish_reason":"length"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`+"\n\ndata: [DONE]\n\n", n, l.prompt, l.tokens)
}

// figures are what a round gave.
type figures struct {
	mu          sync.Mutex
	sent, equal int64
	ttft, gaps  []float64 // in microseconds
	lasted      time.Duration
}

// numbers tells requests of all rounds apart.
var numbers atomic.Int64

// send sends a round at absolute instants, and waits for all answers.
func (l load) send(client *http.Client, url string) *figures {
	f := new(figures)
	body := []byte(`{"stream":true,"max_tokens":` + strconv.Itoa(l.tokens) + `,"prompt":"` + strings.Repeat("word ", l.prompt) + `"}`)
	var all sync.WaitGroup
	start := time.Now()
	for i := range int(l.rate * l.lasts.Seconds()) {
		time.Sleep(time.Until(start.Add(time.Duration(float64(i) / l.rate * 1e9))))
		all.Go(func() { l.one(client, url, body, f) })
	}
	all.Wait()
	f.lasted = time.Since(start)
	return f
}

// one sends a request and compares its answer.
func (l load) one(client *http.Client, url string, body []byte, f *figures) {
	n := strconv.FormatInt(numbers.Add(1), 10)
	req, err := http.NewRequest(http.MethodPost, url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("X-Number", n)
	equal, ttft := false, 0.0
	var gaps []float64
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sent++
		f.ttft, f.gaps = append(f.ttft, ttft), append(f.gaps, gaps...)
		if equal {
			f.equal++
		}
	}()
	begin := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	var got []byte
	last := begin
	for buf := make([]byte, 4<<10); ; {
		k, err := resp.Body.Read(buf)
		now := time.Now()
		if k > 0 {
			if len(got) == 0 {
				ttft = float64(now.Sub(begin).Nanoseconds()) / 1e3
			} else {
				gaps = append(gaps, float64(now.Sub(last).Nanoseconds())/1e3)
			}
			last, got = now, append(got, buf[:k]...)
		}
		if err != nil {
			break
		}
	}
	var want []byte
	for i := range l.tokens {
		want = append(want, event(n, i)...)
	}
	equal = bytes.Equal(got, append(want, l.end(n)...))
}

// at is a quantile; 0 of none.
func at(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}

func median(values []float64) float64 { return at(values, 0.5) }

// A proxy is reprise record as a process.
type proxy struct {
	cmd *exec.Cmd
	url string
	out bytes.Buffer
}

// writeCertificate makes a certificate for this machine, cert.pem and key.pem, and the
// settings of a client that trusts it.
func writeCertificate(folder string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return &tls.Config{RootCAs: pool}, errors.Join(os.WriteFile(filepath.Join(folder, "cert.pem"), cert, 0o600),
		os.WriteFile(filepath.Join(folder, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

func startProxy(reprise string, engines []string, folder string, withTLS bool) (*proxy, error) {
	path, err := filepath.Abs(reprise)
	if err != nil {
		return nil, err
	}
	p := &proxy{cmd: exec.Command(path, "record", "--listen", "127.0.0.1:0", "-o", filepath.Join(folder, "traces"), "--json")}
	for _, engine := range engines {
		p.cmd.Args = append(p.cmd.Args, "--upstream", engine)
	}
	if withTLS {
		p.cmd.Args = append(p.cmd.Args, "--listen-cert", filepath.Join(folder, "cert.pem"), "--listen-key", filepath.Join(folder, "key.pem"))
		p.cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+filepath.Join(folder, "cert.pem"))
	}
	p.cmd.Stdout = &p.out
	said, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if _, after, ok := strings.Cut(lines.Text(), "recording "); ok {
			p.url, _, _ = strings.Cut(after, " ")
			go io.Copy(os.Stderr, said)
			return p, nil
		}
		fmt.Fprintln(os.Stderr, lines.Text())
	}
	return nil, fmt.Errorf("%s record did not begin: %w", reprise, p.cmd.Wait())
}

// stop ends the proxy and returns how many requests it recorded.
func (p *proxy) stop() (int64, error) {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return 0, err
	}
	if err := p.cmd.Wait(); err != nil {
		return 0, err
	}
	var said struct {
		Counts struct {
			Recorded int64 `json:"recorded"`
		} `json:"counts"`
	}
	err := json.Unmarshal(p.out.Bytes(), &said)
	return said.Counts.Recorded, err
}
