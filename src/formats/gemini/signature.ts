import type { Part } from "../../../gen/parley/v1/message_pb.js";
import { toPart } from "../../core/chunks.ts";
import { measureJson } from "../../encoding/json-size.ts";

/*
 * The format has signatures of parts, but clients do not see all reasoning, or send it back without its signature. So reasoning is sent
 * in the signature of the part after it: as JSON in base64, because the vendor's Python client refuses an answer whose signatures are
 * not base64.
 */

/** A piece of reasoning that must be sent back. */
export interface SignedReasoning {
  readonly text: string;
  readonly redacted: string;
  readonly signature: string;
}

/** Base64 in which Node's decoder skips no character. */
const BASE64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/** The text that the vendor accepts in place of an unknown signature. It is not base64 in the standard alphabet. */
const SENTINEL = "skip_thought_signature_validator";

/** The beginning of every envelope: `{"parley"` in base64. */
const MARK = "eyJwYXJsZXki";

/** Limits of an envelope's JSON, which has a few pieces of reasoning. */
const MAX_ENVELOPE = { depth: 4, values: 128 };

/** `thoughtSignature` of a part, with the reasoning before it; undefined without either. */
export function writeSignature(signature: string, reasoning: readonly SignedReasoning[]): string | undefined {
  if (reasoning.length === 0 && (signature === "" || BASE64.test(signature))) return signature || undefined;
  const blocks = reasoning.map(writeReasoning);
  const envelope = {
    parley: 1,
    ...(blocks.length > 0 && { reasoning: blocks.length === 1 ? blocks[0] : blocks }),
    ...(signature !== "" && { signature }),
  };
  return Buffer.from(JSON.stringify(envelope)).toString("base64");
}

function writeReasoning({ text, redacted, signature }: SignedReasoning): object {
  return redacted === "" ? { text, signature } : { redacted };
}

/** The content of a `thoughtSignature`. */
export interface ReadSignature {
  readonly signature: string;
  readonly reasoning: readonly Part[];
}

const NONE: ReadSignature = { signature: "", reasoning: [] };

/** Reads `thoughtSignature`. The vendor's Python client sends it back in the URL-safe alphabet. */
export function readSignature(given: string | null | undefined): ReadSignature {
  if (given == null || given === "") return NONE;
  if (!BASE64.test(given) || given === SENTINEL) return { signature: given, reasoning: [] };
  const standard = toStandardAlphabet(given);
  return (standard.startsWith(MARK) ? readEnvelope(standard) : undefined) ?? { signature: standard, reasoning: [] };
}

function toStandardAlphabet(base64: string): string {
  if (/[-_]/.test(base64)) return Buffer.from(base64, "base64url").toString("base64");
  return base64.endsWith("=") ? base64 : base64.padEnd(Math.ceil(base64.length / 4) * 4, "=");
}

function readEnvelope(base64: string): ReadSignature | undefined {
  const text = Buffer.from(base64, "base64").toString();
  const { depth, values } = measureJson(text, MAX_ENVELOPE);
  if (depth > MAX_ENVELOPE.depth || values > MAX_ENVELOPE.values) return undefined;
  let envelope: Readonly<Record<string, unknown>>;
  try {
    envelope = JSON.parse(text) as typeof envelope;
  } catch {
    return undefined;
  }
  const { reasoning, signature } = envelope;
  return {
    signature: textOf(signature),
    reasoning: reasoning === undefined ? [] : [reasoning].flat().map(toReasoning),
  };
}

function toReasoning(given: unknown): Part {
  const { text, redacted, signature } = (given ?? {}) as Readonly<Record<string, unknown>>;
  const value = { $typeName: "parley.v1.Reasoning", text: textOf(text), redacted: textOf(redacted) } as const;
  return toPart({ case: "reasoning", value }, textOf(signature));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
