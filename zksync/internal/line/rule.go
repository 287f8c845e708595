package line

// A Class is a kind of contender, for example a reader or a writer.
type Class uint8

const (
	// Exclusive is the class of contenders of which one holds at a time.
	Exclusive Class = iota
	// Reader and Writer are the classes of the line of an RWMutex.
	Reader
	Writer
	// Unit is the class of units of a semaphore that are held. They are not in line.
	Unit
)

// A Rule has the differences between the lines of different primitives.
type Rule struct {
	// Parse parses the name of a contender. ok is false for any other child.
	Parse func(name string) (c Class, seq int32, ok bool)
	// blocks reports whether an earlier contender of one class blocks a later contender
	// of another class.
	blocks func(theirs, ours Class) bool
	// overtaken reports whether a contender may appear in front of a contender that
	// already waits. Then a listing must confirm the end of a wait.
	overtaken func(ours Class) bool
	// together reports whether one event may grant any number of contenders. Then an
	// event that does not grant them yet should not wake all of them.
	together func(ours Class) bool
}

// exclusively returns the rule of a line whose first contender alone holds.
func exclusively(parse func(name string) (Class, int32, bool)) Rule {
	return Rule{
		Parse:     parse,
		blocks:    func(Class, Class) bool { return true },
		overtaken: func(Class) bool { return false },
		together:  func(Class) bool { return false },
	}
}
