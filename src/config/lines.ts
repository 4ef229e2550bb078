/** Finds the line on which each key of a YAML or JSON document stands, which the parser does not tell. */

export interface KeyLine {
  /** `evictionHard`, or `logging.format` for a key below another one. */
  readonly path: string;
  readonly line: number;
}

const KEY = /^([\s{,]*)(?:"([^"]*)"|'([^']*)'|([^\s#"'[\]{},&*!|>%@`:-][^\s#:]*))\s*:(?:\s|$)/;
/** A key that starts further along its line is none that we look for. */
const LINE_MAX = 512;

/** Keys of the outermost map and of the maps in it, in the order of the text; a key that stands twice comes twice. */
export function keyLines(text: string): readonly KeyLine[] {
  const found: KeyLine[] = [];
  let outerKey = "";
  let outerIndent = -1;
  let innerIndent = -1;
  for (const [index, line] of text.split("\n").entries()) {
    const match = KEY.exec(line.slice(0, LINE_MAX));
    if (match === null) continue;
    const indent = (match[1] ?? "").length;
    const key = match[2] ?? match[3] ?? match[4] ?? "";
    if (outerIndent < 0 || indent <= outerIndent) {
      if (outerIndent < 0) outerIndent = indent;
      outerKey = key;
      innerIndent = -1;
      found.push({ path: key, line: index + 1 });
    } else if (innerIndent < 0 || indent === innerIndent) {
      innerIndent = indent;
      found.push({ path: `${outerKey}.${key}`, line: index + 1 });
    }
  }
  return found;
}
