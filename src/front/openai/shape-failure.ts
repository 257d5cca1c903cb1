import type { z } from "zod";
import { Failure, type FieldViolation } from "../../core/failure.ts";

/** What is wrong with a request's shape, for the person who wrote it: paths as in the OpenAI format, in our words. */
export function toShapeFailure(error: z.ZodError): Failure {
  const violations = error.issues.slice(0, 20).map((issue): FieldViolation => {
    const { path, description } = explain(issue);
    return { field: toPath(path), description };
  });
  const [first = { field: "", description: "is not a chat completion request" }] = violations;
  const message =
    first.field === "" ? `The request body ${first.description}.` : `${first.field}: ${first.description}.`;
  return new Failure("invalid_request", message, { violations: violations.filter(({ field }) => field !== "") });
}

interface Explained {
  readonly path: readonly PropertyKey[];
  readonly description: string;
}

const TYPES: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
};

function explain(issue: z.core.$ZodIssue): Explained {
  const { path } = issue;
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined && /received undefined/.test(issue.message))
        return { path, description: "is required" };
      return { path, description: `must be ${TYPES[issue.expected] ?? issue.expected}` };
    case "invalid_value":
      return { path, description: `must be ${listed(issue.values.map(String))}` };
    case "too_big":
    case "too_small":
      return { path, description: "is out of range" };
    case "invalid_union":
      return explainUnion(issue);
    default:
      return { path, description: "is not valid" };
  }
}

/** Of several shapes, the one that came furthest is the one that was meant; otherwise all of them are named. */
function explainUnion(issue: z.core.$ZodIssueInvalidUnion): Explained {
  const inner = issue.errors.flat().map((each) => {
    const found = explain(each);
    return { path: [...issue.path, ...found.path], description: found.description };
  });
  const furthest = inner.reduce((a, b) => (b.path.length > a.path.length ? b : a), {
    path: issue.path,
    description: "",
  });
  if (furthest.path.length > issue.path.length) return furthest;
  const options = "options" in issue && Array.isArray(issue.options) ? issue.options.map(String) : [];
  if (options.length > 0) return { path: issue.path, description: `must be ${listed(options)}` };
  const shapes = [...new Set(inner.map(({ description }) => description.replace(/^must be /, "")))];
  return {
    path: issue.path,
    description: shapes.length === 0 ? "is not one of the known kinds" : `must be ${listed(shapes)}`,
  };
}

function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function toPath(path: readonly PropertyKey[]): string {
  return path
    .map((key, index) => (typeof key === "number" ? `[${key}]` : `${index === 0 ? "" : "."}${String(key)}`))
    .join("");
}
