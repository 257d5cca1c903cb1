import { Refusal } from "../answer.ts";
import type { BodyReader, Flaw, Path } from "../body.ts";
import { FIELDS, toCamelCase, toSnakeCase } from "./fields.ts";

const STATUSES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED",
  409: "ABORTED",
  413: "INVALID_ARGUMENT",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  501: "UNIMPLEMENTED",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** How the service names a type, by the words of the format. */
const TYPES: Readonly<Record<string, string>> = {
  "must be text": " (TYPE_STRING)",
  "must be a number": " (TYPE_FLOAT)",
  "must be a whole number": " (TYPE_INT32)",
  "must be true or false": " (TYPE_BOOL)",
  "must be a list": " (a list)",
  "must be an object": " (a message)",
};

/** The error body. The retry delay is in `RetryInfo`, never in a header. */
export function encodeError(refusal: Refusal): unknown {
  const { retryAfterSeconds, code, field } = refusal.detail;
  const details = [
    ...(code === undefined
      ? []
      : [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: code, domain: "googleapis.com" }]),
    ...(field === undefined
      ? []
      : [
          {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            fieldViolations: [{ field, description: refusal.message }],
          },
        ]),
    ...(retryAfterSeconds === undefined
      ? []
      : [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: `${retryAfterSeconds}s` }]),
  ];
  return {
    error: {
      code: refusal.status,
      message: refusal.message,
      status: STATUSES[refusal.status] ?? (refusal.status < 500 ? "FAILED_PRECONDITION" : "UNKNOWN"),
      ...(details.length > 0 ? { details } : {}),
    },
  };
}

/** An error during a stream: one event, with the line ends of the service. */
export function encodeStreamError(refusal: Refusal): string {
  return `data: ${JSON.stringify(encodeError(refusal))}\r\n\r\n`;
}

/** Formats a path, such as `contents[0].parts[1]`. */
function writePath(path: Path): string {
  const steps = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${toSnakeCase(step)}`));
  return steps.join("").replace(/^\./u, "");
}

function describe({ description, value }: Flaw, path: string): string {
  if (description === "is required") return `* GenerateContentRequest.${path}: ${path} is not specified\n`;
  if (path.endsWith(".role")) return "Please use a valid role: user, model.";
  if (description === "must be base64") return `Invalid value at '${path}' (TYPE_BYTES), Base64 decoding failed`;
  const type = TYPES[description];
  return `Invalid value at '${path}'${type === undefined ? ":" : `${type},`} ${JSON.stringify(value)}`;
}

/** How the service reads bodies and refuses them. */
export const BODY: Pick<BodyReader<unknown>, "fields" | "spell" | "refuseUnknown" | "refuseFlaw"> = {
  fields: FIELDS,
  spell: toCamelCase,
  refuseUnknown(path) {
    const field = writePath(path.slice(0, -1));
    const place = field === "" ? "" : ` at '${field}'`;
    const message = `Invalid JSON payload received. Unknown name "${String(path.at(-1))}"${place}: Cannot find field.`;
    return new Refusal(400, message, { field });
  },
  refuseFlaw(flaw) {
    const field = toSnakeCase(flaw.field);
    return new Refusal(400, describe(flaw, field), { field });
  },
};
