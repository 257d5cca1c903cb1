import { fingerprint } from "../dice.ts";

/** Where a reasoning block belongs: which of how many blocks of which answer. */
export interface Place {
  readonly answer: string;
  readonly index: number;
  readonly count: number;
}

const KEY = "the simulator's own hand";

function stamp({ answer, index, count }: Place, text: string): string {
  return fingerprint(JSON.stringify([KEY, answer, index, count, text]));
}

/** The signature of a reasoning block, by which the simulator verifies that the block is unchanged. */
export function sealBlock(place: Place, text: string): string {
  const { answer, index, count } = place;
  return Buffer.from(JSON.stringify({ answer, index, count, stamp: stamp(place, text) })).toString("base64");
}

/** The place that a signature names, when it is one of ours and its block says the same text as it did. */
export function readSeal(signature: string, text: string): Place | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(signature, "base64").toString());
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { answer, index, count, stamp: given } = value as Partial<Record<keyof Place | "stamp", unknown>>;
  if (typeof answer !== "string" || typeof index !== "number" || typeof count !== "number") return undefined;
  const place = { answer, index, count };
  // Compared as a whole: a signature that decodes to the same but is written otherwise was changed too.
  return given === stamp(place, text) && sealBlock(place, text) === signature ? place : undefined;
}
