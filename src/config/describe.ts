import type { z } from "zod";
import type { Problem } from "./config-error.ts";
import { nearest } from "../encoding/nearest.ts";

const NOUNS: Readonly<Record<string, string>> = {
  array: "a list",
  boolean: "true or false",
  int: "a whole number",
  null: "nothing",
  number: "a number",
  object: "a map",
  record: "a map",
  string: "text",
  tuple: "a list of two",
};

const COUNTED: Readonly<Record<string, string>> = { string: " characters long", array: " entries long" };

/** Describes an issue of the schema. Never quotes the value: it may be a secret. */
export function describeIssue(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is required";
      if (issue.input === null) return `must be ${noun(issue.expected)}, but it is empty`;
      return `must be ${noun(issue.expected)}, not ${noun(kindOf(issue.input))}`;
    case "too_small": {
      const bound = issue.inclusive ? "at least" : "more than";
      return `must be ${bound} ${issue.minimum}${COUNTED[issue.origin] ?? ""}`;
    }
    case "too_big":
      return `must be at most ${issue.maximum}${COUNTED[issue.origin] ?? ""}`;
    case "invalid_value":
      return `must be one of ${issue.values.map((value) => String(value)).join(", ")}`;
    case "invalid_key":
      return issue.issues.map((inner) => inner.message).join("; ");
    case "invalid_format":
    case "not_multiple_of":
    case "unrecognized_keys":
    case "invalid_union":
    case "invalid_element":
    case "custom":
      // The schema sets its own texts for these.
      return "is not valid";
  }
}

/** Describes an unknown key, with the nearest known one. */
export function describeUnknownKey(key: string, known: readonly string[]): string {
  const meant = nearest(key, known);
  return `unknown key; ${meant === undefined ? `known here: ${known.join(", ")}` : `did you mean ${meant}?`}`;
}

/** The problems that a finished issue stands for: one, or one per unknown key. */
export function toProblems(issue: z.core.$ZodIssue): Problem[] {
  const path = issue.path.map((step) => (typeof step === "number" ? step : String(step)));
  if (issue.code === "unrecognized_keys") {
    const texts = issue.message.split("\n");
    return issue.keys.map((key, index) => ({ path: [...path, key], text: texts[index] ?? "unknown key", atKey: true }));
  }
  return [{ path, text: issue.message, ...(issue.code === "invalid_key" && { atKey: true }) }];
}

function noun(kind: string): string {
  return NOUNS[kind] ?? "something else";
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && !Number.isFinite(value) ? "infinite" : typeof value;
}
