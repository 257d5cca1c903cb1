import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import {
  type CompletionRequest,
  CompletionRequestSchema,
  type ExplainRequest,
} from "../../gen/parley/v1/completion_pb.js";
import { Failure } from "../core/failure.ts";
import type { Mode } from "../core/router.ts";
import { MAX_UNRECOGNIZED } from "../core/validate.ts";

/** Unknown fields that are named; a request with more is refused or reported by these. */
const MAX_NAMED = 20;

/**
 * Names the fields that a newer client may send and this version does not know, by path and field number, such as
 * `messages[0].100`. `desc` is the type of the request. For `Call.unrecognized`.
 */
export function unknownFields(request: Message, desc: DescMessage = CompletionRequestSchema): string[] {
  const found: Found = { path: [], names: new Set() };
  collect(desc, request, found);
  return [...found.names];
}

/** Throws `invalid_request` for fields that this version does not know: these requests have no report to list them in. */
export function requireKnownFields(request: Message, desc: DescMessage): void {
  const violations = unknownFields(request, desc).map((field) => ({
    field,
    description: "is not known to this version",
  }));
  const [first] = violations;
  if (first !== undefined)
    throw new Failure("invalid_request", `${first.field}: ${first.description}.`, { violations });
}

/** What to explain. Without a completion it is an empty one, which is refused as such. */
export function toExplain({ completion, stream }: ExplainRequest): {
  readonly completion: CompletionRequest;
  readonly mode: Mode;
} {
  return { completion: completion ?? create(CompletionRequestSchema), mode: stream ? "stream" : "whole" };
}

/** Header from a front to its core with `Call.unrecognized`: a URI-encoded JSON list of names. */
export const UNRECOGNIZED_HEADER = "x-parley-unrecognized";

/**
 * Limit of characters of the header: a core counts headers of more than a kilobyte, with those of every call, as overhead of the connection,
 * which the callers of a front share.
 */
const MAX_HEADER_CHARS = 768;
/** Most characters of a name: one of any characters has room. */
const MAX_NAME_CHARS = 80;

/** Writes the header with as many names as it has room for; undefined without names. */
export function writeUnrecognized(names: readonly string[] | undefined): string | undefined {
  if (names === undefined || names.length === 0) return undefined;
  const taken: string[] = [];
  let chars = encodeURIComponent("[]").length;
  for (const name of names) {
    const shown = name.slice(0, MAX_NAME_CHARS).toWellFormed();
    chars += encodeURIComponent(`${JSON.stringify(shown)},`).length;
    if (chars > MAX_HEADER_CHARS) break;
    taken.push(shown);
  }
  return encodeURIComponent(JSON.stringify(taken));
}

/** Reads the header. Any caller may send it, with effect on its own request only: empty for anything unreadable. */
export function readUnrecognized(header: string | undefined): string[] {
  if (header === undefined) return [];
  try {
    const names: unknown = JSON.parse(decodeURIComponent(header));
    return Array.isArray(names) ? names.filter((name) => typeof name === "string").slice(0, MAX_UNRECOGNIZED) : [];
  } catch {
    return [];
  }
}

interface Found {
  /** Names and indexes from the request to the message. Joined for unknown fields only: a request may have 20,000 messages. */
  readonly path: (string | number)[];
  readonly names: Set<string>;
}

function collect(desc: DescMessage, message: Message, found: Found): void {
  const { path, names } = found;
  for (const { no } of message.$unknown ?? []) if (names.size < MAX_NAMED) names.add(toName(path, no));
  const values = message as unknown as Readonly<Record<string, unknown>>;
  for (const field of innerFields(desc)) {
    if (names.size >= MAX_NAMED) return;
    const value = valueOf(values, field);
    if (value === undefined) continue;
    path.push(field.name);
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) {
        path.push(index);
        collect(field.message!, value[index] as Message, found);
        path.pop();
      }
    } else collect(field.message!, value as Message, found);
    path.pop();
  }
}

/** Such as `messages[0].100`. */
function toName(path: readonly (string | number)[], no: number): string {
  let name = "";
  path.forEach((step, at) => {
    if (typeof step === "number") name += `[${step}].`;
    else name += typeof path[at + 1] === "number" ? step : `${step}.`;
  });
  return `${name}${no}`;
}

/** Value of a field; undefined for an absent one, and for one of a oneof that holds another field. */
function valueOf(values: Readonly<Record<string, unknown>>, { oneof, localName }: DescField): unknown {
  if (oneof === undefined) return values[localName];
  const chosen = values[oneof.localName] as { readonly case?: string; readonly value?: unknown };
  return chosen.case === localName ? chosen.value : undefined;
}

const known = new WeakMap<DescMessage, readonly DescField[]>();

/** Fields that hold messages. */
function innerFields(desc: DescMessage): readonly DescField[] {
  let fields = known.get(desc);
  if (fields === undefined) {
    fields = desc.fields.filter(({ fieldKind, message }) => message !== undefined && fieldKind !== "map");
    known.set(desc, fields);
  }
  return fields;
}
