/** `crigc completion`: the shell scripts that call crigc for completions. */
import { command } from "../command.ts";
import { exit } from "../exit.ts";

const bash = `# bash completion of crigc
_crigc() {
  local line current=\${COMP_WORDS[COMP_CWORD]}
  [[ $current == "=" ]] && current=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
      :directories) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
      *) COMPREPLY+=("\${line%%$'\\t'*}") ;;
    esac
  done < <("\${COMP_WORDS[0]}" __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _crigc crigc
`;

const zsh = `#compdef crigc
_crigc() {
  local line
  local -a lines proposals
  lines=("\${(@f)$("\${words[1]}" __complete "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
  [[ \${words[CURRENT]} == --*=* ]] && compset -P '*='
  for line in $lines; do
    case $line in
      :files) _files; return ;;
      :directories) _files -/; return ;;
      *) proposals+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
    esac
  done
  _describe crigc proposals
}
if [[ \${funcstack[1]} == _crigc ]]; then
  _crigc "$@"
else
  compdef _crigc crigc
fi
`;

const fish = `# fish completion of crigc
function __crigc_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l flag (string match -r -- '^-[^=]*=' $words[-1])
    set -l value (string replace -r -- '^-[^=]*=' '' $words[-1])
    for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
        switch $line
            case :files
                printf "$flag%s\\n" (__fish_complete_path $value)
            case :directories
                printf "$flag%s\\n" (__fish_complete_directories $value)
            case '*'
                printf '%s%s\\n' "$flag" $line
        end
    end
end
complete -c crigc -f -a '(__crigc_complete)'
`;

export const completionScripts = { bash, zsh, fish } as const;

const SCRIPTS: ReadonlyMap<string, string> = new Map(Object.entries(completionScripts));

export const completion = command({
  name: "completion",
  summary: "print a completion script for bash, zsh or fish",
  doc: "crigc install installs all three. Otherwise save it as /etc/bash_completion.d/crigc, _crigc in a directory of zsh's fpath, or /etc/fish/completions/crigc.fish. The script calls the installed crigc, so it stays valid after an update.",
  operands: [
    { name: "SHELL", required: true, choices: [...SCRIPTS.keys()], help: "shell to complete in" },
  ],
  readOnly: true,
  ofItself: true,
  run: async (context, { operands: [shell = ""] }) => {
    context.stdout(SCRIPTS.get(shell) ?? "");
    return exit.done;
  },
});
