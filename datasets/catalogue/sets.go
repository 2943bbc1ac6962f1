package catalogue

import (
	_ "embed"
	"strconv"
	"strings"
)

// Commits and releases that the files are of.
const (
	mooncake = "https://raw.githubusercontent.com/kvcache-ai/Mooncake/3b5a594133958449a1feaf1c9e0fc1b553e34a28/FAST25-release/"
	azure    = "https://raw.githubusercontent.com/Azure/AzurePublicDataset/b469a113cedca53ddc3bdea71a143dc4b7d8700c/data/"
	azure24  = "https://azurepublicdatasettraces.blob.core.windows.net/azurellminfererencetrace/" // spelled so
	bailian  = "https://media.githubusercontent.com/media/alibaba-edu/qwen-bailian-usagetraces-anon/5f7439c51ec248a0c585f7d90a41a6f57773b912/"
	burstgpt = "https://github.com/HPMLL/BurstGPT/releases/download/v2.0/"
	tracelab = "https://github.com/uw-syfi/TraceLab/releases/download/v0.0.1/"
	agents   = "https://raw.githubusercontent.com/uw-syfi/TraceLab/0b8a262ba69602869133b65972d51a388bde45e1/example_sessions/sanitized/"
	servegen = "https://raw.githubusercontent.com/alibaba/ServeGen/f891d1189eb32b3868dfc443800c4150548c282a/data/reason/deepseek-r1/"
	weka     = "https://huggingface.co/datasets/semianalysisai/cc-traces-weka-062126"
)

// Sets is the list, by family.
func Sets() []Set {
	return append(mooncakeSets(), append(azureSets(), otherSets()...)...)
}

func mooncakeSets() []Set {
	set := func(name, about string, rows int64, sums Evidence, path string, f File) Set {
		f.Name, f.URL = name+".jsonl", mooncake+path
		return Set{Name: name, About: about, Format: "mooncake", License: "Apache-2.0", Rows: rows,
			Of: "requests", Sums: sums,
			Page: "https://github.com/kvcache-ai/Mooncake/tree/main/FAST25-release",
			Cite: "Qin et al., Mooncake, FAST 2025", Files: []File{f}}
	}
	toolagent := set("mooncake-toolagent", "an hour of Kimi's tools and agents, with ids of 512-token prefix blocks",
		23_608, Committed, "traces/toolagent_trace.jsonl",
		File{SHA256: "48a2db1a13d3bc05e6330140c64f604ba366df20d3c9e128b5c35a01c1fa5f71",
			GitBlob: "b765599d1e0828b37f68d481563c385d3c11de54"})
	toolagent.Note = "The Git blob id is of the commit; the SHA-256 is the one that other public repositories state."
	return []Set{
		set("mooncake-conversation", "an hour of Kimi's chat, with ids of 512-token prefix blocks", 12_031, Computed,
			"traces/conversation_trace.jsonl",
			File{Size: 3_029_533, SHA256: "b8cbb061a85206d729d91cdc2981f43c9e0d99209dce588d3af5f7934408b9df",
				GitBlob: "5a371794b81d7fc7487ec8a02a2c631bcc7fbdf8"}),
		toolagent,
		set("mooncake-synthetic", "made of public data sets, Poisson arrivals, with ids of 512-token prefix blocks",
			3_993, Computed, "traces/synthetic_trace.jsonl",
			File{Size: 1_136_313, SHA256: "bd070915a98fc0ed264d7cfef2ce746002eb3076a695ec31ba2674c0111ec131",
				GitBlob: "e4838049c0dcfc358a5f24ab08251279475cba94"}),
	}
}

func azureSets() []Set {
	set := func(name, about, format string, rows int64, sums Evidence, page, cite string, f File) Set {
		return Set{Name: name, About: about, Format: format, License: "CC-BY-4.0", Rows: rows,
			Of: "requests", Sums: sums,
			Page: "https://github.com/Azure/AzurePublicDataset/blob/master/" + page, Cite: cite, Files: []File{f}}
	}
	const splitwise, dynamo = "Patel et al., Splitwise, ISCA 2024", "Stojkovic et al., DynamoLLM, HPCA 2025"
	return []Set{
		set("azure-2023-code", "an hour of a coding service: times and lengths", "azure-2023", 8_819, Computed,
			"AzureLLMInferenceDataset2023.md", splitwise,
			File{Name: "azure-2023-code.csv", URL: azure + "AzureLLMInferenceTrace_code.csv", Size: 320_117,
				SHA256:  "54e9a6d2a4bd06ba1e060304b900abbc74cbea53de96506e60fe5bb4f2277fb6",
				GitBlob: "62bd8109d0f2b1bc48206d397ecca48d8de03aab"}),
		set("azure-2023-conv", "an hour of a chat service: times and lengths", "azure-2023", 19_366, Computed,
			"AzureLLMInferenceDataset2023.md", splitwise,
			File{Name: "azure-2023-conv.csv", URL: azure + "AzureLLMInferenceTrace_conv.csv", Size: 719_188,
				SHA256:  "2f1e5b666d4e3055fdbba98598ce2ec307767b9064e03e2fa46676dbcc7d0bf8",
				GitBlob: "5b9219f2caf93bbbf95ec29894e206115658e235"}),
		set("azure-2024-code", "a week of a coding service: times and lengths", "azure-2024", 0, Unknown,
			"AzureLLMInferenceDataset2024.md", dynamo,
			File{Name: "azure-2024-code.csv", URL: azure24 + "AzureLLMInferenceTrace_code_1week.csv"}),
		set("azure-2024-conv", "a week of a chat service: times and lengths", "azure-2024", 0, Unknown,
			"AzureLLMInferenceDataset2024.md", dynamo,
			File{Name: "azure-2024-conv.csv", URL: azure24 + "AzureLLMInferenceTrace_conv_1week.csv"}),
		set("azure-2025-multimodal", "a week of a multimodal service: times, lengths and images", "azure-2025", 0,
			Committed, "AzureLMMInferenceDataset2025.md", "Qiu et al., ModServe, SoCC 2025",
			File{Name: "azure-2025-multimodal.csv.gz", URL: azure + "AzureLMMInferenceTrace_multimodal.csv.gz",
				GitBlob: "7e2a6719ff42dc50b990ba55ca941ab75290ffcb"}),
	}
}

func otherSets() []Set {
	qwen := func(name, about, file string, rows int64, sums Evidence, size int64, sum string) Set {
		return Set{Name: name, About: about, Format: "bailian", License: "Apache-2.0", Rows: rows,
			Of: "requests", Sums: sums,
			Page:  "https://github.com/alibaba-edu/qwen-bailian-usagetraces-anon",
			Cite:  "Wang et al., KVCache Cache in the Wild, USENIX ATC 2025",
			Files: []File{{Name: name + ".jsonl", URL: bailian + file, Size: size, SHA256: sum}}}
	}
	burst := func(name, about, file string, rows int64, sums Evidence, size int64, sum string) Set {
		return Set{Name: name, About: about, Format: "burstgpt", License: "CC-BY-4.0", Rows: rows, Of: "requests",
			Sums: sums, Import: "--allow-long-span",
			Page: "https://github.com/HPMLL/BurstGPT", Cite: "Wang et al., BurstGPT, KDD 2025",
			Note:  "The number of requests is rounded, as the publisher states it.",
			Files: []File{{Name: name + ".csv", URL: burstgpt + file, Size: size, SHA256: sum}}}
	}
	claude := func(name, about, page, revision string, size int64, sum string) Set {
		return Set{Name: name, About: about, Format: "weka", License: "Apache-2.0", Rows: 393, Of: "sessions",
			Sums: Quoted, Page: page, Cite: page, Import: "--arrivals poisson:0.1",
			Note: "Times count from the begin of each session: --arrivals starts the sessions, here one every 10 s " +
				"on average.",
			Files: []File{{Name: name + ".jsonl", URL: page + "/resolve/" + revision + "/traces.jsonl",
				Size: size, SHA256: sum}}}
	}
	const lab = "https://github.com/uw-syfi/TraceLab"
	return []Set{
		qwen("bailian-consumer", "two hours of chat with consumers, with ids of 16-token prefix blocks",
			"qwen_traceA_blksz_16.jsonl", 43_058, Quoted, 56_354_493,
			"07cedc9ed8aff301994ac68ed4aede8123b7603673575eeba9dd677de663db17"),
		qwen("bailian-business", "two hours of API calls of businesses, with ids of 16-token prefix blocks",
			"qwen_traceB_blksz_16.jsonl", 172_800, Quoted, 96_209_982,
			"68e3f98e2d601d60d0abf4b89bc8a3654372abab7b1cde6373a13d0054379d59"),
		qwen("bailian-thinking", "a reasoning model, with ids of 16-token prefix blocks",
			"qwen_thinking_blksz_16.jsonl", 10_812, Committed, 27_901_454,
			"41ac36d9d1b54d084eeb6b05e9d142ba9d02f8bf79cfc9fff418d8ab7cdee906"),
		qwen("bailian-coder", "a coding model, with ids of 16-token prefix blocks", "qwen_coder_blksz_16.jsonl", 43_011,
			Committed, 132_054_902, "3d74974cebb7bccb69b1ca6ea210a44d9a3033443c0271ed015327284dea1aff"),
		burst("burstgpt-1", "months 1 and 2 of GPT-3.5 and GPT-4 at a university", "BurstGPT_1.csv", 1_429_700,
			Committed, 52_283_111, "4bb3783693d0a435686fbfc885615d2349bd067239079fa4b749f2e679e12122"),
		burst("burstgpt-2", "months 3 and 4 of GPT-3.5 and GPT-4 at a university", "BurstGPT_2.csv", 3_858_400,
			Committed, 144_819_209, "44bf5942b03fca42c01a226a545ad3a750ec62688faecd67b6831c56a8928bf7"),
		burst("burstgpt-3", "110 later days of GPT-3.5 and GPT-4 at a university, with sessions", "BurstGPT_3.csv",
			5_344_000, Quoted, 231_682_327, "2299986a07388aa303ec2c41d1131e756db650a39ed6ef9dfe7cc3d7f9a43b8f"),
		{Name: "servegen-r1", About: "73 clients of DeepSeek-R1, by rates and lengths of each", Format: "servegen",
			License: "Apache-2.0", Of: "requests", Sums: Computed,
			Page: "https://github.com/alibaba/ServeGen", Cite: "Xiang et al., ServeGen, arXiv 2505.09999",
			Note:  "146 files in a folder of its name. Import draws the requests of the clients.",
			Files: serveGenFiles()},
		{Name: "tracelab", About: "sessions of Claude Code and Codex of 43 developers", Format: "tracelab",
			License: "CC-BY-4.0", Rows: 357_161, Of: "requests", Sums: Published,
			Page: lab, Cite: lab, Import: "--allow-long-span",
			Files: []File{{Name: "tracelab.jsonl.gz", URL: tracelab + "syfi_coding_trace.jsonl.gz", Size: 53_601_226,
				SHA256: "9d265eae69a31cae203848bea936f018148eed7ca8bf56050c5abe96da0b4e6b"}}},
		{Name: "tracelab-example", About: "a few rounds of the same, to try", Format: "tracelab", License: "CC-BY-4.0",
			Rows: 19, Of: "requests", Sums: Computed,
			Page: lab, Cite: lab, Import: "--allow-long-span",
			Files: []File{{Name: "tracelab-example.jsonl", URL: agents + "round_trace.jsonl", Size: 32_960,
				SHA256:  "314c49483148fe68e230a683f739e3e6e68d478948ecf342739596f30af36b57",
				GitBlob: "e1a6e26a362d34b7d9cecfeebf603a6e95828880"}}},
		claude("cc-traces-weka", "sessions of Claude Code with subagents; the data set of AgentX", weka,
			"23f152f6f0f9399a85901b89a6458def0ef16729", 1_847_151_435,
			"29b6a19e751ff5230771519aab755f80a0f43a4ba9cf96b72d3a6a437ec99276"),
		claude("cc-traces-weka-256k", "the same without requests above 256,000 tokens", weka+"-256k",
			"8fecd2fc56694469f758f0afbbb6335ad3043740", 568_864_747,
			"e39cd2ff3eba21d4a3664be51da743ac3d2149a1933898cafc7bfeac8147eeef"),
	}
}

// serveGenSums has the SHA-256, the size and the name of each file of a pool, a line each.
//
//go:embed servegen-deepseek-r1.sums
var serveGenSums string

func serveGenFiles() (files []File) {
	for line := range strings.Lines(serveGenSums) {
		if part := strings.Fields(line); len(part) == 3 {
			size, _ := strconv.ParseInt(part[1], 10, 64) // a test reads all of them
			files = append(files, File{Name: part[2], URL: servegen + part[2], Size: size, SHA256: part[0]})
		}
	}
	return files
}
