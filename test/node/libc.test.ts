import { describe, expect, test } from "bun:test";
import { join } from "node:path";

import { sendDatagram } from "../../src/node/libc.ts";
import { scratch } from "../support/scratch.ts";

// Bun has no datagram sockets of unix, so another program listens.
const python = Bun.which("python3");
const listen = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = sys.argv[1]
s.bind("\\0" + name[1:] if name.startswith("@") else name)
print("listening", flush=True)
print(repr(s.recv(4096)), flush=True)
`;

describe("sendDatagram", () => {
  test.skipIf(python === null).each([["a path"], ["an abstract name"]])(
    "reaches a socket at %s (needs python3)",
    async (what) => {
      const path = join(scratch(), "notify");
      const name = what === "a path" ? path : `@crigc-test-${path}`;
      const child = Bun.spawn([python ?? "", "-c", listen, name], { stdout: "pipe" });
      let said = "";
      for await (const chunk of child.stdout) {
        said += new TextDecoder().decode(chunk);
        if (said === "listening\n") expect(sendDatagram(name, "READY=1\nSTATUS=grün\n")).toBe(true);
      }
      expect(said).toBe(`listening\n${String.raw`b'READY=1\nSTATUS=gr\xc3\xbcn\n'`}\n`);
      expect(await child.exited).toBe(0);
    },
  );

  test.each(["/does/not/exist", "relative", "", `/${"x".repeat(200)}`])(
    "reports that nobody received it at %j",
    (path) => {
      expect(sendDatagram(path, "READY=1")).toBe(false);
    },
  );
});
