import { describe, expect, test } from "bun:test";

import { containerIdOfLogLink, containerLogLink } from "../../src/model/log-names.ts";

describe("the link of a container's log", () => {
  const id = "8b4c3fc71c9bd9d8cb3e6ca9c0a5ba1e0d4dbd6e9d8ea3c37ea4bb7d44d8b0f4";

  test("has a name of at most 255 bytes, whose stem is cut to 251", () => {
    const container = {
      podName: "p".repeat(100),
      podNamespace: "n".repeat(60),
      name: "c".repeat(63),
      id,
    };
    const link = containerLogLink(container);
    expect(link).toHaveLength(255);
    const stem = `${container.podName}_${container.podNamespace}_${container.name}-${id}`;
    expect(link).toBe(`${stem.slice(0, 251)}.log`);
    expect(containerIdOfLogLink(link)).toBe(id.slice(0, 251 - 226));
  });

  test("is not cut if it fits", () => {
    const link = containerLogLink({ podName: "app", podNamespace: "default", name: "c", id });
    expect(link).toBe(`app_default_c-${id}.log`);
    expect(containerIdOfLogLink(link)).toBe(id);
  });

  test.each([
    ["no dash", "app_default_c.log"],
    ["another ending", `app_default_c-${id}.txt`],
    ["five characters for an ID", "app_default_c-12345.log"],
  ])("gives no ID with %s", (_, entry) => {
    expect(containerIdOfLogLink(entry)).toBeNull();
  });
});
