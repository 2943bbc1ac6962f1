package datasets

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"reprise/datasets/internal/fault"
	"reprise/trace"
)

// rowsOf makes JSON lines of rows, for which ' stands for ".
func rowsOf(rows ...string) string {
	return strings.ReplaceAll(strings.Join(rows, "\n")+"\n", "'", `"`)
}

const (
	noteEarly    = "turns without a time, given the earliest possible, since the time that the turn before took is not known: "
	noteUnread   = "records with fields that are not read: "
	noteTogether = "all sessions start at the same instant: this is seldom how they arrived"
	noteReplies  = "turns behind replies that the source does not have: their prompts are shorter than they were: "
)

func TestDynamoRows(t *testing.T) {
	info := reads(t, rowsOf(
		`{'request_id':'r0','session_id':'s','created_time':12.5,'input_tokens':600,'output_tokens':5,'hash_ids':[0,1],'priority':-3}`, // aliases, float ms
		`{'session_id':'s','timestamp':99,'input_length':700,'output_length':6,'hash_ids':[0,2]}`,                                      // a time and no delay
		`{'session_id':'s','timestamp':200,'delay':40.5,'input_length':710,'output_length':7,'hash_ids':[0,3],'output_token_ids':[1]}`, // both
		`{'session_id':7,'timestamp':150,'delay_ms':0,'input_length':1,'output_length':1,'hash_ids':[4],'priority':null}`,              // first: no think time
		`{'session_id':'s','delay_ms':1000.25,'input_length':720,'output_length':8,'hash_ids':[0,5]}`,                                  // a delay and no time
		`{'session_id':'s','input_length':730,'output_length':8,'hash_ids':[0,6],'strict_priority':1}`,                                 // neither
		`{'timestamp':7,'input_length':0,'output_length':1,'hash_ids':[]}`,                                                             // no session, out of order
	), Options{},
		"12.5ms session=s class=-3 turn=0 after=[] in=600 out=5 blocks=[0 1]",
		"99ms session=s turn=1 after=[0] in=700 out=6 blocks=[0 2]",
		"200ms session=s turn=2 after=[1] in=710 out=7 blocks=[0 3] think=40.5ms",
		"150ms session=7 turn=0 after=[] in=1 out=1 blocks=[4]",
		"1.20025s session=s turn=3 after=[2] in=720 out=8 blocks=[0 5] think=1.00025s",
		"1.20025s session=s turn=4 after=[4] in=730 out=8 blocks=[0 6]",
		"7ms in=0 out=1 blocks=[]")
	if info.Format != "dynamo" || info.BlockSize != 512 || !info.BlocksHashed || info.TimeUnit != "ms" || !info.HasTimes || !info.HasSessions || info.HasText || info.SessionTimes {
		t.Errorf("%+v", info)
	}
	notesAre(t, info, "records with the tokens of their outputs, which are not read: 1", noteEarly+"2", noteUnread+"1")
}

func TestDynamoUnits(t *testing.T) {
	row := func(at string) string { return rowsOf(`{'timestamp':` + at + `,'input_length':1,'output_length':1}`) }
	for _, c := range []struct{ o, at, want string }{
		{"", "61.114", "1m1.114s"}, {"ms", "61.114", "61.114ms"}, {"", "61", "61ms"}, {"s", "61.5", "1m1.5s"}, {"", "1700000000123", "472222h13m20.123s"},
	} {
		reads(t, row(c.at), Options{TimeUnit: c.o}, c.want+" in=1 out=1")
	}
	wantBad(t, row("0")+row("5184000001"), Options{}, "log:2:14: in the unit ms the times up to here span more than 60 days")
	reads(t, row("0")+row("5184000001"), Options{AllowLongSpan: true}, "0s in=1 out=1", "1440h0m0.001s in=1 out=1")
	wantBad(t, rowsOf(`{'session_id':'s','timestamp':0,'input_length':1,'output_length':1}`, `{'session_id':'s','delay':5184000001,'input_length':1,'output_length':1}`),
		Options{}, "log:2:1: in the unit ms the times up to here span")
}

func TestDynamoFaults(t *testing.T) {
	first := rowsOf(`{'session_id':'s','timestamp':100,'input_length':600,'output_length':1,'hash_ids':[0,1]}`)
	for row, want := range map[string]string{
		`{'session_id':'t','timestamp':1,'delay':5,'input_length':1,'output_length':1,'hash_ids':[9]}`:                  "log:2:41: it has a delay, and nothing before it",
		`{'timestamp':1,'delay_ms':5,'input_length':1,'output_length':1,'hash_ids':[9]}`:                                "log:2:27: it has a delay, and nothing before it",
		`{'session_id':'t','input_length':1,'output_length':1,'hash_ids':[9]}`:                                          "log:2:1: it has no time, and follows no other",
		`{'input_length':1,'output_length':1,'hash_ids':[9]}`:                                                           "log:2:1: it has no time, and follows no other",
		`{'session_id':'s','timestamp':99,'input_length':600,'output_length':1,'hash_ids':[0,1]}`:                       "log:2:31: it arrives before the turn",
		`{'session_id':'s','delay':-1,'input_length':600,'output_length':1,'hash_ids':[0,1]}`:                           "log:2:27: delay: want a number that is not negative",
		`{'session_id':'s','delay':4000000000000,'input_length':600,'output_length':1,'hash_ids':[0,1]}`:                "log:2:27: its delay is too long",
		`{'session_id':['s'],'timestamp':1,'input_length':1,'output_length':1,'hash_ids':[9]}`:                          "log:2:15: session_id: want a string or a number",
		`{'session_id':'s','delay':1,'output_length':600}`:                                                              "log:2:1: input_tokens is missing",
		`{'session_id':'s','delay':1,'input_length':600,'output_length':1,'hash_ids':[0]}`:                              "log:2:1: its block ids are not one for each",
		`{'session_id':'s','timestamp':'2026-01-02T03:04:05Z','input_length':600,'output_length':1,'hash_ids':[0,1]}`:   "log:2:31: its time is written in another way",
		`{'session_id':'s','delay':1,'tool_wait_ms':2,'input_length':600,'output_length':1,'hash_ids':[0,1]}`:           "log:2:44: the rows of a session may hold",
		`{'session_id':'s','delay':1,'input_length':600,'output_length':1,'hash_ids':[0,1],'wait_for':[]}`:              "log:2:94: the rows of a session may hold",
		`{'session_id':'s','delay':1,'input_length':600,'output_length':1,'hash_ids':[0,1],'branches':[]}`:              "log:2:94: the rows of a session may hold",
		`{'session_id':'s','delay':1,'input_length':600,'output_length':1,'hash_ids':[0,1],'prefix_reset':false}`:       "log:2:98: the rows of a session may hold",
		`{'session_id':'s','delay':1,'input_length':600,'output_length':1,'hash_ids':[2,3]}`:                            "log:2:77: the rows of a session may hold",
		`{'session_id':'s','delay':1,'input_length':300,'output_length':1,'context_mode':'deltas_without_responses'}`:   "log:2:81: the rows of a session may hold",
		`{'session_id':'s','delay':1,'input_length':600,'output_length':1}`:                                             "",
		`{'session_id':'s','delay':1,'input_length':9,'output_length':1,'context_mode':'message_array_with_responses'}`: "",
	} {
		if want == "" {
			if all, info := mustRead(t, first+rowsOf(row), Options{}); len(all) != 2 || info.Bad != 0 {
				t.Errorf("%s: %+v", row, info)
			}
			continue
		}
		wantBad(t, first+rowsOf(row), Options{}, want)
	}
	short := rowsOf(`{'session_id':'s','timestamp':0,'input_length':60,'output_length':1}`, `{'session_id':'s','delay':1,'input_length':59,'output_length':1}`)
	wantBad(t, short, Options{}, "log:2:44: the rows of a session may hold its whole context, as Dynamo's do, or "+
		"only the new part")
	if _, _, err := read(strings.NewReader(short), Options{}); !errors.Is(err,
		ErrDelta) || !strings.HasSuffix(err.Error(), "Here a turn of 59 tokens follows one of 60, as in rows of new "+
		"parts: --rows delta") {
		t.Errorf("shorter rows: %v", err)
	}
	reads(t, short, Options{Rows: "full"}, "0s session=s turn=0 after=[] in=60 out=1", "1ms session=s turn=1 after=[0] in=59 out=1 think=1ms")
}

// A turn that begins with the block of the one before it shows that rows hold whole prompts. Then a window
// that slides, another document or a sample is no sign of rows that hold what is new.
func TestRowsThatShowWholePrompts(t *testing.T) {
	row := func(session string, in int, blocks string) string {
		return rowsOf(fmt.Sprintf(`{'session_id':'%s','timestamp':0,'input_length':%d,'output_length':1,'hash_ids':[%s]}`, session, in, blocks))
	}
	begin, again, slid := row("s", 1000, "0,1"), row("s", 1500, "0,1,2"), row("t", 1000, "7,8")+row("t", 900, "9,10")
	short := row("u", 400, "30") + row("u", 300, "31") // no full block tells
	for _, in := range []string{begin + again + slid + short, slid + short + begin + again, begin + slid + again + short} {
		if all, info := mustRead(t, in, Options{}); len(all) != 6 || info.Bad != 0 {
			t.Errorf("%d rows, %+v", len(all), info)
		}
	}

	// Without one, the source is asked at its end, or when many have come, and the first is named.
	many := begin
	for i := range 2 * mostDoubts {
		many += row("s", 900, fmt.Sprintf("%d,%d", 10*i+20, 10*i+21))
	}
	for _, in := range []string{slid, short, many} {
		if _, _, err := read(strings.NewReader(in), Options{}); !errors.Is(err, ErrDelta) || !strings.HasPrefix(err.Error(), "log:2:") {
			t.Errorf("rows that show nothing: %v", err)
		}
	}
}

// Rows without a fault go on behind one with a fault, in the session as it was.
func TestDynamoGoesOnBehindFaults(t *testing.T) {
	info := reads(t, rowsOf(
		`{'session_id':'s','timestamp':100,'input_length':1,'output_length':1,'hash_ids':[0]}`,
		`{'session_id':'s','timestamp':500,'input_length':1,'output_length':1,'hash_ids':[0,1]}`,
		`{'session_id':'s','delay':7,'input_length':2,'output_length':1,'hash_ids':[2]}`,
	), Options{MaxBad: 0.5},
		"100ms session=s turn=0 after=[] in=1 out=1 blocks=[0]",
		"107ms session=s turn=1 after=[0] in=2 out=1 blocks=[2] think=7ms")
	if info.Bad != 1 || info.Records != 2 {
		t.Errorf("%+v", info)
	}
}

func TestDynamoBlockSize(t *testing.T) {
	row := rowsOf(`{'session_id':'s','timestamp':0,'input_length':33,'output_length':1,'hash_ids':[0,1,2]}`)
	if info := reads(t, row, Options{BlockSize: 16}, "0s session=s turn=0 after=[] in=33 out=1 blocks=[0 1 2]"); info.BlockSize != 16 {
		t.Errorf("%+v", info)
	}
	wantBad(t, row, Options{}, "log:1:1: its block ids")
	without := rowsOf(`{'session_id':'s','timestamp':0,'input_length':33,'output_length':1}`)
	if info := reads(t, without, Options{}, "0s session=s turn=0 after=[] in=33 out=1"); info.BlockSize != 0 || info.BlocksHashed {
		t.Errorf("%+v", info)
	}
	for in, o := range map[string]Options{
		without: {BlockSize: 16},
		rowsOf(`{'text_input':'x','timestamp':0}`): {BlockSize: 16},
		row:    {Rows: "new"},
		oneRow: {Rows: "delta"},
	} {
		if _, _, err := read(strings.NewReader(in), o); !errors.Is(err, fault.ErrUsage) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	info := reads(t, row+without, Options{BlockSize: 16}, "0s session=s turn=0 after=[] in=33 out=1 blocks=[0 1 2]", "0s session=s turn=1 after=[0] in=33 out=1")
	notesAre(t, info, "requests without block ids: 1")
}

// Without any time, Timed gives them and keeps the delays.
func TestDynamoWithoutTimes(t *testing.T) {
	in := rowsOf(
		`{'session_id':'a','input_length':10,'output_length':4}`,
		`{'session_id':'a','delay':2500,'input_length':15,'output_length':4}`,
		`{'session_id':'b','input_length':10,'output_length':4}`,
		`{'session_id':'b','input_length':20,'output_length':4}`)
	info := reads(t, in, Options{},
		"session=a turn=0 after=[] in=10 out=4",
		"session=a turn=1 after=[0] in=15 out=4 think=2.5s",
		"session=b turn=0 after=[] in=10 out=4",
		"session=b turn=1 after=[2] in=20 out=4")
	if info.HasTimes || info.TimeUnit != "" || len(info.Notes) != 0 {
		t.Errorf("%+v", info)
	}
	src, err := Open(strings.NewReader(in), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := readAll(Timed(src, processOf(t, "constant:0.01"), distOf(t, "constant:2s", "service"), distOf(t, "constant:5s", "think")))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{0, 4500 * time.Millisecond, 100 * time.Second, 107 * time.Second} {
		if at := got[i].Time.Sub(Epoch); at != want {
			t.Errorf("entry %d at %v, want %v", i, at, want)
		}
	}
	wantBad(t, in+rowsOf(`{'session_id':'c','timestamp':5,'input_length':1,'output_length':1}`)[:0]+
		strings.Repeat(rowsOf(`{'input_length':1,'output_length':1}`), 3000)+rowsOf(`{'timestamp':5,'input_length':1,'output_length':1}`),
		Options{}, "log:3005:14: it has a time, unlike the records before it")
}

// Agentic rows are whole contexts when that is said.
func TestDynamoAgentic(t *testing.T) {
	in := rowsOf(
		`{'request_id':'p0','session_id':'p','timestamp':0,'input_length':600,'output_length':9,'hash_ids':[0,1],'prefix_reset':true,'branches':['c0']}`,
		`{'request_id':'c0','session_id':'c','timestamp':50,'delay':10,'wait_for':['p0'],'input_length':100,'output_length':9,'hash_ids':[2],'prefix_reset':true}`,
		`{'request_id':'p1','session_id':'p','delay':5,'tool_wait_ms':2.5,'wait_for':['p0','c0','c0','later'],'input_length':700,'output_length':9,'hash_ids':[0,3],'prefix_reset':false}`,
		`{'request_id':'d0','session_id':'d','wait_for':['p1'],'input_length':5,'output_length':9,'hash_ids':[4],'request_kind':'agent'}`)
	info := reads(t, in, Options{Rows: "full"},
		"0s session=p turn=0 after=[] in=600 out=9 blocks=[0 1]",
		"50ms session=c turn=0 after=[0] in=100 out=9 blocks=[2] think=10ms",
		"57.5ms session=p turn=1 after=[0 1] in=700 out=9 blocks=[0 3] think=5ms tool=2.5ms",
		"57.5ms session=d turn=0 after=[2] in=5 out=9 blocks=[4]")
	notesAre(t, info, "requests waited for that are not before the one that waits, left out: 1", noteEarly+"2", noteUnread+"1")
	wantBad(t, in, Options{}, "log:1:136: the rows of a session may hold")
	// Dynamo's own rows, each with a name and the ids of its whole prompt, need no word; the
	// size of their blocks is found.
	own := rowsOf(`{'request_id':'r1','session_id':'s','timestamp':0.0,'input_length':100,'output_length':9,'hash_ids':[1,2]}`,
		`{'request_id':'r2','session_id':'s','wait_for':['r1'],'delay':1.0,'tool_wait_ms':2,'input_length':150,'output_length':9,'hash_ids':[1,2,3],'priority':1}`)
	info = reads(t, own, Options{}, "0s session=s turn=0 after=[] in=100 out=9 blocks=[1 2]", "3ms session=s class=1 turn=1 after=[0] in=150 out=9 blocks=[1 2 3] think=1ms tool=2ms")
	notesAre(t, info, "blocks of 64 tokens fit the lengths of the first rows, and blocks of 512 do not",
		noteEarly+"1", noteMixed+": 1")
	wantBad(t, strings.Replace(own, "[1,2,3]", "[3,4,5]", 1), Options{}, "log:2:132: the rows of a session may hold")
	wantBad(t, rowsOf(`{'request_id':'x','timestamp':1,'wait_for':'r','input_length':1,'output_length':1}`), Options{Rows: "full"}, "log:1:44: wait_for: want a list")
	wantBad(t, rowsOf(`{'request_id':'x','timestamp':1,'wait_for':[1],'input_length':1,'output_length':1}`), Options{Rows: "full"}, "log:1:44: wait_for: want a list")
}

func TestAIPerfText(t *testing.T) {
	info := reads(t, rowsOf(
		`{'session_id':'a','timestamp':0,'text_input':'Hello','output_length':4}`,
		`{'session_id':'b','timestamp':5.5,'messages':[{'role':'user','content':'q'}],'output_length':2,'tools':[{}]}`,
		`{'session_id':'b','delay':1000,'messages':[{'role':'user','content':'q'},{'role':'assistant','content':'r'},{'role':'user','content':'s'}],'output_length':2}`,
		`{'payload':{'messages':[{'role':'user','content':'p'}],'max_tokens':50,'model':'m','stream':true,'temperature':0.5,'tools':[{}]},'timestamp':1000}`,
		`{'payload':{'prompt':'p'},'timestamp':1000,'extra':{'x':1}}`,
		`{'input_length':12,'output_length':3,'timestamp':2000}`,
	), Options{},
		`0s session=a turn=0 after=[] user:"Hello" out=4 completion`,
		`5.5ms session=b turn=0 after=[] tools=[{}] user:"q" out=2 chat`,
		`1.0055s session=b turn=1 after=[1] user:"q" assistant:"r" user:"s" out=2 chat think=1s`,
		`1s model=m tools=[{}] user:"p" max=50 temperature=0.5 stream=true chat`,
		`1s user:"p" completion`,
		`2s in=12 out=3`)
	if info.Format != "aiperf" || !info.HasText || info.BlockSize != 0 || info.BlocksHashed {
		t.Errorf("%+v", info)
	}
	notesAre(t, info, noteEarly+"1",
		noteUnread+"1")
	wantBad(t, rowsOf(`{'text_input':5,'timestamp':0}`), Options{}, "log:1:15: prompt:")
	wantBad(t, rowsOf(`{'timestamp':0}`), Options{Format: "aiperf"}, "log:1:1: input_tokens is missing")
	wantBad(t, rowsOf(`{'text_input':'x','timestamp':0}`, `{'timestamp':0}`), Options{}, "log:2:1: it has neither a prompt nor the length of one")
}

// Texts of one session may be all of the prompt or what is new, and messages are
// all of it unless their mode says otherwise.
func TestAIPerfTextDeltas(t *testing.T) {
	text := rowsOf(`{'session_id':'a','timestamp':0,'text_input':'one'}`, `{'session_id':'a','delay':2,'text_input':'two'}`)
	wantBad(t, text, Options{}, "log:2:42: the rows of a session may hold")
	reads(t, text, Options{Rows: "full"}, `0s session=a turn=0 after=[] user:"one" completion`, `2ms session=a turn=1 after=[0] user:"two" completion think=2ms`)
	info := reads(t, text+rowsOf(`{'session_id':'a','text_input':'three'}`), Options{Rows: "delta"},
		`0s session=a turn=0 after=[] user:"one" completion`,
		`2ms session=a turn=1 after=[0] user:"one" user:"two" completion think=2ms`,
		`2ms session=a turn=2 after=[1] user:"one" user:"two" user:"three" completion`)
	notesAre(t, info, noteReplies+"2", noteEarly+"2")
	message := rowsOf(`{'session_id':'a','timestamp':0,'message_mode':'delta','messages':[{'role':'user','content':'x'}]}`)
	wantBad(t, message, Options{}, "log:1:48: the rows of a session may hold")
	reads(t, message, Options{Rows: "delta"}, `0s session=a turn=0 after=[] user:"x" chat`)
}

// AIPerf's own rows of lengths and ids are read under its name as well.
func TestAIPerfLengths(t *testing.T) {
	info := reads(t, rowsOf(`{'session_id':'a','timestamp':5,'input_length':513,'output_length':4,'hash_ids':[1,2]}`), Options{Format: "aiperf"},
		"5ms session=a turn=0 after=[] in=513 out=4 blocks=[1 2]")
	if info.HasText || info.BlockSize != 512 {
		t.Errorf("%+v", info)
	}
}

// The Texts of a session are one, so that what follows can tell it.
func TestDialectSharesSessions(t *testing.T) {
	all, _ := mustRead(t, traceFixtures["dynamo"], Options{})
	if all[0].Session != all[1].Session || all[0].Session == all[2].Session {
		t.Error("the session of two turns is not one Text")
	}
	if s := fmt.Sprintf("%+v", all); strings.Contains(s, "r1") || all[2].Session != (trace.Text{}) {
		t.Error("an entry shows its ids")
	}
}
