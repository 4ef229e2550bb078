/** Doctor's check of the sockets: which runtime answers, and is the choice clear? */

import type { SocketFact } from "../openers.ts";
import { failed, ok, type Verdict } from "./check.ts";

/** `named`: the configured endpoint, whose fact comes first; `null`: none. */
export function socketCheck(facts: readonly SocketFact[], named: string | null): Verdict {
  return named === null ? foundCheck(facts) : namedCheck(facts);
}

function namedCheck([first, ...others]: readonly SocketFact[]): Verdict {
  if (first === undefined) return failed("the configured socket was not checked", null);
  const { answer } = first;
  if (answer.kind === "error") return failed(answer.message, null);
  const beside = others.filter((it) => it.answer.kind === "runtime");
  const also = beside.length === 0 ? "" : `; also ${beside.map(wordsOf).join(" and ")}`;
  return ok(`${wordsOf(first)}, as configured${also}`);
}

function foundCheck(facts: readonly SocketFact[]): Verdict {
  const answering = facts.filter((it) => it.answer.kind === "runtime");
  const [only] = answering;
  if (answering.length > 1)
    return failed(
      `several runtimes answer, so run and gc refuse to run: ${answering.map(wordsOf).join(" and ")}`,
      "specify one with --container-runtime-endpoint; Docker's own containerd has no pod images",
    );
  if (only !== undefined) return ok(wordsOf(only));
  const errors = facts.flatMap(({ answer }) => (answer.kind === "error" ? [answer] : []));
  if (errors.length === 0)
    return failed(
      "none of the known sockets exists",
      "start the runtime, or specify its socket with --container-runtime-endpoint",
    );
  return failed(errors.map(({ message }) => message).join("; "), null);
}

const wordsOf = ({ endpoint, answer }: SocketFact): string =>
  answer.kind === "runtime"
    ? `${endpoint} answers (${answer.name} ${answer.version})`
    : `${endpoint} does not answer`;
