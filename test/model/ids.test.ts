import { describe, expect, test } from "bun:test";

import { containerOfLogPath, logPathOf, podUid } from "../../src/model/ids.ts";

describe("the path of a container's log", () => {
  const container = {
    podNamespace: "default",
    podName: "web-0",
    podUid: podUid("uid-a"),
    name: "app",
    attempt: 10,
  };
  const log = { podUid: podUid("uid-a"), name: "app", attempt: 10 };

  test("is made of its labels, and leads back to it", () => {
    const path = logPathOf(container);
    expect(path).toEqual(["default_web-0_uid-a", "app", "10.log"]);
    expect(containerOfLogPath(path ?? [])).toEqual(log);
  });

  test.each([
    { podUid: podUid("") },
    { podUid: podUid("../x") },
    { podName: "" },
    { podName: "web_0" },
    { podNamespace: ".." },
    { name: "" },
    { name: ".." },
    { name: "a/b" },
    { name: "app\u0000" },
  ])("is missing with %j", (change) => {
    expect(logPathOf({ ...container, ...change })).toBeNull();
  });

  test.each([
    "default_web-0_uid-a/app",
    "default_web-0_uid-a/app/10.log/x",
    "default_web-0_uid-a/app/10.log.1",
    "default_web-0_uid-a/app/010.log",
    "default_web-0_uid-a/app/x.log",
    "default_web-0_uid-a/../10.log",
    "uid-a/app/10.log",
    "",
  ])("is not %s", (path) => {
    expect(containerOfLogPath(path.split("/"))).toBeNull();
  });
});
