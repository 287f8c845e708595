package main

// deliveryBugs are in the delivery of messages to receivers.
var deliveryBugs = []bug{
	{"ledger: count internal errors with messages between them as errors in a row", []edit{{"zksync/internal/queue/stream.go",
		"if p.success.Swap(false) || time.Since(began)", "if time.Since(began)"}},
		[]finder{tested("./zksync", "^TestInternalErrorsBetweenMessages$")}},
	{"end a stream at a message whose answer is too slow", []edit{{"zksync/internal/queue/message_reader.go",
		"tooSlow := session.IsAnswerTooSlow(err)", "tooSlow := false"}},
		[]finder{tested("./zksync", "^TestSlowNetworkOnlyDelaysMessages$")}},
	{"skip a message for good after one slow answer", []edit{{"zksync/internal/queue/message_reader.go",
		"m.v.unskipLater(d.ref)", "_ = m.v.unskipLater"}},
		[]finder{tested("./zksync", "^TestSlowNetworkOnlyDelaysMessages$")}},
	{"end a stream at a listing that is too slow", []edit{{"zksync/internal/queue/stream.go",
		"return session.IsAnswerTooSlow(err) // a slow", "return false // a slow"}},
		[]finder{tested("./zksync", "^TestSlowListingOnlyDelaysMessages$")}},
	{"ledger: repeat a removal by name after an internal error", []edit{{"zksync/internal/queue/ledger.go",
		"unclear := tx.guarded()", "unclear := false"}},
		[]finder{tested("./zksync/internal/queue", "^TestRefusedAckAndARemadeDirectory$")}},
	{"ledger: repeat a throttled removal by name", []edit{{"zksync/internal/queue/ledger_tx.go",
		"s.MultiOnce(ctx, conn, tx.ops...)", "s.Multi(ctx, tx.ops...)"}},
		[]finder{tested("./zksync/internal/queue", "^TestRefusedAckAndARemadeDirectory$")}},
	{"ledger: repeat a removal by a look that no watch guards", []edit{{"zksync/internal/queue/ledger_tx.go",
		"c.seen.conn = 0 // no", "c.seen.conn = conn // no"}},
		[]finder{tested("./zksync/internal/queue", "^TestRefusedAckAndARemadeDirectory$")}},
	{"ledger: take one internal error at a removal by name for a refusal", []edit{{"zksync/internal/queue/ledger.go",
		"refusal && tx.guarded() && !unclear:", "refusal && false && !unclear:"}},
		[]finder{tested("./zksync/internal/queue", "^TestRefusedAckSucceeds$")}},
}
