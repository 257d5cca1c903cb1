import type { Value } from "@bufbuild/protobuf/wkt";
import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { type Clamp, type Omission, OmissionReason } from "../../../gen/parley/v1/report_pb.js";
import { type ToolChoice, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import type { BodyText, SentSize, Translation } from "../../core/provider.ts";
import { MAX_PARSED_DEPTH, MAX_REQUEST_JSON, measureJson } from "../../encoding/json-size.ts";
import { omission } from "../../core/provider-options.ts";
import { invalidField } from "../../core/failure.ts";
import { isObject, type Json, parsed, parseMeasured } from "./json.ts";
import { spliced } from "./splice.ts";

/** Service tiers at or below list price, of all dialects. The last one is the default of Groq. */
const ORDINARY_TIERS: ReadonlySet<string> = new Set([
  "auto",
  "default",
  "standard",
  "standard_only",
  "flex",
  "on_demand",
]);
/** The most expensive documented tier of other dialects than those of OpenAI costs at most twice the list price. */
const MAX_TIER_FACTOR = 2;

/** Price factor of a requested service tier: `highest`, unless it is at or below list price. */
export function tierFactor(tier: string | undefined, highest = MAX_TIER_FACTOR): number {
  return tier === undefined || ORDINARY_TIERS.has(tier) ? 1 : highest;
}

/** Limit of logged omissions. A schema may have 100,000 rules that a provider does not enforce. */
export const MAX_OMISSIONS = 1_000;
/** Limits of a path, and of one key in it, in characters. */
const MAX_PATH_CHARS = 256;
const MAX_KEY_CHARS = 64;

/**
 * Path of a caller's key below another path. Long keys and paths are cut; otherwise the path of each rule below a key of a megabyte would
 * repeat the megabyte.
 */
export function pathBelow(path: string, key: string): string {
  return path.length > MAX_PATH_CHARS ? path : `${path}.${key.slice(0, MAX_KEY_CHARS).toWellFormed()}`;
}

/** Facts of a finished body that bound its cost. */
type FinishedFacts = Pick<Translation, "streamed" | "betas" | "headers" | "isCallers"> &
  Pick<SentSize, "maxTokens" | "pictureTokens" | "uses"> & {
    /** Whether the provider may search the web. Default: no. */
    readonly searches?: boolean;
    /** `SentSize.cacheWrite`, or a function that finds it in the text of the body. Default: none. */
    readonly cacheWrite?: SentSize["cacheWrite"] | ((json: string) => SentSize["cacheWrite"]);
    /** Whether the body contains the caller's own JSON. Default: whether `TranslationLog.verbatim` was called. */
    readonly verbatim?: boolean;
    /** The text of the caller's body, which is sent for the parts that the value shares with it. Default: the body is serialized. */
    readonly source?: BodyText | undefined;
    /** The requested service tier. */
    readonly tier?: string | undefined;
    /** Price factor of the requested service tier. Default: that of `tier`. */
    readonly priceFactor?: number;
    /** `SentSize.textBytes`. Default: the bytes of the body without media. */
    readonly textBytes?: number;
  };

/**
 * Collects the fields that a translation omits or clamps, by their path in the contract: `seed`, `stop_sequences[1]`,
 * `tools[0].function.strict`.
 */
export class TranslationLog {
  readonly #omitted: Omission[] = [];
  readonly #clamped: Clamp[] = [];
  #mediaBytes = 0;
  #verbatim = false;
  #readsAddresses = false;
  /** Remaining limit of keys and values for `parse`. */
  #jsonValues: number = MAX_REQUEST_JSON.values;

  /** Logs an omitted field, up to MAX_OMISSIONS. */
  omit(field: string): void {
    if (this.#omitted.length < MAX_OMISSIONS) this.#omitted.push(omission(field, OmissionReason.UNSUPPORTED));
  }

  /** Logs an omitted field if `present`. */
  omitWhen(present: boolean, field: string): void {
    if (present) this.omit(field);
  }

  /** Returns `sent`, and logs it if it differs from `requested`. Both are in the JSON form of the field. */
  clamp<T extends number | string>(field: string, requested: T, sent: T): T {
    if (sent !== requested) {
      const value: Clamp = { $typeName: "parley.v1.Clamp", field, requested: toValue(requested), sent: toValue(sent) };
      this.#clamped.push(value);
    }
    return sent;
  }

  /** Returns `value` clamped to the range, and logs a change. */
  clampToRange(field: string, value: number, [min, max]: readonly [min: number, max: number]): number {
    return this.clamp(field, value, Math.min(Math.max(value, min), max));
  }

  /**
   * Parses a text of the conversation that may be JSON. Undefined for any other text, and when all parsed texts together exceed the size
   * limits of a request body, which bound the objects in memory.
   */
  parse(text: string): unknown {
    const { depth, values } = measureJson(text, { depth: MAX_PARSED_DEPTH, values: this.#jsonValues });
    if (depth > MAX_PARSED_DEPTH || values > this.#jsonValues) return undefined;
    this.#jsonValues -= values;
    return parseMeasured(text);
  }

  /** Parses JSON that the caller wrote for this dialect and that is sent unchanged. Undefined when it is not JSON. */
  verbatim(json: string): unknown {
    this.#verbatim = true;
    return parsed(json);
  }

  /** Encodes a picture, recording or document as base64 for the body. Its length does not count as text tokens. */
  base64({ buffer, byteOffset, byteLength }: Uint8Array): string {
    const text = Buffer.from(buffer, byteOffset, byteLength).toString("base64");
    this.#mediaBytes += text.length;
    return text;
  }

  /** Notes that the provider fetches an image URL without checking that it is a picture: it may be a document of any length. */
  readsAddress(): void {
    this.#readsAddresses = true;
  }

  /** Whether nothing was omitted or clamped so far. */
  get isComplete(): boolean {
    return this.#omitted.length === 0 && this.#clamped.length === 0;
  }

  /** Returns the finished translation, with the body as JSON text without undefined fields. */
  finish(
    value: object,
    {
      source,
      streamed,
      maxTokens,
      pictureTokens,
      tier,
      priceFactor = tierFactor(tier),
      searches = false,
      cacheWrite = "none",
      betas,
      headers,
      isCallers,
      verbatim = isCallers === true,
      uses,
      ...size
    }: FinishedFacts,
  ): Translation {
    const text = (source && spliced(value as Json, source)) ?? JSON.stringify(value);
    const body = Buffer.from(text);
    const textBytes = size.textBytes ?? body.length - this.#mediaBytes;
    const written = typeof cacheWrite === "function" ? cacheWrite(text) : cacheWrite;
    const unbounded = searches ? "search" : this.#readsAddresses ? "address" : "no";
    const sent: SentSize = {
      textBytes,
      maxTokens,
      pictureTokens,
      priceFactor,
      unbounded,
      cacheWrite: written,
      ...(uses && { uses }),
    };
    return {
      body,
      omitted: this.#omitted,
      clamped: this.#clamped,
      streamed,
      sent,
      verbatim: this.#verbatim || verbatim,
      isCallers,
      headers,
      betas,
    };
  }
}

function toValue(value: number | string): Value {
  const kind =
    typeof value === "number" ? ({ case: "numberValue", value } as const) : ({ case: "stringValue", value } as const);
  return { $typeName: "google.protobuf.Value", kind };
}

/** The name of an enum's value in lower case; undefined for an unspecified one. */
export function enumWord(names: Readonly<Record<number, string>>, value: number): string | undefined {
  return value === 0 ? undefined : names[value]?.toLowerCase();
}

/** Parses JSON text that must be an object. Throws `invalid_request` that names `field`. */
export function readObject(text: string, field: string): Json {
  const value = parsed(text);
  if (!isObject(value)) throw invalidField(field, "must be a JSON object");
  return value;
}

/** A tool mode as OpenAI's dialects name it; undefined for an unspecified one. */
export function toolModeWord(mode: ToolMode): "auto" | "none" | "required" | undefined {
  return enumWord(ToolMode, mode) as ReturnType<typeof toolModeWord>;
}

/** Whether the request has a verbosity other than the default, `medium`. */
export function isVerbositySet({ verbosity }: CompletionRequest): boolean {
  return verbosity !== Verbosity.UNSPECIFIED && verbosity !== Verbosity.MEDIUM;
}

/** Whether the choice forces a tool call. */
export function forcesCall(toolChoice: ToolChoice | undefined): boolean {
  const choice = toolChoice?.choice;
  switch (choice?.case) {
    case "function":
    case "custom":
      return true;
    case "mode":
      return choice.value === ToolMode.REQUIRED;
    case "allowed":
      return choice.value.mode === ToolMode.REQUIRED;
    default:
      return false;
  }
}

/**
 * Logs the tool fields that are omitted because the request has no tools or the model takes none: the tools, a forced
 * call, and `parallel_tool_calls: false`. Fields without effect are not logged.
 */
export function omitToolFields({ tools, toolChoice, parallelToolCalls }: CompletionRequest, log: TranslationLog): void {
  log.omitWhen(tools.length > 0, "tools");
  log.omitWhen(forcesCall(toolChoice), "tool_choice");
  log.omitWhen(tools.length > 0 && parallelToolCalls === false, "parallel_tool_calls");
}
