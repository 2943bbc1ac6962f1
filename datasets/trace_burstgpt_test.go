package datasets

import "testing"

func TestBurstGPTRows(t *testing.T) {
	info := reads(t, "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"+
		"5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,1087,0,1087,API log\n118,ChatGPT,0,0,0,Conversation log\n", Options{},
		"5s model=ChatGPT class=Conversation log in=472 out=18",
		"45s model=GPT-4 class=API log in=1087 out=0 failed",
		"1m58s model=ChatGPT class=Conversation log in=0 out=0 failed")
	if info.Format != "burstgpt" || info.TimeUnit != "s" || info.HasSessions || info.HasUsers || info.HasText || info.BlockSize != 0 {
		t.Errorf("%+v", info)
	}
	notesAre(t, info)
}

// Newer files have the session, which requests by API have not, and the time to
// the whole response, with the columns in any order.
func TestBurstGPTLaterColumns(t *testing.T) {
	const want0 = "5.5s session=17 model=ChatGPT class=Conversation log in=472 out=18 e2e=1.25s"
	const want1 = "6s model=GPT-4 class=API log in=9 out=0 failed e2e=20s"
	info := reads(t, "Log Type,Elapsed time,Session ID,Response tokens,Request tokens,Model,Timestamp\n"+
		"Conversation log,1.25,17,18,472,ChatGPT,5.5\nAPI log,20,,0,9,GPT-4,6\n", Options{}, want0, want1)
	if !info.HasSessions || info.TimeUnit != "s" {
		t.Errorf("%+v", info)
	}
	reads(t, "Timestamp,SessionID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"+
		"5.5,17,1.25,ChatGPT,472,18,490,Conversation log\n6,,20,GPT-4,9,0,9,API log\n", Options{}, want0, want1)
	reads(t, "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,,472,18,490,\n", Options{}, "5s in=472 out=18")
}

func TestBurstGPTFaults(t *testing.T) {
	const head = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type,Elapsed time\n"
	for row, want := range map[string]string{
		"5,m,-1,18,490,x,":   "log:2:5: input_tokens: want a whole number",
		"5,m,1,1.5,490,x,":   "log:2:7: output_tokens: want a whole number",
		"5,m,1,,490,x,":      "log:2:1: output_tokens is missing",
		",m,1,1,490,x,":      "log:2:1: it has no time",
		"day,m,1,1,490,x,":   "log:2:1: time: want",
		"5,m,1,1,490,x,fast": "log:2:15: e2e_s: want a number",
		"5,m,1,1":            "log:2:1: the row has fewer fields",
	} {
		wantBad(t, head+row+"\n", Options{}, want)
	}
	wantBad(t, "Timestamp,Request tokens,Response tokens\n5,1,1\n", Options{Format: "burstgpt"}, "log:1:1: the header has no column for")
	wantBad(t, head+"0,m,1,1,1,x,\n10500000,m,1,1,1,x,\n", Options{}, "log:3:1: in the unit s the times up to here span more than 60 days")
	reads(t, head+"0,m,1,1,1,x,\n10500000,m,1,1,1,x,\n", Options{AllowLongSpan: true}, "0s model=m class=x in=1 out=1", "2916h40m0s model=m class=x in=1 out=1")
}
