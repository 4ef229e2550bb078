/** The completion script of fish. */
import {
  type Behind,
  type CompletedFlag,
  type CompletionTable,
  flagSorts,
  nextWords,
} from "./table.ts";

export function fishScript(table: CompletionTable): string {
  const sorts = flagSorts(table);
  const valued = [
    ...sorts.text,
    ...sorts.file,
    ...sorts.directory,
    ...sorts.choices.map(([name]) => name),
  ];
  return `# fish completion of crigc
function __crigc_before --description 'the words before the cursor that are no flags'
    set -l skip
    set -l before
    for word in (commandline -opc)[2..-1]
        if set -q skip[1]
            set skip
            continue
        end
        switch $word
            case ${valued.join(" ")}
                set skip yes
            case '-*'
            case '*'
                set -a before $word
        end
    end
    string join ' ' -- $before
end
function __crigc_is --description 'whether these are the words before the cursor'
    test "$(__crigc_before)" = "$argv[1]"
end
function __crigc_starts --description 'whether the words before the cursor start so'
    string match -q -- "$argv[1]*" "$(__crigc_before)"
end
complete -c crigc -f
${nextWords(table)
  .flatMap(([before, words]) => words.map((word) => wordLine(table, before, word)))
  .join("\n")}
${table.flags.map((flag) => flagLine(flag, null)).join("\n")}
${table.commands.flatMap(({ name, flags }) => flags.map((flag) => flagLine(flag, name))).join("\n")}
`;
}

function wordLine(table: CompletionTable, before: string, word: string): string {
  const name = before === "" ? word : `${before} ${word}`;
  const summary = table.commands.find((it) => it.name === name)?.summary;
  const said = summary === undefined ? "" : ` -d ${quoted(summary)}`;
  return `complete -c crigc -n ${quoted(`__crigc_is '${before}'`)} -a ${word}${said}`;
}

function flagLine({ name, help, behind }: CompletedFlag, command: string | null): string {
  const when = command === null ? "" : ` -n ${quoted(`__crigc_starts '${command}'`)}`;
  const option = name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`;
  return `complete -c crigc${when} ${option}${behindWords(behind)} -d ${quoted(help)}`;
}

function behindWords(behind: Behind): string {
  switch (behind.kind) {
    case "none":
      return "";
    case "text":
      return " -x";
    case "file":
      return " -r -F";
    case "directory":
      return " -x -a '(__fish_complete_directories)'";
    case "choices":
      return ` -x -a ${quoted(behind.choices.join(" "))}`;
  }
}

/** Within single quotes, fish takes a backslash before a quote and before itself. */
const quoted = (text: string): string =>
  `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
