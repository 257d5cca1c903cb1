import type { CompletionChunk, CompletionStart, FormatRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { LabelRequirements } from "../../../gen/parley/v1/label_pb.js";
import type { Model } from "../../../gen/parley/v1/model_pb.js";
import type { Call, Caller, CallerShare } from "../../core/call.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import type { KeptResponses } from "../../core/kept-responses.ts";
import { HOPS_HEADER, readHops, refuseCircles } from "../../core/hops.ts";
import type {
  FormatInput,
  KeptInput,
  NameOf,
  PreviousAnswer,
  ReadCompletion,
  ReadCount,
  ReadEmbedding,
  ReadExplanation,
} from "../../formats/format.ts";
import type { JsonText } from "../../formats/held-strings.ts";
import { writeRoutePlan } from "../../formats/route-plan.ts";
import { readAttribution } from "../attribution.ts";
import { newCompletionId, newEmbeddingId, type OpenCall } from "../calls.ts";
import { clientName } from "../client-name.ts";
import { type RoutingFacts, routingOfCompletion, routingOfFailure, routingOfStart } from "../headers.ts";
import { addRequiredLabels, readRequiredLabels } from "../required-labels.ts";
import { serveCompletion } from "../serve-completion.ts";
import { beginTrace } from "../begin-trace.ts";
import type { EdgeServices, KeyPrincipal } from "../services.ts";
import { declaredBytes, requireUncompressed } from "./body.ts";
import { type Exchange, type LateEnd, openCall, parseOnce } from "./exchange.ts";
import { isFormType, parseForm } from "./form.ts";
import { toFormatRequest } from "./format-requests.ts";
import { templateOf } from "./routes.ts";
import { isSmall, StreamWriter } from "./stream.ts";

const STREAM_HEADERS = [
  "cache-control",
  "no-cache",
  // Disables response buffering of nginx and compatible proxies.
  "x-accel-buffering",
  "no",
  "x-content-type-options",
  "nosniff",
] as const;

const DEADLINE = "x-request-timeout-ms";

const NO_FACTS: RoutingFacts = [];
const NO_JSON = { json: undefined, source: undefined } as const;

/** A completion in the format of the exchange. */
export function completion(
  services: EdgeServices,
  exchange: Exchange,
  asked: Pick<Asked<ReadCompletion>, "principal" | "read" | "takesForms">,
): Promise<void> {
  return serve(services, exchange, {
    ...asked,
    complete: ({ previous }, open) => previous && findPrevious(services, { ...asked, previous, open }),
    run: (read, call, open) => (read.stream ? streamed : whole)(services, exchange, { read, call, open }),
  });
}

/** A count of tokens in the format of the exchange. */
export function tokenCount(
  services: EdgeServices,
  exchange: Exchange,
  asked: { readonly principal: KeyPrincipal; readonly read: (input: FormatInput) => ReadCount },
): Promise<void> {
  return serve(services, exchange, {
    ...asked,
    complete: ({ previous }, open) => previous && findPrevious(services, { ...asked, previous, open }),
    async run(read, call) {
      const { inputTokens } = await services.completions.count(read.request, call);
      exchange.json(200, read.write(inputTokens));
    },
  });
}

/** What would happen to a request in the format of the exchange. */
export function explanation(
  services: EdgeServices,
  exchange: Exchange,
  asked: { readonly principal: KeyPrincipal; readonly read: (input: FormatInput) => ReadExplanation },
): Promise<void> {
  return serve(services, exchange, {
    ...asked,
    async run(read, call) {
      const plan = await services.completions.explain(read.request, call, read.stream ? "stream" : "whole");
      exchange.json(200, writeRoutePlan(plan, read.nameOf));
    },
  });
}

/** Embeddings in the format of the exchange. */
export function embeddings(
  services: EdgeServices,
  exchange: Exchange,
  asked: { readonly principal: KeyPrincipal; readonly read: (input: FormatInput) => ReadEmbedding },
): Promise<void> {
  return serve(services, exchange, {
    ...asked,
    async run({ request, write }, call, open) {
      const { model } = request;
      const made = await services.embedder.create(request, { ...call, completionId: newEmbeddingId() });
      const facts = routingOfCompletion(made, model, services.clock.monotonic() - call.arrivedMs);
      await exchange.jsonPieces(write(made), facts, { clock: services.clock, open });
    },
  });
}

/** Work on kept answers. It takes a slot, so that answers in memory count as the caller's. */
export function keptAnswers(
  services: EdgeServices,
  exchange: Exchange,
  { principal, find }: { readonly principal: KeyPrincipal; readonly find: (input: KeptInput) => Promise<() => object> },
): Promise<void> {
  const { request, requestId } = exchange;
  const { open, done: close } = openCall(services.calls, exchange, deadlineMs(exchange));
  const responses = services.responses!;
  const held: KeptResponses["find"] = async (accountId, id) => {
    const found = await responses.find(accountId, id);
    if (found !== undefined) open.holdAnswer(found.bytes);
    return found;
  };
  const served = serveCompletion<string>(services, {
    entrance: "http",
    requestId,
    target: exchange.path,
    open,
    authenticate: () => principal,
    bytes: declaredBytes(request),
    async read() {
      requireDeadline(exchange);
      const { accountId } = principal;
      const make = await find({ responses: { ...responses, find: held }, accountId, query: exchange.query });
      return () => JSON.stringify(make());
    },
    async run(body) {
      await responses.count(callerOf(exchange, principal));
      await exchange.largeJson(body, NO_FACTS, { clock: services.clock, open });
    },
    fail: (failure) => exchange.fail(failure),
  });
  return served.then(close);
}

/** A list of models. It takes a slot, so that its text and the work for it count as the caller's. */
export function modelList(
  services: EdgeServices,
  exchange: Exchange,
  { principal, write }: { readonly principal: KeyPrincipal; readonly write: (models: readonly Model[]) => string },
): Promise<void> {
  const { open, done: close } = openCall(services.calls, exchange, deadlineMs(exchange));
  const served = serveCompletion<string>(services, {
    entrance: "http",
    requestId: exchange.requestId,
    target: exchange.path,
    open,
    authenticate: () => principal,
    // No body is read.
    bytes: 0,
    async read() {
      requireDeadline(exchange);
      const list = await services.models.list(callerOf(exchange, principal, open));
      return () => write(list);
    },
    async run(text) {
      open.holdAnswer(Buffer.byteLength(text));
      await exchange.largeJson(text, NO_FACTS, { clock: services.clock, open });
    },
    fail: (failure) => exchange.fail(failure),
  });
  return served.then(close);
}

/** The caller of a request that needs no completion. `share` default: its work and its answers are not counted. */
export function callerOf(exchange: Exchange, principal: KeyPrincipal, share?: CallerShare): Caller {
  return {
    principal,
    share,
    requestId: exchange.requestId,
    completionId: newCompletionId(),
    admitted: (facts) => {
      exchange.limits = facts;
    },
  };
}

/** A call with a body in a format. */
interface Asked<R> {
  readonly principal: KeyPrincipal;
  readonly read: (input: FormatInput) => R;
  /** Whether the body may be a form. Default: no. */
  readonly takesForms?: boolean | undefined;
  /** Completes a request that continues a kept answer. Default: none does. */
  readonly complete?: (read: R, open: OpenCall) => Promise<() => R> | undefined;
  readonly run: (read: R, call: Call, open: OpenCall) => Promise<void>;
}

/** Not async: the state of a suspended function would be held for as long as the answer takes. */
function serve<R extends ReadCompletion | ReadCount | ReadEmbedding | ReadExplanation>(
  services: EdgeServices,
  exchange: Exchange,
  { principal, read: readBody, takesForms = false, complete, run }: Asked<R>,
): Promise<void> {
  const { request, requestId, arrivedMs } = exchange;
  const { open, done: close } = openCall(services.calls, exchange, deadlineMs(exchange));
  const trace = beginTrace(services, (name) => request.headers[name], {
    arrivedMs,
    target: () => templateOf(exchange.path),
  });
  let asked: R | undefined;
  let hops = 0;
  let requiredLabels: LabelRequirements | undefined;
  let inFormat: FormatRequest | undefined;
  const served = serveCompletion<R>(services, {
    entrance: "http",
    requestId,
    target: exchange.path,
    open,
    trace,
    authenticate: () => principal,
    bytes: declaredBytes(request),
    async read(slot) {
      requireDeadline(exchange);
      const isForm = takesForms && isFormType(request.headers["content-type"]);
      if (!isForm) requireJson(exchange, takesForms);
      requireUncompressed(request);
      refuseCircles((hops = readHops(request.headers[HOPS_HEADER])));
      requiredLabels = readRequiredLabels((name) => request.headers[name]?.toString());
      const body = await exchange.body(open, slot);
      if (services.forwards === true && !isForm) inFormat = toFormatRequest(exchange, body);
      return () => {
        // A front sends the bytes on.
        const { json, source } = isForm ? NO_JSON : parseOnce(body, inFormat !== undefined);
        const read = readBody({
          json,
          form: isForm ? parseForm(body, request.headers["content-type"]!) : undefined,
          headers: request.headers,
          query: exchange.query,
          requestId,
          keeps: services.responses !== undefined,
        });
        if (read.body !== undefined) read.body.source = source;
        return read;
      };
    },
    complete: complete && ((read) => complete(read, open)),
    run(read, current) {
      asked = read;
      addRequiredLabels(read.request, requiredLabels);
      const call: Call = {
        principal: current,
        requestId,
        completionId: newCompletionId(),
        entrance: "http",
        format: exchange.format.name,
        client: clientName(request.headers["user-agent"]),
        attribution: readAttribution((name) => request.headers[name], read.request),
        signal: open.signal,
        expiresMs: open.expiresMs,
        arrivedMs,
        hops,
        unrecognized: read.unrecognized,
        body: read.body,
        inFormat: read.body && inFormat,
        permitted: open.permitted,
        share: open,
        trace,
        admitted: (facts) => {
          exchange.limits = facts;
        },
      };
      return run(read, call, open);
    },
    fail(failure) {
      if (asked === undefined) return exchange.fail(failure);
      exchange.fail(renameFields(failure, asked.nameOf), routingOfFailure(failure, asked.request.model));
    },
  });
  return served.then(close);
}

/** Finds the kept answer that a request continues; returns the function that completes the request with it. */
async function findPrevious<R>(
  { responses }: EdgeServices,
  {
    principal,
    previous: { id, join },
    open,
  }: { readonly principal: KeyPrincipal; readonly previous: PreviousAnswer<R>; readonly open: OpenCall },
): Promise<() => R> {
  const found = await responses?.find(principal.accountId, id);
  if (found !== undefined) open.holdAnswer(found.bytes);
  return () => join(found?.open());
}

/** Tokens of an answer whose writing is not counted as the key's work: counting would cost more than the work. */
const SHORT_TOKENS = 1_000;

async function whole(
  services: EdgeServices,
  exchange: Exchange,
  { read, call, open }: { read: ReadCompletion; call: Call; open: OpenCall },
): Promise<void> {
  const { json, facts, kept } = await writeAnswer(services, { read, call, open });
  const end = read.keeping && kept && lateEnd(read.keeping, kept);
  await exchange.largeJson(json, facts, { clock: services.clock, open, ...(end !== undefined && { end }) });
}

/**
 * The answer of a whole completion, a large one in buffers. A function of its own, which is over while the caller reads: a suspended one
 * would keep the answer and its text in V8's heap.
 */
async function writeAnswer(
  { completions, responses, clock }: EdgeServices,
  { read, call, open }: { read: ReadCompletion; call: Call; open: OpenCall },
): Promise<{ readonly json: JsonText; readonly facts: RoutingFacts; readonly kept: Promise<boolean> | undefined }> {
  const answer = await completions.create(read.request, call);
  const facts = routingOfCompletion(answer, read.request.model, clock.monotonic() - call.arrivedMs);
  const write = () => read.writeWhole(answer);
  const isLong = (answer.usage?.outputTokens ?? Infinity) > SHORT_TOKENS;
  const text = isLong ? open.work(write) : write();
  const { keeping } = read;
  const kept = keeping && open.work(() => responses?.keep(call.principal.accountId, keeping.whole(answer, text)));
  return { json: typeof text === "string" && !isSmall(text) ? [Buffer.from(text)] : text, facts, kept };
}

function lateEnd(keeping: NonNullable<ReadCompletion["keeping"]>, kept: Promise<boolean>): LateEnd {
  return { bytes: keeping.endBytes, text: async (as) => ((await kept) ? as : keeping.withdraw(as)) };
}

async function streamed(
  services: EdgeServices,
  exchange: Exchange,
  { read, call, open }: { read: ReadCompletion; call: Call; open: OpenCall },
): Promise<void> {
  const { clock } = services;
  let facts = NO_FACTS;
  const chunks = read.writeStream();
  if (chunks.repeatsPictures === true) open.keepAnswers();
  const writer = new StreamWriter(exchange.response, {
    clock,
    call: open,
    keepAlive: () => chunks.keepAlive,
    head: () => exchange.headerList(["content-type", chunks.contentType, ...STREAM_HEADERS], facts),
  });
  try {
    // The last events wait for the end of the stream, after the completion was recorded.
    let last = "";
    await services.completions.stream(read.request, call, (batch) => {
      const start = startOf(batch);
      if (start !== undefined) facts = routingOfStart(start, read.request.model, clock.monotonic() - call.arrivedMs);
      const text = chunks.write(batch);
      if (chunks.ended) last = text;
      if (chunks.ended || text === "") return undefined;
      const room = writer.write(text);
      // They were sent with the head.
      facts = NO_FACTS;
      return room;
    });
    const { responses } = services;
    const keep = (): Promise<boolean> | undefined => {
      const { kept } = chunks;
      return kept && responses?.keep(call.principal.accountId, kept);
    };
    const keeping = responses === undefined ? undefined : open.work(keep);
    if (keeping !== undefined) {
      // The caller may disconnect meanwhile.
      const isKept = await keeping;
      if (exchange.response.destroyed) return writer.close();
      if (!isKept) last = read.keeping?.withdraw(last) ?? last;
    }
    writer.end(last);
  } catch (reason) {
    writer.close();
    if (!writer.begun) throw reason;
    const failure = renameFields(Failure.from(reason), read.nameOf);
    // Within a text that the caller hardly reads, an error would not be an event.
    if (failure.code === "cancelled" || writer.isWriting) exchange.response.destroy();
    else writer.abort(chunks.fail(failure));
  }
}

/** The start event of a stream. */
function startOf([first]: readonly CompletionChunk[]): CompletionStart | undefined {
  return first?.event.case === "start" ? first.event.value : undefined;
}

/** Requires the JSON media type: requests without it are mistakes, or forms where none are taken. */
function requireJson({ request }: Exchange, takesForms: boolean): void {
  const type = request.headers["content-type"] ?? "";
  if (/^application\/json\s*(;|$)/i.test(type)) return;
  throw new Failure(
    "invalid_request",
    takesForms
      ? "The content-type header must be multipart/form-data with a boundary, or application/json."
      : 'The content-type header must be application/json: send "content-type: application/json".',
  );
}

/**
 * The caller's deadline: `x-request-timeout-ms` in milliseconds, or in seconds the header of vendors' clients. Undefined without one, and
 * for one that is invalid (`requireDeadline`).
 */
function deadlineMs({ request: { headers } }: Exchange): number | undefined {
  const own = headers[DEADLINE];
  const ms =
    own === undefined ? Number(headers["x-stainless-timeout"] ?? headers["x-server-timeout"]) * 1000 : Number(own);
  return ms > 0 ? ms : undefined;
}

/** Throws for an invalid `x-request-timeout-ms`: after the slot is taken, so that the refusal counts for the key. */
function requireDeadline({ request: { headers } }: Exchange): void {
  const own = headers[DEADLINE];
  if (own !== undefined && !(Number(own) > 0)) throw invalidField(DEADLINE, "must be a number of milliseconds above 0");
}

/** A failure whose fields have the caller's names, in its message too. */
export function renameFields(failure: Failure, nameOf: NameOf): Failure {
  const [first] = failure.violations;
  if (first === undefined) return failure;
  const violations = failure.violations.map(({ field, description }) => ({ field: nameOf(field), description }));
  const message = failure.message.startsWith(`${first.field}: `)
    ? violations[0]!.field + failure.message.slice(first.field.length)
    : failure.message;
  return failure.with({ violations, message });
}
