import { isFieldSet } from "@bufbuild/protobuf";
import {
  type CompletionRequest,
  CompletionRequestSchema,
  type FormatRequest,
  FormatRequestSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import type { Call } from "../../core/call.ts";
import type { Completions } from "../../core/completions.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import type { FormatInput, Operation, ReadCompletion, RequestHeaders } from "../../formats/format.ts";
import { addFields } from "../attribution.ts";
import type { EdgeServices } from "../services.ts";
import { type Exchange, MAX_BODY_BYTES, parseOnce } from "./exchange.ts";
import { findRoute } from "./routes.ts";

/*
 * A request in a format, within the contract: a front sends what its caller wrote, and its core reads it. The core trusts nothing that a
 * front says of a body, because any caller of gRPC can say it too. docs/decisions/0041-own-dialect.md.
 */

const FIELD = "in_format";
const MAX_HEADERS = 32;
/** The request of an HTTP caller, for a core. */
export function toFormatRequest({ path, format, request: { headers } }: Exchange, body: Buffer): FormatRequest {
  const sent: Record<string, string> = {};
  let count = 0;
  for (const name in headers) {
    const value = headers[name];
    if (typeof value === "string" && format.readsHeader?.(name) === true && ++count <= MAX_HEADERS) sent[name] = value;
  }
  return { $typeName: FormatRequestSchema.typeName, path, headers: sent, body };
}

/**
 * Completions of requests that may be in a format. Such a request becomes that of the contract in its place. `refused` gets those that
 * cannot be read.
 */
export function readFormatRequests(completions: Completions, refused: EdgeServices["refused"]): Completions {
  const readOrRefuse = async (request: CompletionRequest, call: Call, what: Reading): Promise<Call> => {
    try {
      return await read(request, request.inFormat!, { call, what });
    } catch (reason) {
      // Counted here: it does not become a completion.
      const failure = Failure.from(reason);
      const { requestId, principal, entrance } = call;
      refused({ entrance, requestId, target: FIELD, failure, principal });
      throw failure;
    }
  };
  const callOf = (request: CompletionRequest, call: Call, what: Reading): Call | Promise<Call> =>
    request.inFormat === undefined ? call : readOrRefuse(request, call, what);
  return {
    create: async (request, call) => completions.create(request, await callOf(request, call, "completion")),
    stream: async (request, call, emit) => completions.stream(request, await callOf(request, call, "completion"), emit),
    count: async (request, call) => completions.count(request, await callOf(request, call, "count")),
    explain: async (request, call, mode) => completions.explain(request, await callOf(request, call, "explain"), mode),
  };
}

type Read = Pick<ReadCompletion, "request" | "unrecognized" | "body">;
type Reading = "completion" | "count" | "explain";

/**
 * Reads a request into its own place, in a turn of its caller, and returns its call. Rejects with `invalid_request`,
 * `request_too_large`, and as the turn does.
 */
async function read(
  request: CompletionRequest,
  inFormat: FormatRequest,
  { call, what }: { readonly call: Call; readonly what: Reading },
): Promise<Call> {
  refuseOthers(request, inFormat);
  const parse = (): Read => readFormat(inFormat, call.requestId, what);
  const { unrecognized, body, request: asked } = await (call.share?.workInTurn(parse) ?? parse());
  const { $typeName: _, maxResponseBytes: _bytes, requiredLabels: _labels, ...fields } = asked;
  Object.assign(request, fields);
  delete request.inFormat;
  const attribution = addFields(call.attribution, asked);
  return { ...call, body, attribution, unrecognized: [...unrecognized, ...(call.unrecognized ?? [])] };
}

const SOUGHT: Readonly<Record<Reading, string>> = {
  completion: "a completion",
  count: "a count",
  explain: "an explanation",
};

function readFormat({ path, headers, body }: FormatRequest, requestId: string, what: Reading): Read {
  if (body.length > MAX_BODY_BYTES)
    throw new Failure("request_too_large", `${FIELD}.body is larger than ${MAX_BODY_BYTES / 1024 / 1024} MiB.`);
  const operation = operationOf(path, headers);
  if (operation?.name !== what) throw invalidField(`${FIELD}.path`, `is not the path of a request for ${SOUGHT[what]}`);
  const { json, source } = parseOnce(Buffer.from(body.buffer, body.byteOffset, body.length), false);
  const input: FormatInput = { json, headers, query: new URLSearchParams(), requestId };
  const asked = operation.read(input);
  if (asked.body !== undefined) asked.body.source = source;
  return asked;
}

function operationOf(path: string, headers: RequestHeaders): Extract<Operation, { name: Reading }> | undefined {
  const { route } = findRoute(path, "POST", headers);
  if (route?.name !== "format") return undefined;
  const { operation } = route;
  return operation.name === "completion" || operation.name === "count" || operation.name === "explain"
    ? operation
    : undefined;
}

const BESIDE: ReadonlySet<string> = new Set(["in_format", "max_response_bytes", "required_labels"]);

/** Refuses other fields beside the request in a format: it would not be clear which request the caller means. */
function refuseOthers(request: CompletionRequest, { headers }: FormatRequest): void {
  for (const field of CompletionRequestSchema.fields)
    if (!BESIDE.has(field.name) && isFieldSet(request, field))
      throw invalidField(field.name, `must not be set beside ${FIELD}`);
  if (Object.keys(headers).length > MAX_HEADERS)
    throw invalidField(`${FIELD}.headers`, `must hold at most ${MAX_HEADERS} headers`);
}
