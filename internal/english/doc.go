// Package english counts headless relative clauses in comments and documents.
//
// A headless clause is a relative or interrogative clause whose noun is missing, or
// has a pronoun in place of the noun. "Who waits" is headless, "a caller that waits"
// is not. The reader of a headless clause has to guess the noun. [Clauses] finds them;
// [Comments] and [Markdown] read the prose that Clauses takes. The package uses the
// standard library only, and only tests use the package.
package english
