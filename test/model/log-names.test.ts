import { describe, expect, test } from "bun:test";

import { containerIdOfLogLink, containerLogLink } from "../../src/model/ids.ts";

describe("the link of a container's log", () => {
  const id = "8b4c3fc71c9bd9d8cb3e6ca9c0a5ba1e0d4dbd6e9d8ea3c37ea4bb7d44d8b0f4";

  test("has a name of at most 255 bytes, whose stem is cut to 251", () => {
    const [podName, podNamespace, name] = ["p".repeat(100), "n".repeat(60), "c".repeat(63)];
    const link = containerLogLink({ podName, podNamespace, name, id });
    expect(link).toHaveLength(255);
    expect(link).toBe(`${`${podName}_${podNamespace}_${name}-${id}`.slice(0, 251)}.log`);
    expect(containerIdOfLogLink(link)).toBe(id.slice(0, 251 - 226));
    const short = containerLogLink({ podName: "app", podNamespace: "default", name: "c", id });
    expect(short).toBe(`app_default_c-${id}.log`);
    expect(containerIdOfLogLink(short)).toBe(id);
  });

  test.each([
    ["no dash", "app_default_c.log"],
    ["another ending", `app_default_c-${id}.txt`],
    ["five characters for an ID", "app_default_c-12345.log"],
  ])("gives no ID with %s", (_, entry) => {
    expect(containerIdOfLogLink(entry)).toBeNull();
  });
});
