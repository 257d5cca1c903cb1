import * as z from "zod";

/** The first validation error of a request, independent of the dialect. */
export interface Flaw {
  /** Keys and indexes from the root to the value; for an unknown field, to the field itself. */
  readonly path: readonly (string | number)[];
  readonly kind: "unknown" | "missing" | "type" | "choice" | "too_small" | "too_big" | "rule";
  /** Expected type, choices or bound; the whole message for kind `rule`. */
  readonly expected: string;
  readonly received: unknown;
}

type Issue = z.core.$ZodIssue;

/** Selects the issue with the longest path among the branches of a union, as the most specific one. */
function pickFurthest(branches: readonly (readonly Issue[])[]): Issue | undefined {
  return branches
    .flatMap((issues) => issues.slice(0, 1))
    .map(descend)
    .reduce<Issue | undefined>(
      (best, issue) => (best && best.path.length >= issue.path.length ? best : issue),
      undefined,
    );
}

function descend(issue: Issue): Issue {
  if (issue.code !== "invalid_union") return issue;
  const inner = pickFurthest(issue.errors);
  return inner === undefined ? issue : { ...inner, path: [...issue.path, ...inner.path] };
}

function describeFlaw(issue: Issue): Flaw {
  const path = issue.path.map((step) => (typeof step === "symbol" ? String(step) : step));
  const received: unknown = issue.input;
  switch (issue.code) {
    case "unrecognized_keys":
      return { path: [...path, issue.keys[0] ?? ""], kind: "unknown", expected: "", received };
    case "invalid_type":
      return { path, kind: received === undefined ? "missing" : "type", expected: issue.expected, received };
    case "invalid_value":
      return {
        path,
        kind: received === undefined ? "missing" : "choice",
        expected: issue.values.map((value) => `'${String(value)}'`).join(", "),
        received,
      };
    case "invalid_union":
      return { path, kind: "choice", expected: "a supported kind", received };
    case "too_small":
      return { path, kind: "too_small", expected: String(issue.minimum), received };
    case "too_big":
      return { path, kind: "too_big", expected: String(issue.maximum), received };
    case "custom":
    case "invalid_element":
    case "invalid_format":
    case "invalid_key":
    case "not_multiple_of":
    default:
      return { path, kind: "rule", expected: issue.message, received };
  }
}

/** Parses the value. Throws the error that `refuse` creates from the first flaw. */
export function readShape<T>(schema: z.ZodType<T>, value: unknown, refuse: (flaw: Flaw) => Error): T {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw refuse(describeFlaw(descend(issue ?? { code: "custom", path: [], message: "invalid", input: value })));
}
