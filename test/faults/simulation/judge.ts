import { getEventListeners } from "node:events";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { CompletionRecord, LedgerEntry } from "../../../src/core/ledger.ts";
import type { Model, Price } from "../../../src/core/model.ts";
import { WRITE_STALL_MS } from "../../../src/inbound/drain.ts";
import { hasBudgets, subjectOf } from "../../../src/limits/attributed.ts";
import { type Bank, MAX_BANK_DELAY_MS } from "./bank.ts";
import { type Journey, textOf, type UpstreamRecord } from "./journey.ts";
import { MAX_LOOKUP_MS } from "./key-directory.ts";
import type { SimulatedProcess } from "./process.ts";
import { SENT_BYTES } from "./upstreams.ts";
import type { Watch } from "./watch.ts";

/** Maximum database latency beyond a deadline: key look-up, budget hold, two batches of notes and two of entries. */
const GRACE_MS = MAX_LOOKUP_MS + 5 * MAX_BANK_DELAY_MS + 50;

/** Maximum time to write an entry: a batch of notes, its own batch and the one before. */
const WRITING_MS = 3 * MAX_BANK_DELAY_MS + 5;

/** A completion and its surroundings. */
export interface Case {
  readonly journey: Journey;
  readonly process: SimulatedProcess;
  readonly bank: Bank;
  readonly watch: Watch;
}

/** Judges a completion when it ends, from its caller's side. */
export function judgeEnd({ journey, process, bank, watch }: Case): void {
  const { calls, signal, records, number, isAsked, isAdmitted } = journey;
  const settles = isSettling(journey, process.clock.monotonic());
  if (records.length > 1 || (!settles && records.length !== (isAsked ? 1 : 0)))
    watch.breach("ledger", `${records.length} records`, number);
  if (settles) watch.count("completions that were settled later");
  judgeContent(journey, watch);
  judgeTime(journey, watch);
  for (const call of calls) {
    if (settles && call === calls.at(-1)) continue;
    judgeCall(call, journey, watch);
    if (call.state === "open") watch.breach("end", `call ${call.number} is open`, number);
    if (getEventListeners(call.signal, "abort").length > 0)
      watch.breach("end", `call ${call.number} still has an abort listener`, number);
  }
  if (signal !== undefined && getEventListeners(signal, "abort").length > 0)
    watch.breach("end", "its signal still has an abort listener", number);
  const outcome = outcomeOf(journey);
  if (!isReportedTo(journey, outcome)) watch.breach("ledger", `its caller did not receive ${outcome}`, number);
  const [record] = records;
  if (record !== undefined) judgeRecord(journey, record, watch);
  // The entry must be durable before the end is reported, unless the ledger is unavailable.
  if (isAdmitted && !settles && !bank.entries.has(journey.id) && !process.ledger.state().away)
    watch.breach("ledger", "its end was reported before its entry was durable", number);
  if (isAdmitted && !mayAsk(journey)) watch.breach("keys", "its key has no permission for a requested model", number);
  if (isAdmitted) judgeAttribution({ journey, process, watch });
  if (!isAdmitted && calls.length > 0) watch.breach("limits", "it was refused but caused upstream calls", number);
  watch.count(`outcomes: ${outcome}`);
}

/** The rate of its end user was taken, and it names one where its key requires that. */
function judgeAttribution({ journey, process, watch }: Pick<Case, "journey" | "process" | "watch">): void {
  const { id, number, attribution } = journey;
  const { keyFamilyId, attributionLimits = {} } = journey.key.grant.record;
  const { endUserRequestsPerMinute, endUserTokensPerMinute, requiresEndUser } = attributionLimits;
  const endUser = attribution?.endUser;
  if (requiresEndUser === true && endUser === undefined)
    watch.breach("limits", "it names no end user, which its key requires", number);
  if (endUser === undefined || (endUserRequestsPerMinute ?? endUserTokensPerMinute) === undefined) return;
  if (process.rates.takenOf(id)?.includes(subjectOf("end_user", keyFamilyId, endUser)) !== true)
    watch.breach("limits", `it took no rate of its end user ${endUser}`, number);
}

function judgeRecord(journey: Journey, record: CompletionRecord, watch: Watch): void {
  const outcome = outcomeOf(journey);
  if (record.outcome !== outcome)
    watch.breach("ledger", `outcome ${record.outcome} is recorded, expected ${outcome}`, journey.number);
  judgeAttempts(journey, record.attempts, watch);
}

/** Whether its last call continues, or continued, after the end for its token counts. */
function isSettling(journey: Journey, nowMs: number): boolean {
  const last = journey.calls.at(-1);
  if (last === undefined) return false;
  if (last.state !== "open") return last.outlived;
  return last.model.timeouts.settleMs > 0 && journey.isStopped(nowMs);
}

/** Judges, at the end of the world, a call that continued after the end of its completion. */
function judgeSettling(journey: Journey, watch: Watch): void {
  const { calls, records, number, endedMs = 0 } = journey;
  const last = calls.at(-1)!;
  const { settleMs } = last.model.timeouts;
  judgeCall(last, journey, watch);
  const breach = (what: string): void => watch.breach("end", what, number);
  if (last.state === "open") breach(`call ${last.number} is open`);
  if (getEventListeners(last.signal, "abort").length > 0) breach(`call ${last.number} still has an abort listener`);
  if ((last.endedMs ?? Infinity) > endedMs + settleMs)
    breach(`call ${last.number} continued for longer than settle_ms`);
  const [record] = records;
  if (records.length !== 1 || record === undefined) return watch.breach("ledger", `${records.length} records`, number);
  judgeRecord(journey, record, watch);
}

/** Whether the key may use every model in the request. */
function mayAsk({ key, request }: Journey): boolean {
  const { models } = key.grant.record;
  return models === "all" || [request.model, ...request.fallbackModels].every((model) => models.includes(model));
}

/** Whether a caller that did not cancel received the outcome. */
function isReportedTo({ failure, isReported }: Journey, outcome: string): boolean {
  return isReported || failure?.code === outcome;
}

/** The text must be complete, without repetitions, and from the named model. */
function judgeContent(
  { calls, isStream, isReported, text, chunks, servedModel, usage, number }: Journey,
  watch: Watch,
): void {
  const last = calls.at(-1);
  const breach = (what: string): void => watch.breach("chunks", what, number);
  if (isReported && (last?.state !== "ended" || last.batches === 0)) breach("it was served without a successful call");
  if (servedModel !== undefined && servedModel !== last?.model.id)
    breach(`reported model ${servedModel}, expected ${last?.model.id}`);
  if (isStream && last !== undefined) {
    if (last.outlived || last.state === "open" ? chunks > last.chunks : chunks !== last.chunks)
      breach(`${last.chunks} chunks were sent, ${chunks} arrived`);
    for (const earlier of calls.slice(0, -1))
      if (earlier.batches > 0) breach(`call ${earlier.number} had sent content before`);
  }
  if (!isStream && isReported && last !== undefined) {
    const said = Array.from({ length: last.chunks }, (_, index) => textOf(last.number, index)).join("");
    if (text !== said) breach(`${text} arrived, ${said} was sent`);
  }
  if (isReported && !sameUsage(usage, last?.usage)) breach("the usage differs from the provider's");
}

/** No call may exceed its deadline: the caller's, the gateway's, or that of a slow reader. */
function judgeTime(
  { arrivedMs, recordedMs, endedMs = Infinity, habits, primary, isStream, number }: Journey,
  watch: Watch,
): void {
  const totalMs = primary?.timeouts.totalMs ?? 0;
  if (recordedMs !== undefined && endedMs - recordedMs > WRITING_MS)
    watch.breach("end", `writing its entry took ${endedMs - recordedMs} ms`, number);
  const readingMs = isStream && habits.pauses > 0 ? WRITE_STALL_MS + 1 : 0;
  const boundMs = Math.min(totalMs + readingMs, habits.deadlineMs ?? Infinity, habits.leavesAfterMs ?? Infinity);
  if (endedMs - arrivedMs > boundMs + GRACE_MS)
    watch.breach("end", `it took ${endedMs - arrivedMs} ms, at most ${boundMs} are permitted`, number);
}

/** The first-content timeout applies before the first content, and only then. */
function judgeCall(call: UpstreamRecord, { isStream, number }: Journey, watch: Watch): void {
  const { signal, batches, startedMs, endedMs = Infinity } = call;
  const { firstContentMs, idleMs, settleMs } = call.model.timeouts;
  const settledMs = call.outlived ? settleMs : 0;
  const limitMs = (isStream ? firstContentMs : firstContentMs + idleMs) + settledMs;
  if (batches === 0 && endedMs - startedMs > limitMs)
    watch.breach("end", `call ${call.number} sent nothing for ${endedMs - startedMs} ms`, number);
  const wasLate = signal.reason instanceof Failure && signal.reason.message.includes("did not answer in time");
  if (isStream && batches > 0 && wasLate)
    watch.breach("end", `the first-content timeout ended call ${call.number} after its first content`, number);
}

/** Every call must be recorded as an attempt, in order; other attempts must be skipped ones. */
function judgeAttempts({ calls, number }: Journey, attempts: LedgerEntry["attempts"], watch: Watch): void {
  const reported = attempts.filter(({ outcome }) => outcome !== "skipped");
  const models = calls.map(({ model }) => model.id).join();
  if (reported.map(({ model }) => model).join() !== models)
    watch.breach(
      "attempts",
      `${models} were called, but ${reported.map(({ model }) => model).join()} are recorded`,
      number,
    );
  for (const [index, { outcome }] of reported.entries()) {
    const call = calls[index];
    // The result of a call that continued after the end is not the attempt's outcome.
    if (call === undefined || (call.outlived && outcome !== "served")) continue;
    if ((outcome === "served") !== (call.state === "ended" && call.batches > 0))
      watch.breach("attempts", `call ${call.number} ${call.state}, but ${outcome} is recorded`, number);
  }
}

/** The visible outcome. */
function outcomeOf({ isReported, failure, calls, chunks, isStream }: Journey): string {
  if (isReported) return "served";
  const last = calls.at(-1);
  // After the first content the outcome is that of the call.
  if (isStream && chunks > 0 && last?.state === "failed" && !last.outlived) return last.endedAs ?? "internal";
  return failure?.code ?? "nothing";
}

/** Judges the ledger entry of a completion, at the end of the world. */
export function judgeEntry({ journey, process, bank, watch }: Case): void {
  const { id, number, isAdmitted, isLost } = journey;
  const entry = bank.entries.get(id);
  if (isLost) return;
  if (entry === undefined) {
    if (isAdmitted) watch.breach("ledger", "it is not in the ledger", number);
    return;
  }
  if (!isAdmitted) watch.breach("ledger", "it was refused and is in the ledger", number);
  if (journey.calls.at(-1)?.outlived === true) judgeSettling(journey, watch);
  const expected = expectedEntry(journey);
  for (const [field, value] of Object.entries(expected)) {
    const found = entry[field as keyof typeof expected];
    if (found !== value) watch.breach("ledger", `${field}: ${String(found)}, expected ${String(value)}`, number);
  }
  if (JSON.stringify(entry.attribution) !== JSON.stringify(journey.attribution))
    watch.breach("ledger", `attribution: ${JSON.stringify(entry.attribution)}`, number);
  const { tokens, estimated, costMicroUsd } = expectedTokens(journey);
  const { prompt, completion, cached } = entry.tokens;
  const found = `${prompt}, ${completion}, ${cached}, ${entry.estimated}, ${entry.costMicroUsd}`;
  const right = `${tokens.prompt}, ${tokens.completion}, ${tokens.cached}, ${estimated}, ${costMicroUsd}`;
  if (found !== right) watch.breach("ledger", `tokens and cost: ${found}, expected ${right}`, number);
  const used = process.rates.usedBy(id);
  if (used !== undefined && used !== prompt + completion)
    watch.breach("limits", `${used} used tokens were reported, expected ${prompt + completion}`, number);
}

function expectedEntry(journey: Journey) {
  const { id, key, request, isStream, servedModel, arrivedMs, endedMs = 0 } = journey;
  const outcome = outcomeOf(journey);
  return {
    completionId: id,
    keyId: key.id,
    accountId: key.grant.record.accountId,
    requestedModel: request.model,
    servedModel,
    streamed: isStream,
    outcome,
    partial: servedModel !== undefined && outcome !== "served",
    ...(endedMs < arrivedMs && { durationMs: NaN }),
  } as const;
}

interface Expected {
  readonly tokens: { readonly prompt: number; readonly completion: number; readonly cached: number };
  readonly estimated: boolean;
  readonly costMicroUsd: number;
}

/** Billable tokens of the completion. */
function expectedTokens(journey: Journey): Expected {
  const all = journey.calls.map((call) => expectedOf(call, journey));
  const sum = (of: (one: Expected) => number): number => all.reduce((total, one) => total + of(one), 0);
  return {
    tokens: {
      prompt: sum(({ tokens }) => tokens.prompt),
      completion: sum(({ tokens }) => tokens.completion),
      cached: sum(({ tokens }) => tokens.cached),
    },
    estimated: all.some(({ estimated }) => estimated),
    costMicroUsd: sum(({ costMicroUsd }) => costMicroUsd),
  };
}

/**
 * Billable tokens of one call: the provider's count, if it was received; zero after a refusal before any content; else
 * the larger of the received text and what can have been generated in the time, at most the maximum.
 */
function expectedOf(call: UpstreamRecord, journey: Journey): Expected {
  const { request, isStream, promptTokens } = journey;
  const priced = (tokens: Expected["tokens"], estimated: boolean): Expected => {
    return { tokens, estimated, costMicroUsd: costOf(tokens, call.model) };
  };
  const isLast = call === journey.calls.at(-1);
  const { usage } = call;
  // A broken whole answer has no counts, unless it was fetched as a stream for a caller that cancelled.
  const isHeard = call.state === "ended" || (isStream && isLast) || (!call.isWhole && call.outlived);
  if (usage !== undefined && isHeard && (isLast || call.outlived))
    return priced(
      { prompt: usage.inputTokens, completion: usage.outputTokens, cached: usage.cachedInputTokens ?? 0 },
      false,
    );
  const hasSpoken = call.batches > 0 && !call.isWhole;
  if (REFUSED.has(call.endedAs ?? "") && !hasSpoken) return priced({ prompt: 0, completion: 0, cached: 0 }, false);
  const isServed = journey.isReported && isLast;
  const chunks = call.isWhole && call.state !== "ended" ? 0 : call.chunks;
  const said = Array.from({ length: chunks }, (_, index) => textOf(call.number, index)).join("").length / 4;
  const elapsedMs = (call.endedMs ?? 0) - call.startedMs;
  // Under a budget an uncounted prompt is booked with its upper bound, and so is a whole answer that may still be generated.
  const { record, accountLimits } = journey.key.grant;
  const hasBudget =
    hasBudgets(record.attributionLimits ?? {}) ||
    [record.limits, accountLimits].some((limits) => limits.monthlyBudgetMicroUsd !== undefined);
  const isClosed = call.state !== "ended" && call.signal.aborted;
  const billsRest = hasBudget && call.isWhole && isClosed;
  const byTime = billsRest ? Infinity : Math.ceil((elapsedMs / 1000) * call.model.maxTokensPerSecond);
  const generated = isServed ? 0 : byTime;
  const completion = Math.min(Math.max(Math.ceil(said), generated), request.maxOutputTokens ?? 0);
  const tokens = { prompt: hasBudget ? SENT_BYTES : promptTokens, completion, cached: 0 };
  // What was not counted is rounded up, an answer that was received as usual.
  return isServed
    ? priced(tokens, true)
    : { tokens, estimated: true, costMicroUsd: Math.ceil(exactCost(tokens, call.model)) };
}

const REFUSED: ReadonlySet<string> = new Set(["upstream_rejected", "upstream_rate_limited", "upstream_refused_us"]);

function costOf(tokens: Expected["tokens"], model: Model | undefined): number {
  return Math.round(exactCost(tokens, model));
}

function exactCost(tokens: Expected["tokens"], model: Model | undefined): number {
  const price: Price | undefined = model?.price;
  if (price === undefined) return 0;
  const { prompt, completion, cached } = tokens;
  const millionths = (prompt - cached) * price.input + cached * price.cachedInput + completion * price.output;
  return millionths / 1e6;
}

function sameUsage(one: Usage | undefined, other: Usage | undefined): boolean {
  return one?.inputTokens === other?.inputTokens && one?.outputTokens === other?.outputTokens;
}
