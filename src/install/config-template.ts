/** The commented default configuration, generated from the flag table. */
import { dashed, defaultWords, type Field } from "../config/field.ts";
import { fieldGroups, type FieldName, fieldOf } from "../config/fields.ts";
import { defaultOf } from "../config/settings.ts";
import { type Printed, printed } from "../config/values.ts";
import { capitalised } from "../model/values.ts";

/** Every setting is commented out, so that an old file does not freeze a default. */
export function configTemplate(): string {
  const sections = fieldGroups.map(([heading, members]) => {
    const names = members.filter((name) => fieldOf(name).outsideFiles !== true);
    const entries = names.map((name, index) => entry(name, names[index - 1] ?? null));
    return [`# --- ${heading} ---`, "", ...entries].join("\n");
  });
  return [OPENING, ...sections].join("\n");
}

const OPENING = `# crigc configuration. Each setting below is commented out and shows its default: remove the "#" and change the value.
# "crigc config" shows the effective values and their sources; "crigc config --check FILE" validates a file.
# Run "systemctl restart crigc" after a change. Files in conf.d are merged over this one in the order of their names.

apiVersion: crigc/v1
kind: CrigcConfiguration
`;

function entry(name: FieldName, before: FieldName | null): string {
  const field = fieldOf(name);
  const words = `${capitalised(field.help)}. ${field.doc}`;
  const facts = [
    `${dashed(field.flag)}. Takes ${field.type.expectedInFile ?? field.type.expected}.`,
  ];
  const value = yaml({ name, before }, printed(field.type, defaultOf(name)));
  return [
    ...wrapped(words),
    ...wrapped(facts.join(" ")),
    ...value.map((line) => `#${line}`),
    "",
  ].join("\n");
}

/** Names with a dot share a map in the file, which the first of them opens. */
function yaml(
  place: { readonly name: FieldName; readonly before: FieldName | null },
  value: Printed,
): readonly string[] {
  const [outer = "", inner] = place.name.split(".");
  const text = value === null ? absent(fieldOf(place.name)) : JSON.stringify(value);
  if (inner !== undefined) {
    const opened = place.before?.startsWith(`${outer}.`) === true;
    return [...(opened ? [] : [`${outer}:`]), `  ${inner}: ${text}`];
  }
  if (value === null || typeof value !== "object" || Array.isArray(value))
    return [`${outer}: ${text}`];
  const lines = Object.entries(value).map(([key, held]) => `  ${key}: ${JSON.stringify(held)}`);
  return lines.length === 0 ? [`${outer}: {}`] : [`${outer}:`, ...lines];
}

/** "off" only for settings that can be off; an unset endpoint is searched for. */
function absent(field: Field): string {
  const { kind } = field.type;
  const text = kind === "endpoint" || kind === "path" ? '""' : '"off"';
  const words = defaultWords(field);
  return words === "off" ? text : `${text} # ${words}`;
}

const WIDTH = 118;

const wrapped = (text: string): readonly string[] =>
  Bun.wrapAnsi(text, WIDTH - "# ".length)
    .split("\n")
    .map((line) => `# ${line}`);
