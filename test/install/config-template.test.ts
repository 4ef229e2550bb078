// The commented configuration: what it shows is what is in force without it.

import { describe, expect, test } from "bun:test";

import { fieldNames, fieldOf } from "../../src/config/fields.ts";
import { loadConfig } from "../../src/config/load.ts";
import { configTemplate } from "../../src/install/config-template.ts";

const template = configTemplate();
const load = (text: string | null) =>
  loadConfig({
    flags: [],
    env: {},
    reader: { file: (path) => (path.endsWith("crigc.yaml") ? text : null), names: () => null },
  });

describe("the configuration template", () => {
  test("is valid and changes nothing as written", () => {
    const { sources, warnings } = load(template);
    expect(warnings).toEqual([]);
    expect(Object.values(sources).every(({ kind }) => kind === "default")).toBe(true);
  });

  test("gives the defaults, from the file, with every setting uncommented", () => {
    const uncommented = template.replace(/^#(?=[a-zA-Z ]+:| {2}\S+:)/gm, (mark, offset: number) =>
      template[offset + 1] === " " && template[offset + 2] !== " " ? mark : "",
    );
    expect(load(uncommented).values).toEqual(load(null).values);
    const shown = fieldNames.filter((name) => fieldOf(name).outsideFiles !== true);
    const { sources } = load(uncommented);
    expect(shown.filter((name) => sources[name].kind !== "file")).toEqual([]);
  });

  test("does not show the endpoint that crigc searches for as off", () => {
    expect(template).toContain('#containerRuntimeEndpoint: "" # the only socket that answers\n');
    expect(template).toContain('#maxImages: "off"\n');
  });

  test("has no line too wide for a terminal", () => {
    expect(template.split("\n").filter((line) => line.length > 130)).toEqual([]);
  });
});
