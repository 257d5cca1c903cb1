import { setTimeout as pause } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { Turns } from "../scheduling/turns.ts";
import { type Answer, composeAnswer, Refusal } from "./answer.ts";
import type { Order } from "./dialect.ts";
import type { Fault, FaultFailure } from "./faults.ts";
import type { Pace, Sender } from "./sender.ts";

export interface Stage {
  readonly order: Order;
  readonly fault: Fault | undefined;
  readonly sender: Sender;
  readonly pace: Pace;
}

type Break = Extract<FaultFailure, { kind: "break" }>;

const JSON_TYPE = "application/json; charset=utf-8";
const GARBAGE = '{"simulated":"garbage", this is not the JSON you are looking for';
const HTML =
  "<!doctype html><html><head><title>Bad gateway</title></head><body><h1>A page, not an answer</h1></body></html>\n";

/** Difference between `content-length` and the sent body. */
const MISSING_BYTES = 10;

/** Tokens of all answers to a request, which are in memory together. */
const MAX_TOKENS = 250_000;

/** Pictures are drawn two at a time: a large one takes 17 MB until it is compressed. */
const drawing = new Turns(2);

const STREAM_FAILURE = new Refusal(500, "Simulated fault: the answer broke off.");

/** Sends the answer to a completion request, or applies the requested fault. Throws `Refusal` before the first byte. */
export async function performCompletion(stage: Stage): Promise<void> {
  const { fault, sender, order } = stage;
  if (fault && fault.delayMs > 0) await pause(fault.delayMs, undefined, { signal: sender.signal });
  const failure = fault?.failure;
  switch (failure?.kind) {
    case "status": {
      const { message = `Simulated fault: status ${failure.status}.`, ...detail } = failure.detail;
      throw new Refusal(failure.status, message, detail);
    }
    case "hang":
      return sender.hang();
    case "reset":
      return sender.reset();
    case "garbage":
      return sendBody(sender, order.streamType ?? JSON_TYPE, order.streamType ? `data: ${GARBAGE}\n\n` : GARBAGE);
    case "html":
      return sendBody(sender, "text/html; charset=utf-8", HTML);
    case "empty":
      return sendBody(sender, order.streamType ?? JSON_TYPE, "");
    case "gzip":
    case "wrong-length":
      return sendAtOnce(stage, failure.kind);
    case "break":
    case "no-content":
    case "truncate":
    case undefined:
    default:
      return order.streamType === undefined ? sendWhole(stage) : sendStream(stage, order.streamType);
  }
}

async function composeAnswers({ order, fault, sender }: Stage): Promise<Answer[]> {
  const answers: Answer[] = [];
  let tokens = 0;
  for (let choice = 0; choice < order.choices; choice += 1) {
    // An answer may take some milliseconds.
    await sender.turn();
    const compose = (): Promise<Answer> => composeAnswer(order.prompt, choice);
    const answer = await (order.prompt.picture === undefined ? compose() : drawing.run("", sender.signal, compose));
    tokens += answer.usage.completionTokens;
    if (tokens > MAX_TOKENS)
      throw new Refusal(400, `The simulator writes at most ${MAX_TOKENS} tokens in all answers to a request.`);
    answers.push(answer);
  }
  const failure = fault?.failure?.kind;
  if (failure === "truncate") return answers.map((answer) => ({ ...answer, end: undefined }));
  if (failure === "no-content") {
    return answers.map((answer) => ({
      ...answer,
      parts: [],
      usage: { ...answer.usage, completionTokens: 0, reasoningTokens: 0, completionImageTokens: 0 },
    }));
  }
  return answers;
}

/** Sends the whole answer at once in an unusable encoding, after the time that its stream would take. */
async function sendAtOnce(stage: Stage, form: "gzip" | "wrong-length"): Promise<void> {
  const { order, sender, pace } = stage;
  const answers = await composeAnswers(stage);
  await pace.waitFor(Math.max(1, countContent(answers)));
  const events = (): string[] => Array.from(order.encodeStream(answers), ({ text }) => text);
  const body = order.streamType === undefined ? await order.encodeWhole(answers) : events().join("");
  const type = order.streamType ?? JSON_TYPE;
  if (form === "gzip") {
    const compressed = gzipSync(body);
    sender.start(200, { "content-type": type, "content-encoding": "gzip", "content-length": compressed.length });
    await sender.write(compressed);
    return sender.end();
  }
  sender.start(200, { "content-type": type, "content-length": Buffer.byteLength(body) + MISSING_BYTES });
  await sender.write(body);
  return sender.cut();
}

async function sendBody(sender: Sender, type: string, body: string): Promise<void> {
  sender.start(200, { "content-type": type, "content-length": Buffer.byteLength(body) });
  await sender.write(body);
  sender.end();
}

function readBreak(fault: Fault | undefined): Break | undefined {
  return fault?.failure?.kind === "break" ? fault.failure : undefined;
}

function countContent(answers: readonly Answer[]): number {
  return answers
    .flatMap((answer) => answer.parts)
    .reduce((sum, part) => sum + (part.kind === "text" || part.kind === "reasoning" ? part.tokens.length : 1), 0);
}

/** Sends a whole answer after the time that its stream would take. */
async function sendWhole(stage: Stage): Promise<void> {
  const { order, fault, sender, pace } = stage;
  const answers = await composeAnswers(stage);
  await pace.waitFor(Math.max(1, countContent(answers)));
  const broken = readBreak(fault);
  const body = Buffer.from(await order.encodeWhole(answers));
  if (broken?.how === "error") return sendBody(sender, JSON_TYPE, readErrorBody(order));
  sender.start(200, { "content-type": JSON_TYPE, "content-length": body.length });
  if (!broken) {
    await sender.write(body);
    return sender.end();
  }
  if (broken.after > 0) await sender.write(body.subarray(0, body.length / 2));
  return breakOff(stage, broken);
}

/** Extracts the JSON from the stream's error event, which is the error body in every dialect. */
function readErrorBody(order: Order): string {
  const event = order.encodeStreamError(STREAM_FAILURE);
  return event.slice(event.indexOf("{"), event.lastIndexOf("}") + 1);
}

async function sendStream(stage: Stage, type: string): Promise<void> {
  const { order, fault, sender, pace } = stage;
  const answers = await composeAnswers(stage);
  const broken = readBreak(fault);
  sender.start(200, { "content-type": type, "cache-control": "no-cache" });
  let count = 0;
  for (const event of order.encodeStream(answers)) {
    // An answer with fewer content events than `after` breaks before its finish.
    if (broken && (count >= broken.after || event.kind === "finish")) return breakOff(stage, broken);
    if (event.kind === "content") {
      count += 1;
      await pace.waitFor(count);
    }
    await sender.write(event.text);
  }
  sender.end();
}

async function breakOff({ order, sender }: Stage, { how }: Break): Promise<void> {
  switch (how) {
    case "error":
      await sender.write(order.encodeStreamError(STREAM_FAILURE));
      return sender.end();
    case "hang":
      return sender.hang();
    case "cut":
      return sender.cut();
    case "reset":
      return sender.reset();
  }
}
