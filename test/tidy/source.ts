// Reads TypeScript sources for the tidy checks: the code without comments and string contents, and its imports.

export type Import = { readonly specifier: string; readonly line: number };

export type Source = {
  /** Relative to the top of the project, with forward slashes. */
  readonly path: string;
  readonly text: string;
  /** The text with comments and the contents of strings as spaces; every offset is unchanged. */
  readonly code: string;
  readonly imports: readonly Import[];
};

export function source(path: string, text: string): Source {
  const code = path.endsWith(".ts") ? blank(text) : text;
  return { path, text, code, imports: path.endsWith(".ts") ? importsIn(text, code) : [] };
}

export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

// The blanked code still has its quotes, so a specifier is found there and read from the text. Type-only imports,
// dynamic ones and `typeof import(…)` count as much as any other.
const importPattern =
  /(?<![.\w$])(?:(?:import|export)\b[^;'"`()]*?\bfrom\s*|import\s*|(?:import|require)\s*\(\s*)(?=["'])/g;

function importsIn(text: string, code: string): readonly Import[] {
  return [...code.matchAll(importPattern)].map((match) => {
    const start = match.index + match[0].length;
    const end = code.indexOf(code.charAt(start), start + 1);
    return { specifier: text.slice(start + 1, end), line: lineAt(text, match.index) };
  });
}

/** Replaces comments, and what is between the quotes of strings, templates and regular expressions, by spaces. */
export function blank(text: string): string {
  let code = "";
  let at = 0;
  // One entry for each template literal that we are inside of: the number of braces open in its `${`.
  const templates: number[] = [];

  const copy = (length: number): void => {
    code += text.slice(at, at + length);
    at += length;
  };
  const hide = (end: number): void => {
    code += text.slice(at, end).replace(/[^\n]/g, " ");
    at = end;
  };
  const templateText = (): void => {
    const found = endOfTemplateText(text, at);
    hide(found);
    if (text.startsWith("${", at)) {
      templates.push(0);
      copy(2);
    } else copy(1);
  };

  while (at < text.length) {
    const char = text.charAt(at);
    const open = templates.at(-1);
    if (text.startsWith("//", at)) hide(endAt(text, text.indexOf("\n", at)));
    else if (text.startsWith("/*", at)) hide(endAt(text, text.indexOf("*/", at + 2), 2));
    else if (char === '"' || char === "'") {
      copy(1);
      hide(endOfQuoted(text, at, char));
      copy(1);
    } else if (char === "`") {
      copy(1);
      templateText();
    } else if (char === "/" && startsRegExp(code)) {
      copy(1);
      hide(endOfRegExp(text, at));
      copy(1);
    } else if (char === "}" && open === 0) {
      templates.pop();
      copy(1);
      templateText();
    } else {
      if (open !== undefined && char === "{") templates[templates.length - 1] = open + 1;
      if (open !== undefined && char === "}") templates[templates.length - 1] = open - 1;
      copy(1);
    }
  }
  return code;
}

function endAt(text: string, found: number, length = 0): number {
  return found < 0 ? text.length : found + length;
}

function endOfQuoted(text: string, from: number, quote: string): number {
  let at = from;
  while (at < text.length && text.charAt(at) !== quote && text.charAt(at) !== "\n") {
    at += text.charAt(at) === "\\" ? 2 : 1;
  }
  return at;
}

function endOfTemplateText(text: string, from: number): number {
  let at = from;
  while (at < text.length && text.charAt(at) !== "`" && !text.startsWith("${", at)) {
    at += text.charAt(at) === "\\" ? 2 : 1;
  }
  return at;
}

function endOfRegExp(text: string, from: number): number {
  let at = from;
  let inClass = false;
  while (at < text.length && (inClass || text.charAt(at) !== "/") && text.charAt(at) !== "\n") {
    const char = text.charAt(at);
    if (char === "[") inClass = true;
    if (char === "]") inClass = false;
    at += char === "\\" ? 2 : 1;
  }
  return at;
}

// A slash after a value divides; after an operator, an opening bracket or a keyword it opens a regular expression.
function startsRegExp(before: string): boolean {
  const last = before.trimEnd();
  if (
    /(?:^|[^.\w$])(?:return|typeof|case|in|of|void|delete|throw|new|else|do|await|yield)$/.test(
      last,
    )
  )
    return true;
  return !/[\w$)\]}"'`]$/.test(last);
}
