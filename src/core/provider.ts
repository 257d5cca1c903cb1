import type { Choice, CompletionChunk, CompletionRequest, Modality, Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Clamp } from "../../gen/parley/v1/report_pb.js";

/** What an upstream model can do, as data: adapters ask these flags, never a model's name. `docs/configuration.md` lists them. */
export interface Capabilities {
  /** Takes `temperature` and `top_p`. */
  readonly sampling: boolean;
  /** Takes both of them in one request. */
  readonly temperatureWithTopP: boolean;
  /** The largest `temperature` it takes. */
  readonly maxTemperature: number;
  /** Takes `frequency_penalty` and `presence_penalty`. */
  readonly penalties: boolean;
  readonly seed: boolean;
  readonly logprobs: boolean;
  /** Gives more than one choice. */
  readonly multipleChoices: boolean;
  /** How its reasoning is controlled: not at all, by a token budget, by an effort it adapts to, or by a level. */
  readonly reasoning: "none" | "budget" | "adaptive" | "level";
  /** Reasons when the request says nothing about it. */
  readonly reasoningByDefault: boolean;
  readonly reasoningCanBeDisabled: boolean;
  /** The efforts or levels it knows, lowest first, in the words of `ReasoningEffort` (lower case). */
  readonly reasoningEfforts: readonly string[];
  /** For `budget`: the smallest and the largest budget, in tokens. */
  readonly reasoningBudget: readonly [min: number, max: number];
  /** Checks that reasoning blocks come back in an unchanged conversation. */
  readonly preservedReasoning: boolean;
  readonly tools: boolean;
  /** Can be made to call a tool. */
  readonly forcedTools: boolean;
  /** Enforces a JSON schema on its text. */
  readonly jsonSchema: boolean;
  /** Continues a trailing assistant message. */
  readonly prefill: boolean;
  /** Takes system messages in the middle of a conversation. */
  readonly midConversationSystem: boolean;
  /** Reads https addresses of pictures itself. */
  readonly imageUrls: boolean;
  /** Takes the size and the aspect ratio of a picture. */
  readonly imageOptions: boolean;
  /** OpenAI dialect: the name of the token limit. */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
  /** OpenAI dialect: message content may be an array of parts even when it is only text. */
  readonly contentParts: boolean;
  /** OpenAI dialect: understands `stream_options.include_usage`. */
  readonly streamUsage: boolean;
  /** Above this many `max_tokens` a whole answer is fetched as a stream and put together; 0 always. */
  readonly streamAbove: number;
}

/** A model as a provider knows it. */
export interface UpstreamModel {
  /** The provider's own name of it. */
  readonly name: string;
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
  /** What is sent when the request has no `max_tokens` and the dialect needs one. */
  readonly defaultMaxTokens: number;
  readonly inputModalities: ReadonlySet<Modality>;
  readonly outputModalities: ReadonlySet<Modality>;
  readonly capabilities: Capabilities;
}

/** The size of a request as it is sent: with a model's price it bounds what the request can cost. */
export interface SentSize {
  /** Bytes of the body without pictures, recordings and documents: text has at most one token per byte. */
  readonly textBytes: number;
  /** The cap on the tokens of each choice that the body asks for; undefined when it asks for none. */
  readonly maxTokens: number | undefined;
  /** What all prices are multiplied with at most, for the tier of service that the body asks for. Usually 1. */
  readonly priceFactor: number;
  /** Whether the provider may look things up in the web, and put any amount of it into the prompt. */
  readonly searches: boolean;
  /** For how long the body asks the provider to cache its prefixes. */
  readonly cacheWrite: "none" | "minutes" | "hour";
}

/** A request in a provider's dialect, and what of it had to be left out or moved into range. */
export interface Translation {
  /**
   * The body to post: JSON, as the bytes that are sent, which a long wait keeps outside of V8's heap. Empty once a stream
   * has given content, after which nothing is posted any more: it may be more than all else that an open stream holds.
   */
  body: Buffer;
  readonly omitted: readonly string[];
  readonly clamped: readonly Clamp[];
  /** Whether `body` asks for a stream: always in mode `stream`, and for a whole answer longer than `streamAbove`. */
  readonly streamed: boolean;
  /** Stays when `body` is emptied. */
  readonly sent: SentSize;
}

/** A provider's whole answer. */
export interface Answer {
  /** At least one. */
  readonly choices: Choice[];
  readonly usage: Usage | undefined;
}

/** How far a call has come, for judging what it may cost. Written by the provider's transport. */
export interface CallProgress {
  /** While no byte of the request has been written: a provider bills nothing for it. */
  unsent: boolean;
}

/** One call of an upstream model. */
export interface UpstreamCall {
  readonly model: UpstreamModel;
  readonly translation: Translation;
  /** Aborts with a Failure as its reason: caller gone, deadline, attempt timeout, shutdown. */
  readonly signal: AbortSignal;
  /** The longest silence between two reads of the answer. */
  readonly idleMs: number;
  /** Default: the call counts as sent. */
  readonly progress?: CallProgress | undefined;
  /** The line of keys for which it is. Default: of all that say nothing. */
  readonly keyFamilyId?: string | undefined;
  /** The account for which it is. Default: of all that say nothing. */
  readonly accountId?: string | undefined;
  /** How many gateways the request has come through before this one. Default: none. */
  readonly hops?: number | undefined;
}

/**
 * Takes a batch of a stream's chunks, in their order. Returns a promise when it has no room for more: nothing is emitted before
 * that resolves. It may throw, or reject with, a Failure, with which the stream ends: why the caller's signal aborted, or a
 * fault of ours. Why streams are pushed: docs/decisions/0022-pushed-streams.md.
 */
export type Emit = (batch: readonly CompletionChunk[]) => Promise<void> | undefined;

/**
 * A configured upstream service in one dialect. It keeps no state between calls and makes no decision but how to say
 * things: no retries, no logging, no clock.
 */
export interface Provider {
  /**
   * The request in the provider's dialect: a pure function. Throws an `invalid_request` Failure for what this model
   * cannot do at all and must not be dropped in silence.
   */
  translate(request: CompletionRequest, model: UpstreamModel, mode: "whole" | "stream"): Translation;

  /**
   * Posts and returns the whole answer. Only for translations that are not `streamed`. Throws a Failure, or the signal's
   * reason.
   */
  create(call: UpstreamCall): Promise<Answer>;

  /**
   * Posts and emits what arrives: per batch all chunks found in one read of the socket, never an empty batch, only
   * `delta`, `finish` and `usage` events. The first batch has content or a finish. Resolves only after a finish; an answer that
   * stops short throws `upstream_protocol`. Throws a Failure, that of `emit` too, or the signal's reason, and has closed the
   * connection then.
   */
  stream(call: UpstreamCall, emit: Emit): Promise<void>;

  /** Closes idle connections. Calls under way are not waited for. */
  close(): Promise<void>;
}
