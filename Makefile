# insightscli. The two commands a newcomer needs: make quickstart, make test.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := build

GOLANGCI := v2.12.2
GORELEASER := v2.15.1
ACT := v0.2.89

version := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
commit := $(shell git rev-parse HEAD 2>/dev/null)
date := $(shell git log -1 --format=%cI 2>/dev/null)
pkg := github.com/Insights/insightscli/internal/build
ldflags := -s -w -X $(pkg).Version=$(version) -X $(pkg).Commit=$(commit) -X $(pkg).Date=$(date)
embedded := internal/agentserver/embedded

export CGO_ENABLED ?= 0
# The race detector needs cgo and a C compiler; a machine with Go alone goes without.
race := $(shell command -v $${CC:-cc} >/dev/null 2>&1 && echo -race)
arch := $(shell go env GOHOSTARCH)

.PHONY: quickstart
quickstart: ## Build, then run one real task in a sandbox on this repository
	@echo "building insightscli for this machine (the first time: a minute or two)"
	@$(MAKE) --no-print-directory bin/insightscli ARCHES=$(arch) VERBOSE=-v
	@test/quickstart bin/insightscli

.PHONY: test
test: ## Set up what the tests need and pass them
	@$(MAKE) --no-print-directory bin/insightscli ARCHES=$(arch)
	set -a; eval "$$(.ci/agents cached)"; eval "$$(.ci/collector cached)"; set +a; \
	CGO_ENABLED=$(if $(race),1,0) go test $(race) -shuffle=on -timeout 20m ./...

.PHONY: e2e
e2e: ## Drive the real agents, fetched once, against a model with a script
	@$(MAKE) --no-print-directory bin/insightscli ARCHES=$(arch)
	agents=$$(.ci/agents) && set -a && eval "$$agents" && set +a && \
	go test -count=1 -parallel 2 -timeout 20m ./test/e2e

.PHONY: build
build: ## Build bin/insightscli with the agent server for both platforms inside
	@$(MAKE) --no-print-directory bin/insightscli ARCHES="amd64 arm64"

# The agent server is small and static, and is embedded in the CLI gzipped.
ARCHES ?= $(arch)
.PHONY: bin/insightscli
bin/insightscli: $(ARCHES:%=agent-server-%)
	go build $(VERBOSE) -trimpath -ldflags '$(ldflags)' -o $@ ./cmd/insightscli

.PHONY: agent-server-%
agent-server-%:
	@mkdir -p bin
	GOOS=linux GOARCH=$* go build $(VERBOSE) -trimpath -ldflags '$(ldflags)' -o bin/insights-agent-server-$* ./cmd/insights-agent-server
	@gzip -9 -n -c bin/insights-agent-server-$* > $(embedded)/insights-agent-server-linux-$*.gz
	@{ sha256sum 2>/dev/null || shasum -a 256; } < $(embedded)/insights-agent-server-linux-$*.gz | cut -d' ' -f1 > $(embedded)/insights-agent-server-linux-$*.gz.sha256

.PHONY: lint
lint: ## Format, vet and lint
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "not gofmt'd:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	go vet ./...
	GOOS=darwin go vet ./...
	GOOS=windows go vet ./...
	@# A cache of its own: a shared one answers with the paths of another checkout.
	GOLANGCI_LINT_CACHE=$(CURDIR)/.cache/golangci-lint $$(.ci/tool golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI)) run

.PHONY: release-check
release-check: ## Check the release configuration
	$$(.ci/tool goreleaser github.com/goreleaser/goreleaser/v2@$(GORELEASER)) check

.PHONY: generate
generate: ## Regenerate what is generated: README tables, seccomp programs, help goldens
	go generate ./...
	UPDATE_GOLDEN=1 go test ./internal/cli ./internal/render -run 'Golden|Help|README' -count=1

.PHONY: bench
bench: ## Measure against yardsticks in the same run and print a table
	@$(MAKE) --no-print-directory bin/insightscli ARCHES=$(arch)
	agents=$$(.ci/agents || true) && eval "$$agents" && \
	go run ./bench -act "$$(.ci/tool act github.com/nektos/act@$(ACT) || true)" \
		-claude "$$INSIGHTSCLI_TEST_CLAUDE" -codex "$$INSIGHTSCLI_TEST_CODEX"

.PHONY: docs
docs: ## Completions and man pages into dist/
	go run ./internal/cli/docsgen dist $(date)

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist $(embedded)/*.gz $(embedded)/*.gz.sha256

.PHONY: help
help: ## This list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'
