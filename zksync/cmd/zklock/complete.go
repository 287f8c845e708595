package main

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// completion prints the completion of a shell and returns the exit status.
func completion(args []string, stdout, stderr io.Writer) int {
	shells := map[string]func() string{"bash": bash, "zsh": zsh, "fish": fish}
	if len(args) != 1 || shells[args[0]] == nil {
		fmt.Fprintln(stderr, "usage: zklock completion bash|zsh|fish\n\n  source <(zklock completion bash)")
		return statusUsage
	}
	fmt.Fprint(stdout, shells[args[0]]())
	return 0
}

// commandNames are all commands.
func commandNames() []string {
	return append(slices.Sorted(maps.Keys(subcommands)), "completion", "help")
}

// optionNames are the options of a command.
func optionNames(name string) (names []string) {
	(&program{}).flagSet(name, subcommands[name]()).VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	return names
}

// bash completes commands, options, and behind -- a command of the shell. Paths are
// the znodes that zklock ls lists.
func bash() string {
	var cases strings.Builder
	for _, name := range slices.Sorted(maps.Keys(subcommands)) {
		fmt.Fprintf(&cases, "        %s) options=\"-%s\" ;;\n", name, strings.Join(optionNames(name), " -"))
	}
	return fmt.Sprintf(`# bash completion of zklock: source <(zklock completion bash)
_zklock() {
    local cur=${COMP_WORDS[COMP_CWORD]} options= i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "%s" -- "$cur"))
        return
    fi
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            COMPREPLY=($(compgen -c -- "$cur"))
            return
        fi
    done
    case ${COMP_WORDS[1]} in
%s        completion) options="bash zsh fish" ;;
        help) options="%s" ;;
    esac
    if [[ $cur == /* ]]; then
        # Not by compgen -W, which would run the commands that a name may have.
        local dir=${cur%%/*} name
        while read -r name; do
            [[ $name == "$cur"* ]] && COMPREPLY+=("$(printf %%q "$name")")
        done < <(zklock ls -connect 1s "${dir:-/}" 2>/dev/null | awk 'NR > 1 { print $1 }')
        return
    fi
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
}
complete -F _zklock zklock
`, strings.Join(commandNames(), " "), cases.String(), strings.Join(slices.Sorted(maps.Keys(pages)), " "))
}

// zsh uses the completion of bash.
func zsh() string {
	return "# zsh completion of zklock: source <(zklock completion zsh)\nautoload -U +X bashcompinit && bashcompinit\n" + bash()
}

func fish() string {
	var b strings.Builder
	b.WriteString("# fish completion of zklock: zklock completion fish | source\ncomplete -c zklock -f\n")
	fmt.Fprintf(&b, "complete -c zklock -n __fish_use_subcommand -a '%s'\n", strings.Join(commandNames(), " "))
	for _, name := range slices.Sorted(maps.Keys(subcommands)) {
		for _, option := range optionNames(name) {
			fmt.Fprintf(&b, "complete -c zklock -n '__fish_seen_subcommand_from %s' -o %s\n", name, option)
		}
	}
	return b.String()
}
