/**
 * Finds every key of a YAML or JSON document with its line. The parser reports no lines, and silently lets the last of two
 * equal keys win.
 */

export interface KeyLine {
  /** `evictionHard`, or `logging.format` for a key below another one; `keep[3].name` within a list. */
  readonly path: string;
  readonly line: number;
}

export interface Keys {
  /** In the order of the text, with duplicates. */
  readonly found: readonly KeyLine[];
  /** Syntax by which a key can come from elsewhere: anchors, merges, tags, explicit keys. */
  readonly refused: readonly { readonly line: number; readonly what: string }[];
}

/** `text`: a document that the parser accepts. */
export function keysIn(text: string): Keys {
  const scan = new Scan(text);
  scan.block();
  return { found: scan.found, refused: scan.refused };
}

interface Level {
  readonly indent: number;
  readonly path: string;
}

const PLAIN_KEY =
  /[^\s#&*!|>%@`"'[\]{},?:-](?:[^\s:]|:(?=\S)|[ \t]+(?=[^\s:#])){0,512}(?=[ \t]*:(?:\s|$))|[?:-](?=\S)(?:[^\s:]|:(?=\S)){0,512}(?=[ \t]*:(?:\s|$))/y;
const FLOW_PLAIN = /(?:[^\s,[\]{}:]|:(?=[^\s,[\]{}])|[ \t]+(?=[^\s,[\]{}:#]))+/y;
const DOUBLE_QUOTED = /"(?:[^"\\]|\\[\s\S])*"/y;
const SINGLE_QUOTED = /'(?:[^']|'')*'/y;
const TO_COLON = /\s*:/y;
const SPACE = /[ \t\r\n\uFEFF]+/y;
const COMMENT = /#[^\n]*/y;
const INLINE_BLANK = /[ \t\uFEFF]+/y;

class Scan {
  readonly found: KeyLine[] = [];
  readonly refused: { line: number; what: string }[] = [];
  readonly #text: string;
  #at = 0;
  #countedTo = 0;
  #line = 1;
  #lineStart = 0;
  #items = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Maps and lists by indentation. */
  block(): void {
    let levels: readonly Level[] = [];
    while (this.#at < this.#text.length) {
      this.#takeBlank();
      if (this.#at >= this.#text.length) return;
      if (
        /^(?:---|\.\.\.|%)/.test(this.#text.slice(this.#at, this.#at + 3)) &&
        this.#column() === 0
      ) {
        this.#skipLine();
        continue;
      }
      levels = this.#entry(levels);
    }
  }

  /** A list mark, a key with its value, or the rest of a scalar. */
  #entry(levels: readonly Level[]): readonly Level[] {
    const indent = this.#column();
    if (this.#sees(/-(?=\s|$)/y)) {
      const above = levels.filter(
        (level) => level.indent < indent || (level.indent === indent && !level.path.endsWith("]")),
      );
      this.#at += 1;
      this.#items += 1;
      this.#value({ indent, path: `${pathOf(above)}[${this.#items}]` }, true);
      return [...above, { indent, path: `${pathOf(above)}[${this.#items}]` }];
    }
    const above = levels.filter((level) => level.indent < indent);
    if (this.#sees(/\?(?=\s|$)/y)) this.#refuse("an explicit key (?)");
    const key = this.#blockKey();
    if (key === null) {
      this.#value({ indent: above.at(-1)?.indent ?? -1, path: pathOf(above) }, false);
      return levels;
    }
    const level = { indent, path: this.#note(pathOf(above), key) };
    this.#take(TO_COLON);
    this.#value(level, false);
    return [...above, level];
  }

  /** `mayHoldKey`: a map may begin on the line of a list mark. */
  #value(level: Level, mayHoldKey: boolean): void {
    this.#take(INLINE_BLANK);
    const first = this.#text[this.#at] ?? "";
    if (first === "" || first === "\n" || first === "\r" || first === "#") return;
    if (mayHoldKey && (first === "-" || first === "?" || this.#peekKey())) return;
    if (first === "&" || first === "*") this.#refuse("an anchor or alias (& or *)");
    if (first === "!") this.#refuse("a tag (!)");
    if (first === "{" || first === "[") this.#flow(level.path);
    else if (first === '"' || first === "'") this.#quoted();
    else if (first === "|" || first === ">") this.#skipScalar(level.indent);
    this.#skipLine();
  }

  /** A block scalar ends before the first line that is not indented further. */
  #skipScalar(indent: number): void {
    this.#skipLine();
    while (this.#at < this.#text.length) {
      const line = /[^\n]*/y;
      line.lastIndex = this.#at;
      const text = line.exec(this.#text)?.[0] ?? "";
      if (text.trim() !== "" && text.search(/\S/) <= indent) break;
      this.#at = line.lastIndex + 1;
    }
    // The rest is read as a separate line.
    this.#at = Math.max(0, Math.min(this.#at, this.#text.length) - 1);
  }

  /** Maps and lists in brackets, over any number of lines. */
  #flow(path: string): void {
    const isMap = this.#text[this.#at] === "{";
    this.#at += 1;
    for (;;) {
      this.#takeBlank();
      const first = this.#text[this.#at] ?? "";
      if (first === "" || first === "}" || first === "]") {
        this.#at += 1;
        return;
      }
      if (first === "," || first === ":") this.#at += 1;
      else if (isMap) this.#flowEntry(path);
      else {
        this.#items += 1;
        this.#flowValue(`${path}[${this.#items}]`);
      }
    }
  }

  #flowEntry(path: string): void {
    if (this.#sees(/\?(?=\s)/y)) this.#refuse("an explicit key (?)");
    const start = this.#at;
    const key = this.#quoted() ?? this.#take(FLOW_PLAIN);
    if (key === null) {
      this.#at += 1;
      return;
    }
    const end = this.#at;
    this.#at = start;
    const below = this.#note(path, key.trim());
    this.#at = end;
    this.#takeBlank();
    if (this.#text[this.#at] !== ":") return;
    this.#at += 1;
    this.#takeBlank();
    this.#flowValue(below);
  }

  #flowValue(path: string): void {
    const first = this.#text[this.#at] ?? "";
    if (first === "&" || first === "*") this.#refuse("an anchor or alias (& or *)");
    if (first === "!") this.#refuse("a tag (!)");
    if (first === "{" || first === "[") this.#flow(path);
    else if (
      first !== "," &&
      first !== "}" &&
      first !== "]" &&
      this.#quoted() === null &&
      this.#take(FLOW_PLAIN) === null
    )
      this.#at += 1;
  }

  #blockKey(): string | null {
    const start = this.#at;
    const key = this.#quoted() ?? this.#take(PLAIN_KEY);
    const end = this.#at;
    const isKey = key !== null && this.#take(TO_COLON) !== null;
    this.#at = isKey ? end : start;
    return isKey ? key.trim() : null;
  }

  #peekKey(): boolean {
    const start = this.#at;
    const isKey = this.#blockKey() !== null;
    this.#at = start;
    return isKey;
  }

  /** The quoted text; `null`: no quotes here. */
  #quoted(): string | null {
    const double = this.#take(DOUBLE_QUOTED);
    if (double === null)
      return this.#take(SINGLE_QUOTED)?.slice(1, -1).replaceAll("''", "'") ?? null;
    try {
      return String(JSON.parse(double));
    } catch {
      return double;
    }
  }

  #note(above: string, key: string): string {
    if (key === "<<") this.#refuse("a merge key (<<)");
    const path = above === "" ? key : `${above}.${key}`;
    this.found.push({ path, line: this.#lineHere() });
    return path;
  }

  #refuse(what: string): void {
    this.refused.push({ line: this.#lineHere(), what });
  }

  #sees(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    return pattern.test(this.#text);
  }

  #take(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0] ?? null;
    if (match !== null) this.#at += match.length;
    return match;
  }

  #takeBlank(): void {
    while (this.#take(SPACE) !== null || this.#take(COMMENT) !== null);
  }

  #skipLine(): void {
    const end = this.#text.indexOf("\n", this.#at);
    this.#at = end < 0 ? this.#text.length : end;
  }

  #column(): number {
    this.#lineHere();
    return this.#at - this.#lineStart;
  }

  #lineHere(): number {
    for (; this.#countedTo < this.#at; this.#countedTo += 1)
      if (this.#text[this.#countedTo] === "\n") {
        this.#line += 1;
        this.#lineStart = this.#countedTo + 1;
      }
    return this.#line;
  }
}

const pathOf = (levels: readonly Level[]): string => levels.at(-1)?.path ?? "";
