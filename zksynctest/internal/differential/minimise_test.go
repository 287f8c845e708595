package differential

// minimise removes as many steps of a sequence as possible while the answers to the sequence still
// differ.
func minimise(steps []step, differs func([]step) bool) []step {
	for size := len(steps) / 2; size > 0; {
		cut := false
		for from := 0; from+size <= len(steps); {
			fewer := append(append([]step(nil), steps[:from]...), steps[from+size:]...)
			if differs(fewer) {
				steps, cut = fewer, true
			} else {
				from += size
			}
		}
		if !cut || size > len(steps) {
			size /= 2
		}
	}
	return steps
}
