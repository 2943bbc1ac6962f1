package token_test

import (
	"fmt"
	"log"

	"reprise/trace/token"
)

func Example() {
	tok, err := token.Open("o200k_base")
	if err != nil {
		log.Fatal(err)
	}
	ids := tok.Append(nil, "hello world")
	text, err := tok.AppendText(nil, ids)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ids, string(text))

	chat, err := token.OpenTemplate("chatml")
	if err != nil {
		log.Fatal(err)
	}
	prompt := chat.AppendMessage(nil, tok, "user", "hello world")
	prompt = chat.AppendGeneration(prompt, tok)
	fmt.Println(len(prompt), "tokens with the template around it")
	// Output:
	// [24912 2375] hello world
	// 24 tokens with the template around it
}

// The path of a model's tokenizer.json, or of the directory that it is in, may stand for the name of an encoding.
func ExampleOpenAny() {
	for _, name := range []string{"r50k_base", "path/to/model"} {
		tok, err := token.OpenAny(name)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(tok.Name(), tok.Append(nil, "hello world"))
	}
	// Output:
	// r50k_base [31373 995]
	// unknown tokenizer "path/to/model": want one of cl100k_base, o200k_base, p50k_base, r50k_base, or the path of a tokenizer.json or of the folder with it
}

// A text of words from Words has exactly as many tokens as it has words.
func ExampleEncoding_Words() {
	tok, err := token.Open("cl100k_base")
	if err != nil {
		log.Fatal(err)
	}
	words := tok.Words()
	var text string
	for i := range 5 {
		text += " " + words.Text[100*i]
	}
	fmt.Println(len(tok.Append(nil, text)), "tokens:"+text)
	// Output:
	// 5 tokens: th who rem well place
}
