# Kelpie. Plain make: nothing here needs more than GNU make 3.81 and POSIX tools.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

help: ## list the targets
	@echo "make TARGET:"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1@\2/p' Makefile | awk -F@ '{ printf "  %-14s %s\n", $$1, $$2 }'

build: need-go ## build bin/kelpie
	CGO_ENABLED=0 go build -o bin/kelpie ./cmd/kelpie

demo: need-go ## three nodes, real webhooks, two kill -9, nothing lost (ARGS="--json")
	@test -x bin/kelpie || echo "Building bin/kelpie: the first time takes a minute." >&2
	@CGO_ENABLED=0 go build -o bin/kelpie ./cmd/kelpie
	@exec bin/kelpie demo $(ARGS)

test: need-go ## all tests; finds, runs or installs a Redis (NO_INSTALL=1: it does not; KELPIE_TEST_LONG=1: full sizes)
	@sh .ci/test.sh $(ARGS)

race: need-go ## the same, and insists on the race detector
	@RACE=1 sh .ci/test.sh $(ARGS)

lint: need-go ## vet (macOS and arm64 too), staticcheck, gofmt, the house rules
	go vet ./...
	GOOS=darwin CGO_ENABLED=0 go vet ./...
	GOARCH=arm64 CGO_ENABLED=0 go vet ./...
	go run $(STATICCHECK) -checks inherit,-ST1005 ./... # Redis is a name and keeps its capital in errors
	@files=`gofmt -l $$(git ls-files '*.go')` && test -z "$$files" || { echo "make fmt is needed:" $$files; exit 1; }
	go test ./chaos/house

fmt: need-go ## format the Go files
	gofmt -w $$(git ls-files '*.go')

bench: need-go ## the benchmarks, each beside its reference (ARGS="-benchtime 5s")
	@sh .ci/test.sh -run '^$$' -bench . $(ARGS) ./...

chaos: need-go ## kill -9 until 15 have hit running jobs, 5 nodes, 20,000 jobs (ARGS="--seed 7")
	@sh .ci/chaos.sh kills $(ARGS)

chaos-short: need-go ## faults of all kinds, two minutes (ARGS="--seed 7 --report DIR")
	@sh .ci/chaos.sh mixed $(ARGS)

chaos-selftest: need-go ## each planted bug must be found, and a sound build pass (ARGS="-some 6")
	@sh .ci/chaos.sh selftest $(ARGS)

model: ## search the Promela models with spin (ARGS="--short", or a name)
	@sh chaos/model/search.sh $(ARGS)

need-go:
	@sh .ci/go.sh

.PHONY: help build demo test race lint fmt bench chaos chaos-short chaos-selftest model need-go
