import type { Capabilities, TranslateOptions } from "../../core/provider.ts";
import { isObject, type Json, object } from "../wire/json.ts";
import type { OpenAiRequest } from "./wire.ts";

const DIALECT = "openai";

/** A translated request with the caller's own JSON where it has the same meaning. */
export interface CallersWords {
  readonly body: object;
  /** Whether it has all fields of the caller's body, including those that the contract does not have. */
  readonly isWhole: boolean;
  /** Whether it has fields that the translation does not have. */
  readonly hasMore: boolean;
}

/**
 * The translation `body` of a chat completion in the form of its caller's body: the fields in the caller's order, with the caller's
 * values where they have the same meaning. Fields that the translation omits are left out, except defaults that the caller wrote, and,
 * with `others`, fields that the contract does not have. Undefined without a caller's body of this dialect.
 */
export function inCallersWords(
  body: OpenAiRequest,
  {
    callers,
    others,
    can,
  }: Pick<TranslateOptions, "callers"> & { readonly others: boolean; readonly can: Capabilities },
): CallersWords | undefined {
  const given = callers?.dialect === DIALECT ? callers.json : undefined;
  if (given === undefined) return undefined;
  const words = new Words(others);
  const own = words.request(given, body, can);
  // Fields that are reported as omitted must not be sent.
  if (others && words.isReplaced) return inCallersWords(body, { callers, others: false, can });
  return { body: own, isWhole: others, hasMore: words.hasMore };
}

/** Fields of a request that have a place in the contract. */
const OF_THE_CONTRACT: Readonly<Record<keyof OpenAiRequest, true>> = {
  model: true,
  messages: true,
  stream: true,
  stream_options: true,
  max_tokens: true,
  max_completion_tokens: true,
  temperature: true,
  top_p: true,
  n: true,
  stop: true,
  seed: true,
  frequency_penalty: true,
  presence_penalty: true,
  logit_bias: true,
  logprobs: true,
  top_logprobs: true,
  tools: true,
  tool_choice: true,
  parallel_tool_calls: true,
  response_format: true,
  reasoning_effort: true,
  verbosity: true,
  modalities: true,
  audio: true,
  image_config: true,
  prediction: true,
  user: true,
  safety_identifier: true,
  metadata: true,
  service_tier: true,
  store: true,
  prompt_cache_key: true,
  moderation: true,
  prompt_cache_options: true,
  prompt_cache_retention: true,
  web_search_options: true,
};

/** Fields of messages, parts and tools that have a place in the contract; the provider gets the translation's values of them. */
const OF_THE_CONTRACT_BELOW: ReadonlySet<string> = new Set([
  "annotations",
  "cache_control",
  "extra_content",
  "images",
  "reasoning_content",
  "thinking_blocks",
]);

/** Optional fields of the contract in messages, parts, tools and objects. `null` has the meaning of an absent field. */
const OPTIONAL_BELOW: ReadonlySet<string> = new Set([
  "aspect_ratio",
  "audio",
  "content",
  "description",
  "detail",
  "file_data",
  "file_id",
  "filename",
  "format",
  "image_size",
  "include_usage",
  "name",
  "parameters",
  "refusal",
  "schema",
  "strict",
  "tool_call_id",
  "tool_calls",
]);

type IsDefault = (value: unknown, context: { readonly body: OpenAiRequest; readonly can: Capabilities }) => boolean;

/** Default values. The translation leaves them out, because some servers do not know the field. */
const DEFAULTS: ReadonlyMap<string, IsDefault> = new Map<keyof OpenAiRequest, IsDefault>([
  ["stream", (value) => value === false],
  ["store", (value) => value === false],
  ["n", (value, { can }) => value === 1 && can.multipleChoices],
  ["logprobs", (value, { can }) => value === false && can.logprobs],
  ["parallel_tool_calls", (value, { body }) => value === true && body.tools !== undefined],
  ["response_format", (value) => object(value)["type"] === "text" && Object.keys(object(value)).length === 1],
]);

type Keeps = (key: string, value: unknown) => boolean;
type Join = (given: unknown, translated: unknown) => unknown;
/** How fields are joined that can be written in several ways. */
type Joins = Readonly<Record<string, Join>>;

/** Replaces values of a translation by the caller's values of the same meaning. Equal values are shared. */
class Words {
  /** Whether an object or a list of the caller, which may have further fields, was replaced. */
  isReplaced = false;
  hasMore = false;
  readonly #others: boolean;

  constructor(others: boolean) {
    this.#others = others;
  }

  request(given: Json, body: OpenAiRequest, can: Capabilities): Json {
    const context = { body, can };
    const keeps: Keeps = (key, value) =>
      Object.hasOwn(OF_THE_CONTRACT, key) ? DEFAULTS.get(key)?.(value, context) === true : this.#others;
    return this.#object(given, body as unknown as Json, {
      keeps,
      joins: {
        messages: (one, other) => this.#list(one, other, (message, sent) => this.#message(message, sent, can)),
        tools: (one, other) => this.#list(one, other, (tool, sent) => this.#tool(tool, sent)),
        stop: (one, other) => (isOnly(one, other) ? one : this.#value(one, other)),
        prediction: (one, other) => this.#message(one, other, can),
        audio: (one, other) => this.#value(one, other, { voice: (voice, id) => this.#voice(voice, id) }),
      },
    });
  }

  #message(given: unknown, translated: unknown, can: Capabilities): unknown {
    if (!isObject(given) || !isObject(translated)) return this.#replace(given, translated);
    const { role } = given;
    if (role !== translated["role"] && role !== "developer") return this.#replace(given, translated);
    const content: Join = (one, other) => this.#content(one, other, can);
    return this.#object(given, translated, { joins: { content } });
  }

  /** A text equals parts with this text, and an absent text equals an empty one. */
  #content(given: unknown, translated: unknown, can: Capabilities): unknown {
    if (translated === null) return given === "" ? given : this.#replace(given, translated);
    if (typeof given === "string" && Array.isArray(translated) && textOf(translated) === given) return given;
    const [only] = Array.isArray(given) && given.length === 1 ? (given as unknown[]) : [];
    if (typeof translated !== "string" || !isObject(only) || !can.contentParts) return this.#value(given, translated);
    return this.#list(given, [{ type: "text", text: translated }], (part, sent) => this.#value(part, sent));
  }

  /** An object with the ID equals the ID. */
  #voice(given: unknown, id: unknown): unknown {
    return isObject(given) && given["id"] === id ? this.#object(given, { id }, {}) : this.#value(given, id);
  }

  /** Joins a tool. The translation does not change schemas. */
  #tool(given: unknown, translated: unknown): unknown {
    const asGiven: Join = (one) => one;
    const joins = { parameters: asGiven, format: asGiven };
    const keeps: Keeps = (key, value) => (key === "description" && value === "") || this.#keepsBelow(key, value);
    const definition: Join = (one, other) =>
      isObject(one) && isObject(other) ? this.#object(one, other, { joins, keeps }) : this.#replace(one, other);
    if (!isObject(given) || !isObject(translated) || given["type"] !== translated["type"])
      return this.#replace(given, translated);
    return this.#object(given, translated, { joins: { function: definition, custom: definition } });
  }

  #value(given: unknown, translated: unknown, joins: Joins = {}): unknown {
    if (given === translated) return given;
    if (Array.isArray(translated)) return this.#list(given, translated, (one, other) => this.#value(one, other));
    if (!isObject(given) || !isObject(translated) || given["type"] !== translated["type"])
      return this.#replace(given, translated);
    return this.#object(given, translated, { joins });
  }

  /** Joins lists by index. A list of another length is replaced. */
  #list(given: unknown, translated: unknown, join: Join): unknown {
    if (!Array.isArray(given) || !Array.isArray(translated) || given.length !== translated.length)
      return this.#replace(given, translated);
    const own = given.map((each, at) => join(each, translated[at]));
    return own.every((each, at) => each === given[at]) ? given : own;
  }

  #object(
    given: Json,
    translated: Json,
    { keeps, joins = {} }: { readonly keeps?: Keeps; readonly joins?: Joins },
  ): Json {
    const entries: [string, unknown][] = [];
    let isSame = true;
    for (const key of Object.keys(given)) {
      const before = given[key];
      const after = Object.hasOwn(translated, key) ? translated[key] : undefined;
      if (after !== undefined) {
        const own = Object.hasOwn(joins, key) ? joins[key]!(before, after) : this.#value(before, after);
        if (own !== before) isSame = false;
        entries.push([key, own]);
      } else if (keeps === undefined ? this.#keepsBelow(key, before) : keeps(key, before)) {
        this.hasMore = true;
        entries.push([key, before]);
      } else {
        isSame = false;
        if (!OF_THE_CONTRACT_BELOW.has(key)) this.#replace(before, undefined);
      }
    }
    for (const [key, value] of Object.entries(translated)) {
      if (value === undefined || Object.hasOwn(given, key)) continue;
      isSame = false;
      entries.push([key, value]);
    }
    return isSame ? given : Object.fromEntries(entries);
  }

  #keepsBelow(key: string, value: unknown): boolean {
    const saysNothing = value === null && OPTIONAL_BELOW.has(key);
    return this.#others && !saysNothing && !OF_THE_CONTRACT_BELOW.has(key);
  }

  #replace(given: unknown, translated: unknown): unknown {
    if (typeof given === "object" && given !== null) this.isReplaced = true;
    return translated;
  }
}

function isOnly(given: unknown, translated: unknown): boolean {
  return Array.isArray(translated) && translated.length === 1 && translated[0] === given;
}

/** The text of parts that are all texts; undefined for others. */
function textOf(parts: readonly unknown[]): string | undefined {
  const texts = parts.map((part) => object(part)["text"]);
  return texts.every((text) => typeof text === "string") ? texts.join("") : undefined;
}
