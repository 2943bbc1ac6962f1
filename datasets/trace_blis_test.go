package datasets

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

const blisTop = "request_id,client_id,tenant_id,slo_class,session_id,round_index,prefix_group,prefix_length,streaming,input_tokens,output_tokens," +
	"text_tokens,image_tokens,audio_tokens,video_tokens,reason_ratio,model,deadline_us,server_input_tokens," +
	"arrival_time_us,send_time_us,first_chunk_time_us,last_chunk_time_us,num_chunks,status,error_message,finish_reason\n"

func TestBLIS(t *testing.T) {
	for name, c := range map[string]struct {
		Reader []string
		want   []string
		notes  string
	}{
		"a run against a server": { // sent 40 ms late, on another clock
			[]string{"0,c0,t0,critical,,0,,0,true,276,40,276,0,0,0,0.25,m,0,300,1500,1760000000040000,1760000000130000,1760000001030000,12,ok,,stop"},
			[]string{"1.5ms user=c0 model=m class=critical in=300 out=40 reasoning=10 blocks=[0] stream=true ok stop ttft=90ms e2e=990ms"}, ""},
		"a simulation, where the first arrives at 0": {
			[]string{"0,,t0,,,0,,0,false,276,40,0,0,0,0,0,,0,0,0,0,90000,990000,0,ok,,", "1,,t0,,,0,,0,false,1,1,0,0,0,0,0,,0,0,7,7,0,0,0,incomplete,,"},
			[]string{"0s user=t0 in=276 out=40 blocks=[0] stream=false ok ttft=90ms e2e=990ms", "7µs user=t0 in=1 out=1 blocks=[1] stream=false other"}, ""},
		"prefix groups": {
			[]string{"0,c,,,,0,g,1100,false,500,1,0,0,0,0,0,,0,0,1,1,0,0,0,ok,,", "1,c,,,,0,g,2000,false,100,1,0,0,0,0,0,,0,0,2,2,0,0,0,ok,,",
				"2,c,,,,0,h,600,false,0,1,0,0,0,0,0,,0,0,3,3,0,0,0,ok,,", "3,c,,,,0,g,1100,false,1,1,0,0,0,0,0,,0,513,4,4,0,0,0,ok,,", "4,c,,,,0,,600,false,1,1,0,0,0,0,0,,0,0,5,5,0,0,0,ok,,"},
			[]string{"1µs user=c in=1600 out=1 blocks=[0 1 2 3] stream=false ok", "2µs user=c in=2100 out=1 blocks=[0 1 4 5 6] stream=false ok",
				"3µs user=c in=600 out=1 blocks=[7 8] stream=false ok", "4µs user=c in=513 out=1 blocks=[0 9] stream=false ok", "5µs user=c in=601 out=1 blocks=[10 11] stream=false ok"}, ""},
		"sessions": {
			[]string{"0,c,,,s,0,,0,false,1,1,0,0,0,0,0,,0,0,100,150,200,300,0,ok,,", "1,c,,,s,1,,0,false,1,1,0,0,0,0,0,,0,0,1300,1300,0,0,0,ok,,", "2,c,,,s,2,,0,false,1,1,0,0,0,0,0,,0,0,1400,1400,1500,1600,0,ok,,", "3,c,,,s,3,,0,false,1,1,0,0,0,0,0,,0,0,1500,1500,0,0,0,ok,,"},
			[]string{"100µs user=c session=s turn=0 after=[] in=1 out=1 blocks=[0] stream=false ok ttft=50µs e2e=150µs",
				"1.3ms user=c session=s turn=1 after=[0] in=1 out=1 blocks=[1] stream=false ok think=1ms",
				"1.4ms user=c session=s turn=2 after=[1] in=1 out=1 blocks=[2] stream=false ok ttft=100µs e2e=200µs",
				"1.5ms user=c session=s turn=3 after=[] in=1 out=1 blocks=[3] stream=false ok"}, ""},
		"what went wrong": {
			[]string{"0,c,,,,0,,0,true,9,0,0,0,0,0,0,,0,0,1,2,0,0,0,error,the secret,", "1,c,,,,0,,0,true,9,3,0,0,0,0,0,,0,0,2,2,3,9,0,timeout,,abort", "2,c,,,,0,,0,true,9,0,0,0,0,0,0,,0,0,3,0,4,5,0,ok,,",
				"3,c,,,,0,,0,true,9,0,0,0,0,0,0,,0,0,3,8,4,5,0,ok,,", "4,c,,,,0,,0,true,9,1,0,4,1,0,0,,0,0,3,8,9,8,0,ok,,"},
			[]string{"1µs user=c in=9 blocks=[0] stream=true failed", "2µs user=c in=9 out=3 blocks=[1] stream=true cancelled abort ttft=1µs e2e=7µs", "3µs user=c in=9 out=0 blocks=[2] stream=true ok",
				"3µs user=c in=9 out=0 blocks=[3] stream=true ok", "3µs user=c in=9 out=1 blocks=[4] stream=true ok"},
			"records that tell|requests whose chunks are before their sending, or out of order, taken to have no latencies: 2|requests with audio or video, whose tokens are counted in the input alone: 1"},
	} {
		all, info := mustRead(t, blisTop+strings.Join(c.Reader, "\n")+"\n", Options{})
		var got []string
		for i := range all {
			got = append(got, summary(&all[i])+pauses(&all[i]))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		for _, note := range info.Notes {
			if !strings.Contains(c.notes, note) {
				t.Errorf("%s: %s", name, note)
			}
		}
		if info.Format != "blis" || info.TimeUnit != "us" || info.BlockSize != 512 {
			t.Errorf("%s: %+v", name, info)
		}
	}
}

// Columns that come and go with the version are matched by name.
func TestBLISColumns(t *testing.T) {
	in := "request_id,slo_class,vllm_priority,arrival_time_us,input_tokens,output_tokens,adapter,x_request_id\n0,batch,3,5,7,9,lora,u-1\n"
	if got, _ := summaries(t, in, Options{}); got != "5µs adapter=lora class=batch in=7 out=9 blocks=[0] ok" {
		t.Error(got)
	}
	for row, want := range map[string]string{
		"0,batch,3,x,7,9,,": "log:2:11: time: want a number", "0,batch,3,,7,9,,": "log:2:1: it has no time",
		"0,batch,3,5,,9,,": "log:2:1: input_tokens is missing", "0,batch,3,5,-1,9,,": "log:2:13: input_tokens: want",
	} {
		_, info, err := read(strings.NewReader(strings.Replace(in, "0,batch,3,5,7,9,lora,u-1", row, 1)), Options{MaxBad: 1})
		if err != nil || len(info.FirstBad) != 1 || !strings.HasPrefix(info.FirstBad[0].Error(), want) {
			t.Errorf("%s: %v %v", row, info.FirstBad, err)
		}
	}
	if _, _, err := read(strings.NewReader(blisTop+"0,c,,,,0,g,2147483647,false,5,1,0,0,0,0,0,,0,0,1,1,0,0,0,ok,,\n"), Options{}); err == nil || !strings.Contains(err.Error(), "2147483647 tokens") {
		t.Error(err)
	}
}

func TestBLISPair(t *testing.T) {
	files := func(header string) []File {
		out := textFiles(header, blisTop+"0,c,,,,0,,0,false,1,1,0,0,0,0,0,,0,0,9,9,0,0,0,ok,,\n")
		out[0].Name, out[1].Name = "run/header.yaml", "run/data.csv"
		return out
	}
	f := blisFormat()
	good := files("trace_version: 2\ntime_unit: \"us\"\nmode: real\nwarm_up_requests: 3\nserver:\n    model: m\n")
	slices.Reverse(good)
	if !f.detectFiles(good) || f.detectFiles(good[:1]) || f.detectFiles(files("a: 1\n")) {
		t.Error("detection")
	}
	all, info, err := readAs("blis", good, Options{})
	if err != nil || len(all) != 1 || !slices.Equal(info.Notes, []string{"the first requests are a warm-up by the header, and are kept: 3"}) {
		t.Errorf("%d entries, %q, %v", len(all), info.Notes, err)
	}
	var at *trace.SourceError
	if _, _, err := readAs("blis", files("trace_version: 2\ntime_unit: ms\n"), Options{}); !errors.As(err, &at) || !strings.Contains(at.Reason, "microseconds") {
		t.Error(err)
	}
	if _, _, err := readAs("blis", files("no: header\n"), Options{}); !errors.Is(err, fault.ErrUsage) {
		t.Error(err)
	}
	torn := good[1]
	torn.Open = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
	if f.detectFiles([]File{torn, good[0]}) {
		t.Error("a header that cannot be opened was read")
	}
}
