/** The completion script of bash 4 and later; needs no completion package. */
import { type CompletionTable, flagSorts, nextWords } from "./table.ts";

export function bashScript(table: CompletionTable): string {
  const sorts = flagSorts(table);
  const valued = [
    ...sorts.text,
    ...sorts.file,
    ...sorts.directory,
    ...sorts.choices.map(([name]) => name),
  ];
  return `# bash completion of crigc
_crigc() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  # An equals sign is a word of its own.
  if [[ $current == "=" ]]; then
    current=
  elif [[ $previous == "=" ]]; then
    previous=\${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()
  case $previous in
${sorts.choices.map(([name, choices]) => `    ${name}) mapfile -t COMPREPLY < <(compgen -W "${choices.join(" ")}" -- "$current"); return ;;`).join("\n")}
    ${sorts.file.join("|")}) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    ${sorts.directory.join("|")}) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
    ${sorts.text.join("|")}) return ;;
  esac

  local before= skip= word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    if [[ $word == "=" ]]; then skip=yes; continue; fi
    if [[ -n $skip ]]; then skip=; continue; fi
    case $word in
      ${valued.join("|")}) skip=yes ;;
      -*) ;;
      *) before="\${before:+$before }$word" ;;
    esac
  done

  if [[ $current == -* ]]; then
    local flags="${table.flags.map(({ name }) => name).join(" ")}"
    case $before in
${ownFlags(table)}
    esac
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$current")
    return
  fi
  case $before in
${nextWords(table)
  .map(
    ([before, words]) =>
      `    ${before === "" ? '""' : `"${before}"`}) mapfile -t COMPREPLY < <(compgen -W "${words.join(" ")}" -- "$current") ;;`,
  )
  .join("\n")}
  esac
}
complete -F _crigc crigc
`;
}

const ownFlags = (table: CompletionTable): string =>
  table.commands
    .filter(({ flags }) => flags.length > 0)
    .map(
      ({ name, flags }) =>
        `      "${name}"*) flags+=" ${flags.map((flag) => flag.name).join(" ")}" ;;`,
    )
    .join("\n");
