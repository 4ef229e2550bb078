/** The completion script of zsh. */
import { type CompletedFlag, type CompletionTable, flagSorts, nextWords } from "./table.ts";

export function zshScript(table: CompletionTable): string {
  const sorts = flagSorts(table);
  const valued = [
    ...sorts.text,
    ...sorts.file,
    ...sorts.directory,
    ...sorts.choices.map(([name]) => name),
  ];
  return `#compdef crigc
_crigc() {
  local current=\${words[CURRENT]} flag=\${words[CURRENT - 1]}
  if [[ $current == --*=* ]]; then
    flag=\${current%%=*}
    compset -P '*='
  fi
  case $flag in
${sorts.choices.map(([name, choices]) => `    (${name}) compadd -- ${choices.join(" ")}; return ;;`).join("\n")}
    (${sorts.file.join("|")}) _files; return ;;
    (${sorts.directory.join("|")}) _files -/; return ;;
    (${sorts.text.join("|")}) return 1 ;;
  esac

  local before= skip= word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ -n $skip ]]; then skip=; continue; fi
    case $word in
      (${valued.join("|")}) skip=yes ;;
      (-*) ;;
      (*) before="\${before:+$before }$word" ;;
    esac
  done

  local -a flags nouns
  if [[ $current == -* ]]; then
    flags=(
${table.flags.map((flag) => `      ${described(flag)}`).join("\n")}
    )
    case $before in
${ownFlags(table)}
    esac
    _describe -o flag flags
    return
  fi
  case $before in
${nextWords(table)
  .map(
    ([before, words]) =>
      `    ("${before}") nouns=(${words.map((word) => wordOf(table, before, word)).join(" ")}) ;;`,
  )
  .join("\n")}
  esac
  _describe command nouns
}
if [[ \${funcstack[1]} == _crigc ]]; then
  _crigc "$@"
else
  compdef _crigc crigc
fi
`;
}

const ownFlags = (table: CompletionTable): string =>
  table.commands
    .filter(({ flags }) => flags.length > 0)
    .map(({ name, flags }) => `      ("${name}"*) flags+=(${flags.map(described).join(" ")}) ;;`)
    .join("\n");

const described = ({ name, help }: CompletedFlag): string => quoted(`${name}:${escaped(help)}`);

function wordOf(table: CompletionTable, before: string, word: string): string {
  const name = before === "" ? word : `${before} ${word}`;
  const command = table.commands.find((it) => it.name === name);
  return quoted(command === undefined ? word : `${word}:${escaped(command.summary)}`);
}

/** A colon ends the name. */
const escaped = (text: string): string => text.replaceAll("\\", "\\\\").replaceAll(":", "\\:");

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
