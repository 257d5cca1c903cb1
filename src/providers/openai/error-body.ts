import { readMessage } from "../wire/error-words.ts";
import { array, isObject, object, parsed, string } from "../wire/lenient.ts";

/** What an upstream's error says of itself; each field is empty when it is missing. */
export interface ErrorFacts {
  /** `type`, `code`, `status` and the like, in lower case. */
  readonly names: ReadonlySet<string>;
  /** An HTTP status that the error names itself, for want of a real one. */
  readonly status: number | undefined;
  /** As `readMessage` gives it. */
  readonly message: string;
  readonly param: string;
}

/** The error that an answer reports beside, or in place of, what was asked for; undefined when it reports none. */
export function findError(json: unknown): unknown {
  const answer: unknown = Array.isArray(json) && json.length === 1 ? json[0] : json;
  if (!isObject(answer)) return undefined;
  if (answer.error) return answer.error;
  return answer.object === "error" || answer.type === "error" ? answer : undefined;
}

/** The error in a refusal's body, whatever its form: `{"error":{…}}`, `{"error":"…"}`, `{"message":…}`, `{"detail":…}`. */
export function readErrorBody(body: string): ErrorFacts {
  const json = parsed(body);
  return readErrorFacts(findError(json) ?? json);
}

/** One error object, or text. */
export function readErrorFacts(error: unknown): ErrorFacts {
  if (typeof error === "string") return { names: new Set(), status: undefined, message: readMessage(error), param: "" };
  const { type, code, status, message, msg, detail, param, details } = object(error);
  const nested = [...array(detail), ...array(details)].map(object);
  const words = [type, code, status, ...nested.flatMap((entry) => [entry.type, entry.reason])];
  const text = string(message) || string(msg) || string(detail) || nested.map((entry) => string(entry.msg)).join("; ");
  return {
    names: new Set(words.map((word) => string(word).toLowerCase()).filter((word) => word !== "")),
    status: readStatus(status) ?? readStatus(code),
    message: readMessage(text),
    param: /^[\w.[\]-]{1,100}$/.test(string(param)) ? string(param) : "",
  };
}

/** A number, or its digits, that can be an error's HTTP status. */
function readStatus(value: unknown): number | undefined {
  const status = typeof value === "number" || typeof value === "string" ? Number(value) : 0;
  return status >= 400 && status <= 599 ? Math.trunc(status) : undefined;
}
