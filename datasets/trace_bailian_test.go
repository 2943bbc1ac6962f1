package datasets

import (
	"strings"
	"testing"
)

func TestBailianRows(t *testing.T) {
	info := reads(t, rowsOf(
		`{'chat_id':5,'parent_chat_id':-1,'timestamp':0,'input_length':33,'output_length':3,'type':'text','turn':1,'hash_ids':[0,1,2]}`,
		`{'chat_id':6,'parent_chat_id':900,'timestamp':0.25,'input_length':16,'output_length':3,'type':'image','turn':4,'hash_ids':[7]}`,           // its parent came before the trace
		`{'chat_id':7,'parent_chat_id':5,'timestamp':61.114,'input_length':40,'output_length':3,'type':'search','turn':2,'hash_ids':[0,1,8]}`,      // a child
		`{'chat_id':8,'parent_chat_id':5,'timestamp':62,'input_length':50,'output_length':3,'type':'thinking','turn':2,'hash_ids':[0,1,9,10]}`,     // a second child: a branch
		`{'chat_id':9,'parent_chat_id':7,'timestamp':63,'input_length':50,'output_length':3,'type':'file','turn':3,'hash_ids':[0,11,12,13]}`,       // a grandchild, of which thinking was stripped
		`{'chat_id':10,'parent_chat_id':900,'timestamp':64,'input_length':16,'output_length':3,'type':'text','turn':5,'hash_ids':[7]}`,             // of the same lost parent
		`{'chat_id':11,'timestamp':64,'input_length':32,'output_length':3,'turn':1,'hash_ids':[20,21,22]}`,                                         // a block of padding; no parent is a root
		`{'chat_id':12,'parent_chat_id':11,'timestamp':65,'input_length':35,'output_length':3,'type':'text','turn':2,'hash_ids':[20,21]}`,          // no id for the rest
		`{'chat_id':13,'parent_chat_id':13,'timestamp':66,'input_length':0,'output_length':0,'type':'text','turn':1,'hash_ids':[],'model':'x'}`,    // its own parent
		`{'chat_id':14,'parent_chat_id':15,'timestamp':67,'input_length':0,'output_length':0,'type':'text','turn':2,'hash_ids':[]}`,                // before its parent
		`{'chat_id':15,'parent_chat_id':-1,'timestamp':68,'input_length':0,'output_length':0,'type':'text','turn':1,'hash_ids':[],'turns':'many'}`, // the parent
	), Options{},
		"0s session=5 class=text turn=0 after=[] in=33 out=3 blocks=[0 1 2]",
		"250ms session=900 class=image turn=3 after=[] in=16 out=3 blocks=[7]",
		"1m1.114s session=5 class=search turn=1 after=[0] in=40 out=3 blocks=[0 1 8]",
		"1m2s session=5 class=thinking turn=1 after=[0] in=50 out=3 blocks=[0 1 9 10]",
		"1m3s session=5 class=file turn=2 after=[2] in=50 out=3 blocks=[0 11 12 13]",
		"1m4s session=900 class=text turn=4 after=[] in=16 out=3 blocks=[7]",
		"1m4s session=11 turn=0 after=[] in=32 out=3 blocks=[20 21]",
		"1m5s session=11 class=text turn=1 after=[6] in=35 out=3 blocks=[20 21 9223372036854775808]",
		"1m6s session=13 class=text turn=0 after=[] in=0 out=0 blocks=[]",
		"1m7s session=15 class=text turn=1 after=[] in=0 out=0 blocks=[]",
		"1m8s session=15 class=text turn=0 after=[] in=0 out=0 blocks=[]")
	if info.Format != "bailian" || info.BlockSize != 16 || !info.BlocksHashed || info.TimeUnit != "s" || !info.HasSessions || info.HasText {
		t.Errorf("%+v", info)
	}
	notesAre(t, info, noteNoParent+": 4", notePadding+": 1", noteNoTail+": 1")
	all, _ := mustRead(t, traceFixtures["bailian"], Options{})
	if all[0].Session != all[1].Session {
		t.Error("the session of two turns is not one Text")
	}
}

// Seconds, with a fraction or without, unless another unit is told.
func TestBailianUnits(t *testing.T) {
	row := func(at string) string {
		return rowsOf(`{'chat_id':5,'timestamp':` + at + `,'input_length':0,'output_length':3,'turn':1,'hash_ids':[]}`)
	}
	reads(t, row("3"), Options{}, "3s session=5 turn=0 after=[] in=0 out=3 blocks=[]")
	reads(t, row("3000.5"), Options{TimeUnit: "ms"}, "3.0005s session=5 turn=0 after=[] in=0 out=3 blocks=[]")
}

func TestBailianFaults(t *testing.T) {
	const head = `{'chat_id':5,'parent_chat_id':-1,'timestamp':1,'output_length':3,'turn':1,`
	for row, want := range map[string]string{
		head + `'input_length':33,'hash_ids':[0]}`:                                                                   "log:1:1: its block ids",
		head + `'input_length':33,'hash_ids':[0,1,2,3,4]}`:                                                           "log:1:1: its block ids",
		head + `'input_length':32,'hash_ids':[0]}`:                                                                   "log:1:1: its block ids",
		head + `'input_length':16,'hash_ids':[9223372036854775808]}`:                                                 "log:1:104: " + reservedID,
		head + `'input_length':16}`:                                                                                  "log:1:1: blocks is missing",
		head + `'hash_ids':[]}`:                                                                                      "log:1:1: input_tokens is missing",
		strings.Replace(head, "'turn':1", "'turn':0", 1) + `'input_length':0,'hash_ids':[]}`:                         "log:1:73: turn: want a whole number from 1",
		strings.Replace(head, "_id':5", "_id':'x'", 1) + `'input_length':0,'hash_ids':[]}`:                           "log:1:12: chat_id: want a whole number",
		strings.Replace(head, "_id':-1", "_id':1.5", 1) + `'input_length':0,'hash_ids':[]}`:                          "log:1:31: parent_chat_id: want a whole number",
		strings.Replace(head, "'chat_id':5,", "", 1) + `'input_length':0,'hash_ids':[]}`:                             "log:1:1: chat_id: want a whole number",
		strings.Replace(head, "'timestamp':1,", "", 1) + `'input_length':0,'hash_ids':[]}`:                           "log:1:1: it has no time",
		strings.Replace(head, "'timestamp':1,", "'timestamp':-1,", 1) + `'input_length':0,'hash_ids':[],'type':'x'}`: "log:1:46: time: want a number",
	} {
		wantBad(t, rowsOf(row), Options{Format: "bailian"}, want)
	}
	// A row at fault is no parent.
	reads(t, rowsOf(head+`'input_length':33,'hash_ids':[0]}`,
		`{'chat_id':6,'parent_chat_id':5,'timestamp':2,'input_length':0,'output_length':3,'turn':2,'hash_ids':[]}`), Options{MaxBad: 0.5, Format: "bailian"},
		"2s session=5 turn=1 after=[] in=0 out=3 blocks=[]")
}
