// Endpoints are written in few forms, and everything else is refused with what was expected.
import { describe, expect, test } from "bun:test";

import { parseEndpoint, wellKnownSockets } from "../../src/cri/endpoint.ts";

describe("an endpoint", () => {
  test.each([
    ["unix:///run/containerd/containerd.sock", "/run/containerd/containerd.sock"],
    ["unix:/run/crio/crio.sock", "/run/crio/crio.sock"],
    ["/run/my runtime.sock", "/run/my runtime.sock"],
    ["/run/a:b.sock", "/run/a:b.sock"],
  ])("%s is accepted", (text, path) => {
    expect(parseEndpoint(text)).toEqual({ kind: "unix", endpoint: `unix://${path}`, path });
  });

  test.each([
    ["tcp://10.0.0.1:1234", "only unix sockets are supported, not tcp"],
    ["http://localhost", "only unix sockets are supported, not http"],
    ["npipe:////./pipe/containerd", "only unix sockets are supported, not npipe"],
    ["unix://run/containerd.sock", "must be absolute"],
    ["run/containerd.sock", "must be absolute"],
    ["unix://", "must be absolute"],
    ["", "must be absolute"],
    ["/run/a\0b", "contains a NUL"],
    [`/run/${"x".repeat(103)}`, "longer than 107 bytes"],
    [`/run/${"ü".repeat(52)}`, "longer than 107 bytes"],
  ])("%j is refused", (text, message) => {
    const parsed = parseEndpoint(text);
    expect(parsed.kind).toBe("refused");
    expect(parsed.kind === "refused" && parsed.message).toContain(message);
    expect(parsed.kind === "refused" && parsed.message).toContain(
      "use a path such as unix:///run/containerd/containerd.sock",
    );
  });

  test("of every well-known socket is accepted", () => {
    expect(wellKnownSockets.map((path) => parseEndpoint(path).kind)).not.toContain("refused");
  });
});
