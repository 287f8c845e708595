package main

// deliveryBugs are in the delivery of messages to receivers.
var deliveryBugs = []bug{
	{"ledger: count internal errors with messages between them as errors in a row", []edit{{"zksync/internal/queue/stream.go",
		"if p.success.Swap(false) || time.Since(began)", "if time.Since(began)"}},
		[]finder{tested("./zksync", "^TestInternalErrorsBetweenMessages$")}},
}
