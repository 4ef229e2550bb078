// Names of images and files of the node: references, patterns, keep lists, log directories.

import { baselineList } from "../../../src/cli/commands/keep.ts";
import {
  containerOfLogPath,
  imageId,
  logPathOf,
  podUidOfLogDirectory,
  podUidOfOldLogDirectory,
} from "../../../src/model/ids.ts";
import {
  fullReference,
  imageNames,
  normaliseRepository,
  parseReference,
  repositoryOf,
  splitReference,
  wholeDigest,
} from "../../../src/policy/image/reference.ts";
import { matchPattern, parseKeepFile, parseKeepPattern } from "../../../src/policy/keep/keep.ts";
import { anImage } from "../../support/build/values.ts";
import { textOf } from "../inputs.ts";
import { holds, same, type Target, textTarget } from "../target.ts";

const HEX = "0123456789abcdef".repeat(4);

const nameWords = [
  ..."nginx docker.io library / : @ * ** localhost [::1] :5000 registry.k8s.io pause 3.8".split(
    " ",
  ),
  ..."sha256: sha512: latest <none> import-2026-01-31 a A _ - . # docker-pullable://".split(" "),
  HEX,
  HEX.slice(0, 12),
  HEX.slice(0, 6),
];
const nameSamples = [
  "nginx",
  "docker.io/library/nginx:1.25",
  `registry.example:5000/team/app@sha256:${HEX}`,
  `r.example/a:1@sha256:${HEX}`,
  `sha256:${HEX}`,
  HEX,
  "[2001:db8::1]:5000/a/b:c",
  "<none>:<none>",
];
const names = textOf({ words: nameWords, samples: nameSamples });

const reference = textTarget("reference", names, (text) => {
  const { name, tag, digest } = splitReference(text);
  const whole = name + (tag === null ? "" : `:${tag}`) + (digest === null ? "" : `@${digest}`);
  same(whole, text, "the parts together");
  same(
    normaliseRepository(normaliseRepository(name)),
    normaliseRepository(name),
    "normalised twice",
  );
  const parsed = parseReference(text);
  const full = fullReference(text);
  if (parsed === null) {
    holds(full === null && repositoryOf(text) === null, "what is no reference names something");
    return;
  }
  if (parsed.kind === "digest") {
    same(wholeDigest(parsed.digest), parsed.digest, "the digest of a digest");
    return;
  }
  // A short name that is as long as a name may be is longer with its registry.
  if (text.length > 400) return;
  const again = parseReference(full ?? "");
  holds(again?.kind === "name", `${full} is no reference`);
  same([again.repository, again.digest], [parsed.repository, parsed.digest], "the full name means");
  same(
    again.tag ?? "latest",
    parsed.digest === null ? (parsed.tag ?? "latest") : "latest",
    "the tag",
  );
});

const keepPattern = textTarget("keep-pattern", names, (text) => {
  const parsed = parseKeepPattern(text);
  const named = parseReference(text);
  if (parsed.kind === "invalid") {
    holds(parsed.message !== "", "a refusal without a word");
    return;
  }
  holds(!/[\s\p{Cc}]/u.test(text), "a pattern has blanks or control characters");
  const image = anImage("other", {
    id: imageId(`sha256:${"f".repeat(64)}`),
    repoTags: named?.kind === "name" && named.digest === null ? [text] : [],
    repoDigests: named?.kind === "name" && named.digest !== null ? [text] : [],
  });
  // A name keeps the image of that very name.
  if (named?.kind === "name" && parsed.pattern.kind === "name" && !text.includes("://"))
    holds(matchPattern(parsed.pattern, imageNames(image)) !== null, `${text} does not keep itself`);
});

const keepFile = textTarget(
  "keep-file",
  textOf({
    words: [...nameWords, "\n", "\r\n", " ", "\t", " # why\n"],
    samples: [
      "nginx\nr.example/a:1\n",
      `\ufeff# list\r\nsha256:${HEX}\r\n\r\nregistry.k8s.io/** # all\r\n`,
    ],
  }),
  (text) => {
    const { rules, problems } = parseKeepFile(text, "f");
    if (!text.endsWith("\n")) {
      holds(problems.length > 0 && rules.length === 0, "a list that was cut off is valid");
      return;
    }
    const lines = text.replace(/^\ufeff/, "").split("\n");
    const said = lines.filter((line) => /^[ \t]*[^ \t#\r]/.test(line)).length;
    holds(rules.length + problems.length >= said, "a line was passed over");
    const again = parseKeepFile(`${rules.map(({ pattern }) => pattern).join("\n")}\n`, "f");
    same(again.problems, [], "patterns that were read are patterns");
    same(
      again.rules.map(({ pattern }) => pattern),
      rules.map(({ pattern }) => pattern),
      "read back",
    );
  },
);

const baseline = textTarget(
  "baseline",
  textOf({
    words: [...nameWords, "\n", "\r", " #"],
    samples: nameSamples,
  }),
  (text) => {
    // As a runtime or an archive may name images: a tag may hold anything.
    const [id = "", ...tags] = text.split("\t");
    const written = baselineList(
      [{ id: imageId(id), repoTags: [...tags, text] }],
      null,
      "2026-01-01T00:00:00Z",
    );
    const { rules, problems } = parseKeepFile(written.text, "f");
    same(problems, [], "problems of a list that we wrote");
    same(rules.length, written.added, "its patterns");
    const given = new Set([id, ...tags, text]);
    holds(
      rules.every(({ pattern }) => given.has(pattern)),
      "a pattern that no image has",
    );
  },
);

const logNames = textTarget(
  "log-names",
  textOf({
    words: [
      ..."default kube-system _ - . web-0 lost+found .. / 0.log .log uid-1 pod".split(" "),
      HEX,
    ],
    samples: [
      "default_web-0_b5a9c1e2-0000-4000-8000-000000000000",
      "default_web-0_b5a9c1e2/app/10.log",
      "b5a9c1e2-0000-4000-8000-000000000000",
    ],
  }),
  (text) => {
    for (const uid of [podUidOfLogDirectory(text), podUidOfOldLogDirectory(text)])
      if (uid !== null) {
        holds(text.endsWith(uid) && uid !== "", "the UID does not end the name");
        holds(/^[A-Za-z0-9-]+$/.test(uid) && !text.includes("/"), `${uid} may lead elsewhere`);
      }
    const log = containerOfLogPath(text.split("/"));
    if (log === null) return;
    const [podNamespace = "", podName = ""] = text.split("_");
    same(
      logPathOf({ ...log, podNamespace, podName })?.join("/"),
      text,
      "the path of its container",
    );
  },
);

export const nameTargets: readonly Target[] = [
  reference,
  keepPattern,
  keepFile,
  baseline,
  logNames,
];
