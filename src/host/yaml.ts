/** Writes a JSON document as YAML. */

/** `json`: integers beyond 2^53 in it lose their last digits; no size and no time of a node is so large. */
export const yamlText = (json: string): string =>
  `${Bun.YAML.stringify(JSON.parse(json), null, 2)}\n`;
