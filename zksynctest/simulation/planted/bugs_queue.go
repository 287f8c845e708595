package main

// queueBugs are in the transactions of the queues.
var queueBugs = []bug{
	{"repeat a batch without a check of its marker", []edit{{"zksync/internal/queue/commit/marker.go",
		"Data: []byte{}, Version: k.version}",
		"Data: []byte{}, Version: -1}"}}, []finder{simulated()}},
	{"repeat a Take without a look-up of the message", []edit{{"zksync/internal/queue/commit/batch.go",
		"e.Epoch != noEpoch }) {",
		"e.Epoch != noEpoch && false }) {"}}, []finder{tested("./zksync", "TestTakeIsNotRepeatedForAMessageOfTheSameName")}},
	{"continue after a batch without stopping the requests in flight", []edit{{"zksync/internal/queue/commit/batch_outcome.go",
		"	o, err := b.c.marker.fence(ctx, s)\n	return b.decide(o, err)",
		"	return b.decide(stopped, nil)"}}, []finder{simulated()}},
}
