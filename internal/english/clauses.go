package english

import (
	"regexp"
	"strings"
	"unicode"
)

// A Line is one line of prose, with the number of the line in its file.
type Line struct {
	Number int
	Text   string
}

// A Clause is a headless clause, with a few words before and after its first word.
type Clause struct {
	Line int
	Text string
}

// A word is a word of a text in lower case. Its gap is the punctuation before the word.
type word struct {
	text, gap string
	line      int
}

var (
	quoted    = regexp.MustCompile("(?s)\"[^\"]{1,200}\"|`[^`]{1,200}`|“[^”]{1,200}”|https?://[^ \n)]+")
	wordOrGap = regexp.MustCompile(`[\pL\pN_]+(?:['’.\-/][\pL\pN_]+)*|[^\s\pL\pN_]+|\n`)
)

// split returns the words of a text, and an empty word at the end. A quotation is one word.
func split(lines []Line) (words []word) {
	if len(lines) == 0 {
		return nil
	}
	var texts []string
	for _, l := range lines {
		texts = append(texts, l.Text)
	}
	text := quoted.ReplaceAllStringFunc(strings.Join(texts, "\n"), func(q string) string {
		return " Quotation " + strings.Repeat("\n", strings.Count(q, "\n"))
	})
	row, gap := 0, ". "
	for _, token := range wordOrGap.FindAllString(text, -1) {
		switch first := []rune(token)[0]; {
		case token == "\n":
			row++
		case unicode.IsLetter(first) || unicode.IsNumber(first) || first == '_':
			words = append(words, word{strings.TrimSuffix(strings.ToLower(token), "'s"), gap, lines[row].Number})
			gap = ""
		default:
			gap += token
		}
	}
	return append(words, word{gap: gap + "."}) // so that the last word has an end
}

func set(words string) map[string]bool {
	found := make(map[string]bool)
	for _, w := range strings.Fields(words) {
		found[w] = true
	}
	return found
}

var (
	// pronouns stand in place of a noun before "that", "who", "which" or "whose".
	pronouns = set(`those one ones all he she they him them her us it others other another each none any some both many few
		anybody anyone everybody everyone nobody somebody someone`)
	// ordinals stand in place of a noun after "the": "the first that".
	ordinals = set(`first last next only same rest latter former newest oldest lowest highest nearest two three four`)
	// subjects begin a clause without "that": "all it holds", "those they wait for".
	subjects = set("i we you he she it they there")
	// prepositions may stand before "whom", "which" and "whose".
	prepositions = set(`about above across after against along among around as at because before behind below beneath beside between
		beyond but by despite down during except for from in inside into like near of off on onto out over past per since than
		through till to toward towards under until up upon via with within without`)
	// closed are the words, besides pronouns and prepositions, that are no noun before "who".
	closed = set(`a an the and or nor so if when where while why how that this these though although unless whether then now
		again also always already ever here never no not only still there too yet itself themselves himself
		i we you me my our your his its their who whom whose which what
		am is are was were be been being do does did done has have had having can could may might must shall should will would`)
	// verbs are words that may be a noun elsewhere, but are a verb before "who": "lets the callers go who wait".
	verbs = set(`let lets go goes gone come comes came leave leaves left wait waits stay stays get gets give gives take takes
		begin begins end ends`)
	// saying are the verbs and adjectives of saying and knowing, after which "what" and "who" begin a question.
	saying = set(`ask asks asked asking say says said saying tell tells told telling know knows knew known knowing unknown
		learn learns learned learnt learning see sees saw seen seeing show shows showed shown showing
		explain explains explained explaining describe describes described describing define defines defined defining
		report reports reported reporting state states stated stating decide decides decided deciding
		determine determines determined determining find finds found finding document documents documented
		specify specifies specified understand understands understood guess guesses wonder wonders clear unclear sure
		mention mentions notice notices noticed question care cares figure matter matters depend depends depended depending regardless`)
	// copulas stand before a clause that is a noun: "a state is what a read has found".
	copulas = set("is are was were be been")
	// idioms are the words of saying that go on with a preposition.
	idioms = map[string]bool{"depend on": true, "depends on": true, "depended on": true, "depending on": true,
		"regardless of": true, "sure of": true, "find out": true, "finds out": true, "found out": true, "figure out": true}
	questions = set("what who whom whose which whether why how where when")
	// personal are the pronouns after which "that" begins a clause of its own.
	personal = set("it he she they him them her us")
	// existing are the words after "there" in "all there is".
	existing = set("is are was were can may has had will")
)

// Clauses returns the number of words of a text and its headless clauses. These patterns count:
//
//   - "whoever", "whomever", "whichever" and "whatever", anywhere;
//   - "who", "whom" and "whose" without a noun before: at the start of a sentence, or after a pronoun, a preposition, a
//     conjunction, an article or a verb, as in "lets those go who wait", "up to who waits" and "one whose session ended";
//   - "that" and "which" after a pronoun that stands in place of the noun: "those that", "all that", "the one that",
//     "others that", "the first that";
//   - "that of" and "those of";
//   - a clause without "that" after such a pronoun: "all there is", "all it has", "those they wait for";
//   - "what" as a noun: "what is there", "of what it claims", "returns what was read".
//
// These do not count:
//
//   - a clause with its noun: "callers who wait", "the session that created it", "a call whose ctx ends", "everything
//     that it has", "three servers, one of which leads";
//   - a question that is the object of a verb of saying or knowing, also as its second object or after "and" and "or":
//     "reports what failed", "tells the caller what failed", "depends on who was first", "says who holds what";
//   - a question before an infinitive, "what to do", and a direct question with its question mark;
//   - "when", "where", "why" and "how", and "the other" without a clause;
//   - quoted text.
//
// Clauses knows no grammar beyond the words of these patterns, so it misses some headless clauses and may count a clause
// with an unusual noun. Packages of the standard library have 0 to 1 counted clauses per 1,000 words.
func Clauses(lines []Line) (count int, found []Clause) {
	words := split(lines)
	for i, w := range words {
		if strings.IndexFunc(w.text, unicode.IsLetter) >= 0 {
			count++
		}
		if headless(words, i) {
			found = append(found, Clause{w.line, around(words, i)})
		}
	}
	return count, found
}

// around returns a few words before and after word i.
func around(words []word, i int) string {
	var text strings.Builder
	for j := max(0, i-4); j < min(len(words)-1, i+6); j++ {
		if gap := strings.TrimSpace(words[j].gap); j > max(0, i-4) {
			text.WriteString(gap + " ")
		}
		text.WriteString(words[j].text)
	}
	return text.String()
}

// before returns the text of the word n before word i of the same clause, or "".
// A comma does not end the clause.
func before(words []word, i, n int) string {
	for ; n > 0; n, i = n-1, i-1 {
		if i == 0 || strings.ContainsAny(words[i].gap, ".?!;:()|—–") {
			return ""
		}
	}
	return words[i].text
}

// headless reports whether word i begins a headless clause.
func headless(words []word, i int) bool {
	w, last, beforeLast := words[i], before(words, i, 1), before(words, i, 2)
	if last == "else" {
		last, beforeLast = beforeLast, before(words, i, 3) // "everybody else who"
	}
	switch w.text {
	case "whoever", "whomever", "whosever", "whichever", "whatever":
		return true
	case "what":
		return !asked(words, i)
	case "who", "whom", "whose":
		noun := last
		if w.text != "who" && prepositions[last] {
			noun = beforeLast
		}
		return !asked(words, i) && (noun == "" || pronouns[noun] || prepositions[noun] || closed[noun] || w.text == "who" && verbs[noun])
	case "that", "which":
		if w.gap != "" || beforeLast == "after" || beforeLast == "above" || beforeLast == "each" {
			return false // "after all that", "tell each other that"
		}
		if w.text == "which" && prepositions[last] && last != "of" {
			last, beforeLast = beforeLast, before(words, i, 3)
		}
		if w.text == "that" && personal[last] {
			return false // "tells them that" and "It is they that" are ordinary
		}
		return pronouns[last] || ordinals[last] && beforeLast == "the"
	case "of":
		return w.gap == "" && (last == "that" || last == "those")
	default:
		if !subjects[w.text] || w.gap != "" || prepositions[beforeLast] {
			return false
		}
		if w.text == "there" && (i+1 == len(words) || !existing[words[i+1].text]) {
			return false
		}
		return set("those one ones all")[last]
	}
}

// asked reports whether word i begins a question: a direct question, the object of a verb of saying or knowing, a
// question before an infinitive, or a second question after "and" or "or".
func asked(words []word, i int) bool {
	if i+1 < len(words) && words[i+1].text == "to" && words[i+1].gap == "" {
		return true
	}
	for j := i + 1; j < len(words); j++ {
		if strings.ContainsAny(words[j].gap, ".?!;|") {
			if strings.Contains(words[j].gap, "?") {
				return before(words, i, 1) == ""
			}
			break
		}
	}
	last := before(words, i, 1)
	if last == "and" || last == "or" || last == "but" || last == "nor" {
		for n := 2; ; n++ {
			w := before(words, i, n)
			if w == "" {
				return false
			}
			if questions[w] && !headless(words, i-n) || w == "that" && words[i].text != "what" {
				return true
			}
		}
	}
	for n := 1; n <= 5; n++ {
		w := before(words, i, n)
		switch {
		case w == "":
			return false
		case saying[w]:
			return n == 1 || !prepositions[last] && !copulas[last] || n == 2 && idioms[w+" "+last]
		case w == "who" || w == "which":
			return !headless(words, i-n) // "says who holds what"
		case w == "that" || w == "and" || w == "or" || w == "if" || questions[w]:
			return false
		}
	}
	return false
}
