import { textsOf } from "../core/validate-embedding.ts";
import { toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { EmbeddingRequest } from "../../gen/parley/v1/embedding_pb.js";
import type { Part } from "../../gen/parley/v1/message_pb.js";
import type { Omission } from "../../gen/parley/v1/report_pb.js";
import { Failure, type FieldViolation } from "../core/failure.ts";
import { type Hedge, type Model, stateOwner } from "../core/model.ts";
import type { CallersBody, Translation } from "../core/provider.ts";
import { isNamed, isPermitted, restrict, type SendingRules, toMeasured } from "../core/provider-options.ts";
import type { Target } from "../core/route.ts";
import type { Asked, Mode } from "../core/router.ts";
import { measurePrompt, type PromptSize } from "../core/token-estimate.ts";

/** The attempts of a request: its candidates in order, with the primary's translation. */
export interface AttemptPlan {
  readonly mode: Mode;
  readonly candidates: readonly Model[];
  readonly primary: Translation;
  /** Number of leading candidates that are targets of one route; 0: none. */
  readonly targets: number;
  /** Whether a refusal may be about content that the request only names. */
  readonly namesContent: boolean;
  /** Hedging of the requested name. Default: none. */
  readonly hedge?: (Hedge & { readonly name: string }) | undefined;
  /** Translates the request for another candidate. Throws what planning throws. */
  translate(model: Model): Translation;
}

/** The attempts of a completion. */
export interface CompletionAttempts extends AttemptPlan {
  /** Size of the prompt, for all candidates. */
  readonly prompt: PromptSize;
}

/** The attempts of an embedding request. */
export interface EmbeddingAttempts extends AttemptPlan {
  /** Number of inputs in the translated request. */
  readonly inputs: number;
}

/** Largest number of targets of a route to which one request is sent. Bounds a request that all of them refuse. */
const MAX_TARGETS_TRIED = 8;
/** Largest number of models to which one request is sent, those of its fallbacks included. */
const MAX_MODELS_TRIED = 16;
/** Largest number of target kinds for which a request is translated to find a lossless one. Each costs a whole translation. */
export const MAX_KINDS_TRIED = 4;

/** Requirements of a plan whose first candidates are the targets of one route. */
export interface AskedOfRanked extends Asked {
  /** Targets among which the primary is chosen. Default: the first candidate is the primary. */
  readonly targets?: readonly Target[];
  /** Number of leading targets that are not known to be down. Default: 0. */
  readonly up?: number;
}

/**
 * Plans the attempts of a request: the primary (and its own retries) first, then each other candidate once, as listed. With
 * `targets`, the primary is the first target that loses no field of the request, else the first that supports it; targets that are
 * up are preferred.
 * A pure function. Throws `invalid_request` when the primary does not support the request, or, when the request is strict,
 * when a field would be omitted or clamped.
 */
export function planAttempts(
  request: CompletionRequest,
  ranked: readonly Model[],
  { targets = [], up = 0, ...asked }: AskedOfRanked,
): CompletionAttempts {
  const [first] = ranked;
  if (first === undefined) throw new RangeError("a plan needs at least one candidate");
  const { model, primary } =
    targets.length > 1
      ? choosePrimary(request, { targets, up }, asked)
      : { model: first, primary: translate(request, first, asked) };
  const ordered = model === first ? ranked : [model, ...ranked.filter((other) => other !== model)];
  const surplus = Math.max(targets.length - MAX_TARGETS_TRIED, 0);
  const within = surplus === 0 ? ordered : ordered.toSpliced(MAX_TARGETS_TRIED, surplus);
  const candidates = within.length > MAX_MODELS_TRIED ? within.slice(0, MAX_MODELS_TRIED) : within;
  return {
    candidates,
    mode: asked.mode,
    primary,
    targets: targets.length - surplus,
    prompt: measurePrompt(toMeasured(request, candidates, asked.rules)),
    namesContent: namesContent(request),
    translate(candidate) {
      const { share } = asked;
      const run = (): Translation => translate(request, candidate, asked);
      return share === undefined ? run() : share.work(run);
    },
  };
}

/** Fields of an embedding request on which the vectors depend. */
const VECTOR_FIELDS = ["dimensions", "task"] as const;

/**
 * Plans the attempts of an embedding request: the first candidate (and its own retries), then each other one once, as listed. A pure
 * function. Throws `invalid_request` when the first does not support the request, or, when the request is strict, when a field would
 * be omitted or clamped. Another candidate is skipped when its vectors would differ from those of the first one.
 */
export function planEmbeddings(request: EmbeddingRequest, candidates: readonly Model[]): EmbeddingAttempts {
  const first = candidates[0]!;
  const primary = translateEmbedding(request, first);
  const loses = ({ omitted }: Translation, field: string): boolean => omitted.some((one) => one.field === field);
  return {
    candidates,
    mode: "whole",
    inputs: textsOf(request.inputs).length,
    primary,
    targets: 0,
    namesContent: false,
    translate(model) {
      const translation = translateEmbedding(request, model);
      // A field that only the first candidate loses changes the vectors as well.
      const changed = VECTOR_FIELDS.find((field) => loses(translation, field) !== loses(primary, field));
      if (changed === undefined) return translation;
      throw new Failure("invalid_request", `${model.id} treats ${changed} differently, so its vectors would differ.`);
    },
  };
}

function translateEmbedding(request: EmbeddingRequest, model: Model): Translation {
  const { embeddings } = model.provider;
  if (embeddings === undefined) throw new TypeError(`the provider of ${model.id} makes no embeddings`);
  const translation = embeddings.translate(request, model.upstream);
  const refusal = request.strict ? refuseLosses(model, translation) : undefined;
  if (refusal !== undefined) throw refusal;
  return translation;
}

interface Primary {
  readonly model: Model;
  readonly primary: Translation;
}

/** Translates for one target after the other, for MAX_KINDS_TRIED kinds at most, until a translation loses no field. */
function choosePrimary(
  request: CompletionRequest,
  { targets, up }: Required<Pick<AskedOfRanked, "targets" | "up">>,
  asked: Asked,
): Primary {
  /** Loses only fields that the contract does not have. Another target may keep these by sending the caller's own body. */
  let almost: Primary | undefined;
  let lossy: Primary | undefined;
  let refusal: Failure | undefined;
  /** Kinds of targets that lose a field or refuse the request. */
  const unfit = new Set<string>();
  for (const [index, { model, kind }] of targets.entries()) {
    if (index === up && (almost ?? lossy) !== undefined) break;
    if (unfit.has(kind)) continue;
    if (unfit.size >= MAX_KINDS_TRIED) break;
    try {
      const primary = translate(request, model, asked);
      const { omitted, clamped } = primary;
      if (omitted.length === 0 && clamped.length === 0) return { model, primary };
      if (omitted.length <= (asked.unknown?.length ?? 0) && clamped.length === 0) {
        // Without the caller's body every model loses these fields.
        if (asked.body === undefined) return { model, primary };
        almost ??= { model, primary };
      } else lossy ??= { model, primary };
    } catch (reason) {
      if (!(reason instanceof Failure)) throw reason;
      refusal ??= reason;
    }
    unfit.add(kind);
  }
  const found = almost ?? lossy;
  if (found !== undefined) return found;
  throw refusal!;
}

/**
 * Restricts and translates the request for a model. Throws `invalid_request` when the model does not support it, or, when it
 * is strict, when a field would be omitted or clamped.
 */
function translate(
  request: CompletionRequest,
  model: Model,
  { mode, rules, unknown = NOTHING, state, body }: Asked,
): Translation {
  if (body?.notElsewhere !== undefined && body.dialect !== model.dialect) throw body.notElsewhere();
  const own = state?.for(stateOwner(model)) ?? { request, omitted: NOTHING };
  const restricted = restrict(own.request, model, rules);
  if (request.strict && restricted.omitted.length > 0) throw notAllowed(restricted.omitted);
  const isKept =
    restricted.omitted.length === 0 && own.omitted.length === 0 && maySend(body, { unknown, model, rules });
  let translation = model.provider.translate(restricted.request, model.upstream, {
    mode,
    callers: isKept || body?.inPart === true ? body : undefined,
    others: isKept,
    capped: rules.capped,
  });
  const before = translation.isCallers === true ? NOTHING : [...unknown, ...restricted.omitted];
  if (before.length > 0) translation = { ...translation, omitted: [...before, ...translation.omitted] };
  const refusal = request.strict ? refuseLosses(model, translation) : undefined;
  if (refusal !== undefined) throw refusal;
  // State that was removed never refuses a strict request, because the caller did not write it.
  return own.omitted.length === 0 ? translation : { ...translation, omitted: [...translation.omitted, ...own.omitted] };
}

/** Whether a caller's body may be sent with all its fields. */
function maySend(
  body: CallersBody | undefined,
  {
    unknown,
    model,
    rules,
  }: { readonly unknown: readonly Omission[]; readonly model: Model; readonly rules: SendingRules },
): boolean {
  const hasOthers = unknown.length > 0 || body?.mayHaveMore === true;
  if (!hasOthers) return true;
  const isAllowed = body?.inPart === true ? isNamed : isPermitted;
  return isAllowed("other_fields", model, rules);
}

const NOTHING: readonly Omission[] = [];

/** The failure of a strict request with options that its key or the provider does not permit. */
function notAllowed(omitted: readonly Omission[]): Failure {
  const description = "is not allowed for this API key and provider, and the request is strict";
  const violations = omitted.map(({ field }): FieldViolation => ({ field, description }));
  return new Failure("invalid_request", `${violations[0]?.field}: ${description}.`, { violations });
}

function shown(value: Value | undefined): string {
  const json = value === undefined ? "" : toJson(ValueSchema, value);
  return typeof json === "string" ? json : JSON.stringify(json);
}

/** The failure of a strict request whose translation omits or clamps fields; undefined when it does not. */
function refuseLosses(model: Model, { omitted, clamped }: Translation): Failure | undefined {
  const violations: FieldViolation[] = [
    ...omitted.map(({ field }) => ({
      field,
      description: `is not supported by ${model.id}, and the request is strict`,
    })),
    ...clamped.map(({ field, sent }) => ({
      field,
      description: `would be changed to ${shown(sent)} for ${model.id}, and the request is strict`,
    })),
  ];
  const [first] = violations;
  return first && new Failure("invalid_request", `${first.field}: ${first.description}.`, { violations });
}

/**
 * Whether the request names content that a provider looks up or interprets by itself: addresses, IDs of files and recordings, native
 * parts and tools. A refusal may then be about that content, and says nothing about the model.
 */
function namesContent({ messages, tools }: Pick<CompletionRequest, "messages" | "tools">): boolean {
  return tools.some(({ kind }) => kind.case === "native") || messages.some(({ parts }) => parts.some(isName));
}

function isName({ kind }: Part): boolean {
  switch (kind.case) {
    case "native":
      return true;
    case "image":
    case "video":
    case "file":
      return kind.value.source.case !== "data";
    case "audio":
      return kind.value.source.case !== "data" || kind.value.id !== "";
    case "toolResult":
      return kind.value.parts.some(isName);
    default:
      return false;
  }
}
