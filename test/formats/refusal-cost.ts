import { expect } from "vitest";
import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../src/core/failure.ts";
import { validate } from "../../src/core/validate.ts";
import { parseBodyText } from "../../src/inbound/http/exchange.ts";
import { compareCpuMs } from "../support/cpu-time.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";

/** Reads a parsed body as a request of a format. */
type Read = (json: unknown) => { readonly request: CompletionRequest };

const model = modelOf("m", new ScriptedProvider(new FakeClock(), {}));

/** What the gateway does with a parsed body until it is refused; undefined when it is taken. */
export function refusalOf(read: Read, parse: () => unknown): Failure | undefined {
  try {
    validate(read(parse()).request, model, () => []);
    return undefined;
  } catch (reason) {
    if (reason instanceof Failure) return reason;
    throw reason;
  }
}

/** A list of JSON with one element many times. */
export const many = (count: number, element: string): string => `[${Array(count).fill(element).join(",")}]`;

/** Fields of JSON with the names `key0`, `key1` and so on. */
export const keys = (count: number): string => Array.from({ length: count }, (_, at) => `"key${at}":0`).join(",");

/**
 * Largest cost: a multiple of the reference's, and a time for collections of a large heap, which other test files have filled. A refusal
 * that went through all violations of these bodies took more than ten times the reference.
 */
const FACTOR = 4;
const NOISE_MS = 12;

/** CPU time of the work, and its limit by the time of the reference. */
export function costOf(work: () => unknown, reference: () => unknown) {
  const bound = (ms: number): number => FACTOR * ms + NOISE_MS;
  const { workMs, referenceMs } = compareCpuMs(work, reference, (least) => least.workMs <= bound(least.referenceMs));
  return { workMs, limitMs: bound(referenceMs) };
}

/**
 * CPU time of the refusal of a body, and its limit by the time of parsing it. Reading is not free of charge either: the encoding of a body
 * is checked, and its values are counted.
 */
export function costOfRefusal(text: string, read: Read) {
  const bytes = Buffer.from(text);
  const refuse = (): Failure | undefined => refusalOf(read, () => parseBodyText(bytes).json);
  const failure = refuse();
  expect(["invalid_request", "request_too_large"]).toContain(failure?.code);
  expect(failure!.violations.length).toBeLessThanOrEqual(20);
  return costOf(refuse, () => JSON.parse(bytes.toString("utf8")));
}
