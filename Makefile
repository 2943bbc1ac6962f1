# Everything but docs, peers-race and test-peers needs Go 1.26 and nothing else; modules are fetched once,
# then all of it works offline.
GO ?= go
# The same flags for build, tests and linters, so that they share what is compiled.
export GOFLAGS += -trimpath
export CGO_ENABLED ?= 0
# With fewer collections of garbage, vet and staticcheck take a tenth to a fifth less CPU time. Tests have the
# usual number: some measure memory.
lint: export GOGC ?= 300
BIN := bin/reprise
VERSION := $(shell git describe --tags --always --dirty --abbrev=12 2>/dev/null || echo unversioned)

.PHONY: help demo docs test lint test-engines bench build release release-test race peers-race test-peers reprise-beam test-beam reprise-cloud test-clouds fuzz clean

demo: build ## run the main job on the embedded log, to demo/report.html
	@$(BIN) demo -o demo

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-12s %s\n", $$1, $$2}' Makefile

# cmd/reprise waits for half of its time. So its tests run as two processes, by their names, beside the other packages;
# what they all link is built before, since processes that begin together each build it. The other packages collect
# garbage a third as often, which takes a tenth to a sixth of their time: cmd/reprise does so itself, as the commands that
# it starts are to use memory as for a user, and replay/client measures its own memory.
test: ## all tests; REPRISE_TEST_LONG=1 runs the long ones too
	@$(GO) build ./...
	@{ for half in run skip; do echo "$(GO) test -vet=off -timeout 20m -$$half ^Test[A-M] ./cmd/reprise"; done; \
	echo "GOGC=300 $(GO) test -vet=off -timeout 20m $$($(GO) list ./... | grep -vE '/(cmd/reprise|replay/client)$$' | xargs)"; \
	echo "$(GO) test -vet=off -timeout 20m ./replay/client"; } | xargs -P 3 -L 1 env
	@echo "not tested: cmd/reprise-beam, a module of its own that links Beam: make test-beam"

lint: ## vet, gofmt, staticcheck (pinned in go.mod) and the rules of codecheck
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) run ./cmd/internal/codecheck

build: ## one static binary
	@echo building $(BIN)
	@$(GO) build -ldflags '-s -w -X reprise/cmd/reprise/internal/cli.Version=$(VERSION)' -o $(BIN) ./cmd/reprise

release: ## archives, wheels, SBOMs and image, to dist/; with MODULE=host/owner/reprise what is published there too
	$(GO) run ./cmd/internal/release -o dist -module '$(MODULE)'

release-test: release ## run what can be run of dist/ here, and look into the rest
	REPRISE_TEST_DIST=$(CURDIR)/dist $(GO) test -count=1 -v -run Dist ./cmd/internal/release
	REPRISE_TEST_RELEASE=1 $(GO) test -count=1 -v -timeout 30m -run 'Dist|Source' ./cmd/internal/release

bench: ## every Go benchmark, once
	$(GO) test -run '^$$' -bench . -benchtime 1s ./...

test-engines: ## against real engines, named by REPRISE_TEST_ENGINES; see docs/engines.md
	@test -n "$(REPRISE_TEST_ENGINES)$(REPRISE_TEST_ENGINE_SCRIPT)$(REPRISE_TEST_ENGINE_SERVE)" || { echo "set REPRISE_TEST_ENGINES, such as vllm=http://localhost:8000"; exit 2; }
	$(GO) test -count=1 -timeout 60m -v -run '^TestEngine(s|Caching|Killed|ServeCommand)$$' ./cmd/reprise

# Nothing can race in a package without goroutines and locks (a sync.Once alone is none), nor in a test that computes in
# one goroutine: those that take seconds are named after -skip. Of packages with slow tests, only the tests that send,
# serve, generate or share something among goroutines.
# The second group waits for most of its time, so that the three run beside each other.
race: ## the tests under the race detector
	@CGO_ENABLED=1 $(GO) build -race ./...
	@{ echo "-skip KnownCosts|PresetFit|EngineProperties|EqualsNaive|OpenAndClosedLoop|RooflineAgainst|BlockKeysAreAMap|MergeIsTheWhole|AIPerfWaitsOfAny $$(grep -rlE '\bgo func|\.Go\(|sync\.[^O]' --include='*.go' . | xargs -n1 dirname | sort -u | grep -vE '^./(anonymize|anonymize/audit|cmd/internal/codecheck|cmd/reprise|cmd/reprise-beam|datasets|replay/bench|replay/report|synth|synth/fidelity|synth/prompt|trace|trace/profile|trace/token)$$' | xargs)"; \
	echo '-run Replay|Serve|Live|Admin|Interrupt|Sweep|Compare|Demo|Record|ConcurrentUse ./cmd/reprise ./replay/report ./trace/profile'; \
	echo '-run Concurrent|TestChecker$$|Generate|SideBySide|Recorded|Partition|Pass|WorkloadRows|FunctionOfModelAndSeed|Game|Felt|TestLines$$|TestServed|SweepByLiveSessions ./anonymize ./anonymize/audit ./datasets ./replay/bench ./synth ./synth/fidelity ./synth/prompt ./trace ./trace/token'; } | \
	CGO_ENABLED=1 xargs -P 3 -L 1 $(GO) test -race -vet=off -timeout 20m

# Needs Python and, once, examples/race/setup.sh, which fetches the peers into RACE_DIR.
RACE_DIR ?= .race
RACE_FLAGS ?=
peers-race: build ## Reprise beside four other clients on one trace; see examples/race/README.md
	$(GO) build -o bin/truth ./examples/race/truth
	@python3 examples/race/race.py --dir $(RACE_DIR) $(RACE_FLAGS)

# The newest releases, in a folder apart from the raced ones. Without Python or the network
# nothing is tested, and make test never needs it.
PEERS_DIR ?= .peers
test-peers: ## each export through the tool that it is for, and command lines beside ours, against reprise serve
	@if RELEASES=current examples/race/setup.sh $(PEERS_DIR); then \
	  for p in aiperf guidellm inference-perf; do $(PEERS_DIR)/$$p/bin/python -c "import importlib.metadata as m; print('$$p', m.version('$$p'))"; done; \
	  REPRISE_TEST_PEERS=$(abspath $(PEERS_DIR)) $(GO) test -count=1 -v -timeout 60m -run ByPeers ./cmd/reprise; \
	else echo "test-peers: skipped: the tools could not be installed; it needs Python 3.12 and a package index"; fi

# A module of its own, since it links Beam: make test neither builds nor tests it.
reprise-beam: ## bin/reprise-beam, the import on Flink, Spark or Dataflow
	cd cmd/reprise-beam && $(GO) build -ldflags '-s -w -X reprise/cmd/reprise/internal/cli.Version=$(VERSION)' -o ../../bin/reprise-beam .

test-beam: ## the tests of cmd/reprise-beam, on Prism
	cd cmd/reprise-beam && $(GO) vet ./... && $(GO) test -timeout 20m ./...

# Needs Python and, at the first time, a package index.
docs: ## the pages of docs/ as a site with search, to dist/docs; a broken link is an error
	@test -x .docs/bin/mkdocs || { python3 -m venv .docs && .docs/bin/pip install -q mkdocs-material==9.8.2; }
	@NO_MKDOCS_2_WARNING=1 .docs/bin/mkdocs build --strict -f docs/site/mkdocs.yml

# It links the clients of three clouds, 35 MB: make build leaves them out.
reprise-cloud: ## bin/reprise-cloud, reprise for s3://, gs:// and az:// too
	@$(GO) build -tags clouds -ldflags '-s -w -X reprise/cmd/reprise/internal/cli.Version=$(VERSION)' -o $(BIN)-cloud ./cmd/reprise

test-clouds: ## the tests of object stores, against a server of S3 that they start
	$(GO) vet -tags clouds ./trace/objectstore ./cmd/reprise
	$(GO) test -tags clouds ./trace/objectstore
	$(GO) test -tags clouds -timeout 20m -run '^TestStore' ./cmd/reprise

# Two packages at a time, since building a target takes longer than a second of fuzzing. With FUZZGUIDE empty
# coverage guides nothing, which a moment cannot use, and no package is built a second time for it.
FUZZTIME ?= 5s
FUZZGUIDE ?= -fuzz .
fuzz: ## every fuzz target for $(FUZZTIME)
	@grep -rl '^func Fuzz' --include='*_test.go' . | xargs -n1 dirname | sort -u | \
	GO='$(GO)' xargs -P 2 -I DIR .ci/fuzz DIR $(FUZZTIME) $(FUZZGUIDE)

clean: ## remove what the targets above wrote, but not RACE_DIR
	rm -rf bin demo dist
