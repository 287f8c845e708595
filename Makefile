# make help lists what there is.

FUZZTIME ?= 5s
COUNT    ?= 10
CHAOS    ?= 10m
CHURN    ?= 10m
SEEDS    ?= 2000
PAIRS    ?= 20000
PART     ?= 1/1

WORLDCASES ?= 20000

SEQUENCES ?= 50000
SEED      ?= 1
RUNS      ?= 20
DAMAGED   ?= 100000
MANAGERS  ?= 1000
FRAMES    ?= 5000000
WATCHES   ?= 3000000
LOSSES    ?= 50000
DAMAGES   ?= 100000

# The newest release that goes with the Go version of go.mod. It is kept out of
# go.mod so that users never see it. .ci/run reads it from here.
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.7.0

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## all tests in small sizes, but the long ones; without a real ZooKeeper some more are skipped
	go test ./...

.PHONY: test-real
test-real: ## all tests in full sizes, the long ones too, and the real ZooKeeper must be there
	ZKSYNC_REQUIRE_REAL=1 ZKSYNC_LONG=1 go test ./...

.PHONY: test-nested
test-nested: ## the nested modules: metrics, examples with dependencies of their own
	find . -mindepth 2 -name go.mod -printf '%h\n' | while read -r dir; do (cd "$$dir" && go vet ./... && go test ./...) || exit 1; done

.PHONY: lint
lint: ## gofmt, vet and staticcheck
	@test -z "$$(gofmt -l .)" || { echo "gofmt these:"; gofmt -l .; exit 1; }
	go vet ./...
	go run $(STATICCHECK) ./...

.PHONY: bench
bench: ## all benchmarks
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME
	.ci/fuzz $(FUZZTIME)

.PHONY: fuzz-nightly
fuzz-nightly: ## every fuzz target for a minute
	.ci/fuzz 1m

.PHONY: differential
differential: ## SEQUENCES random sequences on zkserver and a real server, from SEED on
	ZKSYNC_REQUIRE_REAL=1 ZKSYNC_DIFF_SEQUENCES=$(SEQUENCES) ZKSYNC_DIFF_SEED=$(SEED) \
		go test -v -count=1 -timeout 24h -run Random ./zksynctest/internal/differential

.PHONY: soak
soak: ## all tests COUNT times with the race detector
	ZKSYNC_LONG=1 go test -race -count=$(COUNT) -timeout 6h ./...
	# More threads than cores stop goroutines at other places.
	GOMAXPROCS=8 go test -count=$(COUNT) -timeout 6h ./session/... ./watch ./zksync/...

.PHONY: simulate
simulate: ## SEEDS seeds of workloads under faults, checked against models
	go test -v -count=1 -timeout 24h ./zksynctest/simulation -run '^TestSimulation$$' -seeds $(SEEDS)
	go test -v -count=1 -timeout 24h ./watch -run '^TestSimulation$$' -seeds $(SEEDS)

.PHONY: enumerate
enumerate: ## every fault at every frame of the scenarios, and PAIRS pairs of faults
	go test -v -count=1 -timeout 24h ./zksynctest/simulation/enumeration -run '^TestEnumeration$$' -world usual -cases all -pairs $(PAIRS)

.PHONY: worlds
worlds: ## WORLDCASES faults in the scenarios with other servers, options, distances and znodes (WORLDCASES=all)
	go test -v -count=1 -timeout 24h ./zksynctest/simulation/enumeration -run '^TestEnumeration$$' -world=-usual -cases $(WORLDCASES)

.PHONY: enumerate-pairs
enumerate-pairs: ## every pair of faults in the scenarios of sessions, watches and hand-overs, or one PART of them (PART=3/20)
	go test -v -count=1 -timeout 24h ./zksynctest/simulation/enumeration -run '^TestEnumeration$$' -world usual -cases 0 -pairs all -part $(PART)

.PHONY: mutants
mutants: ## what finds each of a list of planted bugs, and after how many cases or seeds
	go run ./zksynctest/simulation/planted

.PHONY: interop
interop: ## other clients on the same paths, 2,000 acquisitions a side, on both kinds of servers
	ZKSYNC_REQUIRE_REAL=1 ZKSYNC_LONG=1 go test -v -count=1 ./zksynctest/interop -acquisitions 2000

.PHONY: chaos
chaos: ## servers and clients killed, paused and cut off for CHAOS, with a real ensemble of three
	ZKSYNC_REQUIRE_REAL=1 ZKSYNC_LONG=1 go test -v -count=1 -timeout 24h ./zksynctest/chaos -run '^TestChaos$$' -chaos $(CHAOS)

.PHONY: lease-lab
lease-lab: ## faults of real ensembles that threaten the lease, RUNS times each, and a table of the margins
	ZKSYNC_REQUIRE_REAL=1 go test -v -count=1 -timeout 24h ./zksynctest/faults -run '^TestLease$$' -runs $(RUNS)

.PHONY: storm-client
storm-client: ## a hostile server that sends DAMAGED damaged answers to a client, and MANAGERS clients of servers in trouble
	go test -v -count=1 -timeout 24h ./session -run '^(TestAStormOfDamagedAnswers|TestManyManagersOnAServerInTrouble)$$' -damaged $(DAMAGED) -managers $(MANAGERS)

.PHONY: churn
churn: ## everything opened, used and closed for CHURN, and the heap looked at
	go test -v -count=1 -timeout 24h ./zksync -run '^TestChurn$$' -churn $(CHURN)

.PHONY: promises
promises: ## what the tests prove: the first sentence of the comment of each test
	go run ./internal/promises

.PHONY: storms
storms: storm-client ## all storms: those of the client, and FRAMES hostile frames, WATCHES watches, LOSSES losses of power and DAMAGES damaged files for the embedded server
	go test -v -count=1 -timeout 24h ./zksynctest/zkserver -run '^Test(StormOfFrames|MillionsOfWatches|PowerLoss|StormOfDamagedFiles)$$' \
		-frames $(FRAMES) -watches $(WATCHES) -losses $(LOSSES) -damages $(DAMAGES)
	go test -v -count=1 -timeout 24h ./zksynctest/cmd/zkdev -run '^TestAttacks$$' -attack 10

.PHONY: ci
ci: ## what must pass, in a fresh clone
	.ci/run
