import type { CallerShare } from "./call.ts";
import type { Failure } from "./failure.ts";
import type { ToolUses } from "./fees.ts";
import type { Choice, CompletionChunk, CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { EmbeddingRequest } from "../../gen/parley/v1/embedding_pb.js";
import type { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { Clamp, Omission } from "../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import type { AttemptTrace } from "./trace.ts";

/** Capabilities of an upstream model. Dialects check these flags, never the model name. Listed in `docs/configuration.md`. */
export interface Capabilities {
  /** Accepts `temperature` and `top_p`. */
  readonly sampling: boolean;
  /** Accepts both in one request. */
  readonly temperatureWithTopP: boolean;
  /** Largest accepted `temperature`. */
  readonly maxTemperature: number;
  /** Accepts `frequency_penalty` and `presence_penalty`. */
  readonly penalties: boolean;
  readonly seed: boolean;
  readonly logprobs: boolean;
  /** Can return more than one choice. */
  readonly multipleChoices: boolean;
  /** Control of reasoning: none, a token budget, an adaptive effort, or a level. */
  readonly reasoning: "none" | "budget" | "adaptive" | "level";
  /** Reasons by default. */
  readonly reasoningByDefault: boolean;
  readonly reasoningCanBeDisabled: boolean;
  /** Supported efforts or levels, lowest first, with the names of `ReasoningEffort` in lower case. */
  readonly reasoningEfforts: readonly string[];
  /** For `budget`: smallest and largest budget in tokens. */
  readonly reasoningBudget: readonly [min: number, max: number];
  /** Requires reasoning blocks to be sent back unchanged. */
  readonly preservedReasoning: boolean;
  readonly tools: boolean;
  /** Supports forcing a tool call. */
  readonly forcedTools: boolean;
  /** Supports structured output by JSON schema. */
  readonly jsonSchema: boolean;
  /** Continues a trailing assistant message. */
  readonly prefill: boolean;
  /** Accepts system messages after the first message. */
  readonly midConversationSystem: boolean;
  /** Fetches https image URLs itself. */
  readonly imageUrls: boolean;
  /** Accepts size and aspect ratio of images. */
  readonly imageOptions: boolean;
  /** Accepts the length of the vectors. */
  readonly embeddingDimensions: boolean;
  /** OpenAI dialect: field name of the token limit. */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
  /** OpenAI dialect: accepts an array of parts for text-only content. */
  readonly contentParts: boolean;
  /** OpenAI dialect: supports `stream_options.include_usage`. */
  readonly streamUsage: boolean;
  /** Dialect of Converse: takes cache points. */
  readonly cachePoints: boolean;
  /** `max_tokens` above which a whole answer is fetched as a stream and joined; 0: always. */
  readonly streamAbove: number;
}

/** A model at its provider. */
export interface UpstreamModel {
  /** Name of the model at the provider. */
  readonly name: string;
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  /** Sent when the request has no `max_tokens` and the dialect requires one. */
  readonly defaultMaxTokens: number;
  readonly inputModalities: ReadonlySet<Modality>;
  readonly outputModalities: ReadonlySet<Modality>;
  /** Whether the price covers pictures that the model may make, though its output modalities lack them. Default: no. */
  readonly pricesPictures?: boolean | undefined;
  readonly capabilities: Capabilities;
}

/** Size of a translated request: together with a price it bounds the cost. */
export interface SentSize {
  /** Bytes of the body without images, audio and documents: text has at most one token per byte. */
  readonly textBytes: number;
  /** Token limit per choice in the body; undefined without one. */
  readonly maxTokens: number | undefined;
  /**
   * Tokens of the largest picture that each choice may have. They do not count towards `maxTokens`: some providers make pictures with
   * another model, others do not document that the limit applies to pictures. Default: no picture is expected.
   */
  readonly pictureTokens?: number | undefined;
  /** Largest price factor of the requested service tier. Usually 1. */
  readonly priceFactor: number;
  /** Why the provider may add an unknown number of tokens to the prompt: it searches the web, or fetches an image URL. */
  readonly unbounded: "no" | "search" | "address";
  /** Requested lifetime of cached prefixes. */
  readonly cacheWrite: "none" | "minutes" | "hour";
  /** Uses of the provider's own tools that the request may cause. Default: none with a fee. */
  readonly uses?: ToolUses | undefined;
}

/** The JSON text of a body, and its parsed value. No object in it has two fields of the same name. */
export interface BodyText {
  readonly text: string;
  /** A format may change the spelling of its fields in place. */
  readonly json: Readonly<Record<string, unknown>>;
  /** Positions of the brackets, colons and commas of the outermost object. */
  readonly outermost: readonly number[];
}

/** The body of a request as its caller wrote it, in the format of a dialect. */
export interface CallersBody {
  /** Name of the dialect, such as `anthropic`. */
  readonly dialect: string;
  /** Whether it may have fields or headers that are neither in the contract nor among `Call.unrecognized`. */
  readonly mayHaveMore: boolean;
  /**
   * Whether its dialect can send a part of it, leaving out the fields that are not permitted. Fields that the contract does not have
   * are only sent where the configuration or the key names the option `other_fields`. Default: it is sent whole or not at all.
   */
  readonly inPart?: boolean | undefined;
  /** The caller's headers that are sent with it, names in lower case. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Why providers of other dialects cannot serve the request. Default: they can. */
  readonly notElsewhere?: (() => Failure) | undefined;
  /** The text from which `json` was parsed. Undefined for a large one, and after the plan, because it may double the memory. */
  source?: BodyText | undefined;
  /** The parsed body; undefined when no further attempt needs it. */
  json: Readonly<Record<string, unknown>> | undefined;
}

/** A request in a provider's dialect, with the omitted and clamped fields. */
export interface Translation {
  /**
   * The JSON body as bytes, outside V8's heap while the request waits. Emptied at the first content of a stream, after which
   * no attempt is made: it may be the largest part of an open stream's memory.
   */
  body: Buffer;
  readonly omitted: readonly Omission[];
  readonly clamped: readonly Clamp[];
  /** Whether `body` requests a stream: in mode `stream`, and for whole answers above `streamAbove`. */
  readonly streamed: boolean;
  /** Kept when `body` is emptied. */
  readonly sent: SentSize;
  /** Whether `body` contains JSON as the caller wrote it, such as native parts. A refusal may then be the caller's fault. */
  readonly verbatim: boolean;
  /** Whether `body` is the caller's own, including the fields that the contract does not have. Default: no. */
  readonly isCallers?: boolean | undefined;
  /** Anthropic's dialect: headers of the caller that are sent with the body. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Anthropic's dialect: names from the caller's `anthropic-beta` header. Default: none. */
  readonly betas?: readonly string[] | undefined;
}

/**
 * The usage of an answer with what the provider says that it costs, in micro-USD. The cost is that of the gateway's account at the
 * provider, so the contract has no field for it, and callers do not get it.
 */
export type CostedUsage = Usage & { statedMicroUsd?: number | undefined };

/** A provider's whole answer. */
export interface Answer {
  /** At least one. */
  readonly choices: Choice[];
  readonly usage: Usage | undefined;
}

/** A provider's embeddings. */
export interface EmbeddingAnswer {
  /** A vector for each input, in the order of the inputs, all of the same length. */
  readonly vectors: number[][];
  readonly usage: Usage | undefined;
}

/** Progress of a call, for estimating its cost. Written by the transport. */
export interface CallProgress {
  /** True until the first byte of the request was written: then the provider bills nothing. */
  unsent: boolean;
  /** Whether the system has taken over the whole request. Default: unknown, so its bytes may still be read. */
  isWritten?: boolean;
  /** Whether the gateway closed the connection before the end of the answer because it could not read or pass on the answer. */
  isCut?: boolean;
  /** By the clock's `monotonic`: when the first byte of the request was written, and when the head of the response arrived. */
  sentMs?: number;
  headMs?: number;
  /** Called when reading pauses until the promise settles: the pause does not count as the provider's time. Default: it counts. */
  readonly paused?: (until: Promise<void>) => void;
}

/** One call of an upstream model. */
export interface UpstreamCall {
  readonly model: UpstreamModel;
  readonly translation: Translation;
  /** Aborts with a Failure: caller disconnected, deadline, attempt timeout or shutdown. */
  readonly signal: AbortSignal;
  /** Longest pause between two reads of the answer. */
  readonly idleMs: number;
  /** Default: the call is treated as sent. */
  readonly progress?: CallProgress | undefined;
  /** Key family of the caller, for fair scheduling. Calls without one share a queue. */
  readonly keyFamilyId?: string | undefined;
  /** Account of the caller. Calls without one count as one account. */
  readonly accountId?: string | undefined;
  /** Number of gateways before this one. Default: 0. */
  readonly hops?: number | undefined;
  /** Counts the work of reading a whole answer, and the bytes of a large one. Default: they are not counted. */
  readonly share?: Pick<CallerShare, "work" | "openAnswer" | "keepAnswers"> | undefined;
  /** Sent to providers that are configured to receive trace headers. Default: the call is not traced. */
  readonly trace?: AttemptTrace | undefined;
}

/**
 * Receives the next batch of a stream's chunks. Returns a promise for back-pressure: the next batch follows after it resolves.
 * May throw or reject with a Failure, which ends the stream: the reason of the caller's signal, or an internal error.
 * docs/decisions/0022-pushed-streams.md explains why streams are pushed.
 */
export type Emit = (batch: readonly CompletionChunk[]) => Promise<void> | undefined;

/** Further inputs of a translation, beside the request and the model. */
export interface TranslateOptions {
  readonly mode: "whole" | "stream";
  /** The caller's body, if it may be sent. */
  readonly callers?: CallersBody | undefined;
  /** Of a caller's body with `inPart`: whether fields that the contract does not have may be sent. Default: no. */
  readonly others?: boolean | undefined;
  /** Whether a budget limits the request, so that the cost of everything the provider does for it must be bounded. Default: no. */
  readonly capped?: boolean | undefined;
}

/**
 * A configured upstream service in one dialect. Stateless: it translates and transports, without retries, logging or clock.
 */
export interface Provider {
  /**
   * Translates a request into the provider's dialect: a pure function. Throws `invalid_request` for a field that the model does
   * not support and that must not be omitted. A caller's body of this dialect that needs no change is sent unchanged.
   */
  translate(request: CompletionRequest, model: UpstreamModel, { mode, callers }: TranslateOptions): Translation;

  /**
   * Posts and returns the whole answer. Only for translations that are not `streamed`. Throws a Failure, or the signal's
   * reason.
   */
  create(call: UpstreamCall): Promise<Answer>;

  /**
   * Posts and emits the chunks of each socket read as one batch: never empty, with the events of parts, `choice_finish` and `usage`. The
   * first batch has content or a finish. Resolves after a finish; an answer without one throws `upstream_protocol`. Throws a
   * Failure, one thrown by `emit`, or the signal's reason; the connection is closed then.
   */
  stream(call: UpstreamCall, emit: Emit): Promise<void>;

  /** Embeddings of this service; undefined for a dialect without them. */
  readonly embeddings?: EmbeddingProvider;

  /**
   * Asks for the input tokens of a translated request. Absent for dialects without such a count. Throws a Failure, or the signal's
   * reason.
   */
  readonly count?: (call: UpstreamCall) => Promise<number>;

  /**
   * The service's own list of models that make completions. Absent where the service has no list. Throws a Failure, or the signal's
   * reason. It has no time limit but the signal.
   */
  readonly list?: (signal: AbortSignal) => Promise<readonly OfferedModel[]>;

  /** Closes idle connections. Does not wait for calls in flight. */
  close(): Promise<void>;
}

/** A model in a service's own list. Facts that the list lacks are undefined. */
export interface OfferedModel {
  readonly name: string;
  readonly contextWindow: number | undefined;
  readonly maxOutputTokens: number | undefined;
  /** The listed output modalities that this gateway knows. */
  readonly outputModalities?: readonly OfferedOutput[] | undefined;
}

/** An output modality of a listed model. */
export type OfferedOutput = "text" | "image" | "audio";

/** The embeddings of a configured upstream service. */
export interface EmbeddingProvider {
  /** Translates a request into the provider's dialect: a pure function. Throws `invalid_request` for too many inputs. */
  translate(request: EmbeddingRequest, model: UpstreamModel): Translation;

  /**
   * Posts and returns a vector for each input; `inputs` is their number. Throws a Failure (`upstream_protocol` for another number
   * of vectors or unequal lengths), or the signal's reason.
   */
  create(call: UpstreamCall, inputs: number): Promise<EmbeddingAnswer>;
}
