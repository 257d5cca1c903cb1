import { tokenTexts } from "../../support/faults/call-plan.ts";
import type { JournaledCall } from "../../support/faults/fault-server.ts";
import { promiseOf } from "../../support/faults/body.ts";
import { type CallerPlan, DEAD_MODEL } from "./caller-plan.ts";
import type { Reply } from "./reply.ts";

/** An error: text that is lost, repeated or foreign; a wrong end; a wrong ledger entry. */
export interface Difference {
  readonly kind: "text" | "end" | "ledger";
  readonly request: number;
  readonly what: string;
}

/** An answer that took this long may have exceeded the product's timeouts on a busy machine. */
const SLOW_MS = 800;

/** A completion as seen by caller, upstream and ledger. */
export interface Case {
  readonly plan: CallerPlan;
  readonly reply: Reply;
  /** Upstream calls in order of arrival. */
  readonly calls: readonly JournaledCall[];
}

/** Returns the errors of a completion from the caller's and the upstream's view. */
export function judge(seen: Case): Difference[] {
  const { request } = seen.plan;
  const text = judgeText(seen).map((what) => ({ kind: "text" as const, request, what }));
  const ends = [...judgeEnd(seen), ...judgeCalls(seen)].map((what) => ({ kind: "end" as const, request, what }));
  return [...text, ...ends];
}

/** The possible texts of a call's answer, each a prefix of the next. */
function textsOf({ plan, wire, streamed }: JournaledCall): { readonly most: string; readonly all: string } {
  const texts = tokenTexts(plan);
  const promised = promiseOf(plan, { wire, streamed });
  return { most: texts.slice(0, promised.tokens).join(""), all: texts.join("") };
}

/** Sorts the calls by the plan. A busy upstream may read an abandoned call after its successor. */
export function inOrder({ plan, calls }: Pick<Case, "plan" | "calls">): readonly JournaledCall[] {
  const candidates = [plan.model, ...plan.fallbacks];
  return calls.toSorted((a, b) => candidates.indexOf(a.model) - candidates.indexOf(b.model));
}

/** Returns the last call; of two calls of the same model the one that the text is from, if any. */
export function lastCall({ reply: { text }, ...seen }: Case): JournaledCall | undefined {
  const calls = inOrder(seen);
  const last = calls.at(-1);
  const same = calls.filter((call) => call.model === last?.model);
  return (text === "" ? undefined : same.findLast((call) => textsOf(call).all.startsWith(text))) ?? last;
}

/** The delivered text must be a prefix of one answer, and complete if the answer was. */
function judgeText(seen: Case): string[] {
  const { text, end, model } = seen.reply;
  const last = lastCall(seen);
  if (text === "") return end === "complete" ? ["a complete answer without its text"] : [];
  if (last === undefined) return ["text that no upstream has sent"];
  // There is no other call after the commit, so the text must be the last one's.
  const { most, all } = textsOf(last);
  if (!most.startsWith(text)) return [`text that is not the beginning of call ${last.plan.call}: ${show(text, most)}`];
  if (end === "complete" && text !== all) return [`a complete answer that lacks some of its text: ${show(text, all)}`];
  if (model !== undefined && model !== last.model)
    return [`reported model ${model}, but the text is from ${last.model}`];
  return [];
}

/** Shows where two texts differ. */
function show(text: string, expected: string): string {
  let at = 0;
  while (at < text.length && text[at] === expected[at]) at += 1;
  const around = (whole: string): string => JSON.stringify(whole.slice(Math.max(0, at - 30), at + 60));
  return `at ${at} of ${text.length} (${expected.length}): ${around(text)} for ${around(expected)}`;
}

/** There must be one end, with the right result. */
function judgeEnd(seen: Case): string[] {
  const { plan, reply } = seen;
  const { end, failure, breaches } = reply;
  const found = breaches.map((breach) => `form: ${breach}`);
  if (end === "broken") found.push("the connection ended without an end of the answer");
  if (end === "left" && plan.leaving === undefined && plan.deadlineMs === undefined)
    found.push("cancelled, although the caller did not cancel");
  if (failure?.reason === "INTERNAL" || failure?.message === "The gateway failed unexpectedly.")
    found.push("internal error of the gateway");
  const last = lastCall(seen);
  if (last === undefined) return found;
  const { complete } = promiseOf(last.plan, last);
  if (end === "complete" && complete === "no") found.push("complete, although the upstream's answer was not");
  const isAnswered = complete === "yes" && last.state === "played" && last.tookMs < SLOW_MS;
  if (end === "failed" && isAnswered && plan.deadlineMs === undefined)
    found.push(`failed after a good answer: ${JSON.stringify(failure)}`);
  const usage = last.plan.usage;
  if (reply.usage && (reply.usage.prompt !== usage.prompt || reply.usage.completion !== usage.completion))
    found.push(`usage ${JSON.stringify(reply.usage)} for ${JSON.stringify(usage)}`);
  return found;
}

/** The calls must follow the plan: the primary twice, each fallback once. */
function judgeCalls({ plan, ...rest }: Case): string[] {
  const calls = inOrder({ plan, calls: rest.calls });
  const candidates = [...new Set([plan.model, ...plan.fallbacks])];
  const allowed = [plan.model, ...candidates].filter((model) => model !== DEAD_MODEL);
  let at = 0;
  for (const { model } of calls) {
    while (at < allowed.length && allowed[at] !== model) at += 1;
    if (at === allowed.length)
      return [`calls of ${calls.map((call) => call.model).join(", ")}, which the plan ${allowed.join(", ")} has not`];
    at += 1;
  }
  return calls.some((call) => call.state === "open") ? ["a call that is still open"] : [];
}
