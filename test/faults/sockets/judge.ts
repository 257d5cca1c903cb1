import { tokenTexts } from "../../support/faults/call-plan.ts";
import type { JournaledCall } from "../../support/faults/fault-server.ts";
import { promiseOf } from "../../support/faults/body.ts";
import { type CallerPlan, DEAD_MODEL } from "./caller-plan.ts";
import type { Reply } from "./reply.ts";

/** Something that must not be: text that is lost, repeated or foreign; a wrong end; an entry that does not agree. */
export interface Difference {
  readonly kind: "text" | "end" | "ledger";
  readonly request: number;
  readonly what: string;
}

/** On a machine with too much to do, an answer that has taken so long may have come too late for the product's limits. */
const SLOW_MS = 800;

/** A completion as all three sides saw it. */
export interface Case {
  readonly plan: CallerPlan;
  readonly reply: Reply;
  /** What reached the upstream, in order. */
  readonly calls: readonly JournaledCall[];
}

/** What of a completion must not be, as far as its caller and the upstream can tell. */
export function judge(seen: Case): Difference[] {
  const { request } = seen.plan;
  const text = judgeText(seen).map((what) => ({ kind: "text" as const, request, what }));
  const ends = [...judgeEnd(seen), ...judgeCalls(seen)].map((what) => ({ kind: "end" as const, request, what }));
  return [...text, ...ends];
}

/** The texts that the answer to a call can have had, each a prefix of the next. */
function textsOf({ plan, wire, streamed }: JournaledCall): { readonly most: string; readonly all: string } {
  const texts = tokenTexts(plan);
  const promised = promiseOf(plan, { wire, streamed });
  return { most: texts.slice(0, promised.tokens).join(""), all: texts.join("") };
}

/**
 * The calls in the order of the plan. They arrive in it too, but an upstream with too much to do may read the one that was
 * given up after the one that took its place.
 */
export function inOrder({ plan, calls }: Pick<Case, "plan" | "calls">): readonly JournaledCall[] {
  const candidates = [plan.model, ...plan.fallbacks];
  return calls.toSorted((a, b) => candidates.indexOf(a.model) - candidates.indexOf(b.model));
}

/** The last call: of two of the same model the one that the text is of, if it is of any. */
export function lastCall({ reply: { text }, ...seen }: Case): JournaledCall | undefined {
  const calls = inOrder(seen);
  const last = calls.at(-1);
  const same = calls.filter((call) => call.model === last?.model);
  return (text === "" ? undefined : same.findLast((call) => textsOf(call).all.startsWith(text))) ?? last;
}

/** What was delivered is the beginning of one answer, and all of it when the answer was. */
function judgeText(seen: Case): string[] {
  const { text, end, model } = seen.reply;
  const last = lastCall(seen);
  if (text === "") return end === "complete" ? ["a complete answer without its text"] : [];
  if (last === undefined) return ["text that no upstream has said"];
  // After the commit there is no other call, so the text can only be the last one's.
  const { most, all } = textsOf(last);
  if (!most.startsWith(text)) return [`text that is not the beginning of call ${last.plan.call}: ${show(text, most)}`];
  if (end === "complete" && text !== all) return [`a complete answer that lacks some of its text: ${show(text, all)}`];
  if (model !== undefined && model !== last.model) return [`said to be of ${model}, and is of ${last.model}`];
  return [];
}

/** Where two texts part. */
function show(text: string, expected: string): string {
  let at = 0;
  while (at < text.length && text[at] === expected[at]) at += 1;
  const around = (whole: string): string => JSON.stringify(whole.slice(Math.max(0, at - 30), at + 60));
  return `at ${at} of ${text.length} (${expected.length}): ${around(text)} for ${around(expected)}`;
}

/** One end, and the right one. */
function judgeEnd(seen: Case): string[] {
  const { plan, reply } = seen;
  const { end, failure, breaches } = reply;
  const found = breaches.map((breach) => `form: ${breach}`);
  if (end === "broken") found.push("the connection ended without an end of the answer");
  if (end === "left" && plan.leaving === undefined && plan.deadlineMs === undefined)
    found.push("left by a caller who stays");
  if (failure?.reason === "INTERNAL" || failure?.message === "The gateway failed unexpectedly.")
    found.push("the gateway says that it failed itself");
  const last = lastCall(seen);
  if (last === undefined) return found;
  const { complete } = promiseOf(last.plan, last);
  if (end === "complete" && complete === "no") found.push("complete, and the upstream never said so");
  const isAnswered = complete === "yes" && last.state === "played" && last.tookMs < SLOW_MS;
  if (end === "failed" && isAnswered && plan.deadlineMs === undefined)
    found.push(`failed after a good answer: ${JSON.stringify(failure)}`);
  const usage = last.plan.usage;
  if (reply.usage && (reply.usage.prompt !== usage.prompt || reply.usage.completion !== usage.completion))
    found.push(`usage ${JSON.stringify(reply.usage)} for ${JSON.stringify(usage)}`);
  return found;
}

/** No more calls than the plan allows, in its order: the primary twice, each fallback once. */
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
