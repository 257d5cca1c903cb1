import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { CacheMark, NativeBlock } from "../../../gen/parley/v1/message_pb.js";
import type { UpstreamModel } from "../../core/provider.ts";
import type { Place } from "../wire/block-turns.ts";
import { toDurationText } from "../wire/duration.ts";
import { parsed } from "../wire/json.ts";
import type { ToolCallIds } from "../wire/tool-call-ids.ts";
import type { TranslationLog } from "../wire/translation.ts";
import type { Block, CacheControl, Markable, MessagesBody } from "./wire.ts";

/** Limit of marks per request; the provider refuses more. */
const MAX_MARKS = 4;

/** Lifetimes of the provider in the JSON form of a duration. */
const LIFETIMES = { "5m": "300s", "1h": "3600s" } as const;

const SHORTER_SECONDS = 300n;

/** The origin of a mark. */
interface MarkOrigin {
  /** Path of the mark in the request. */
  readonly field: string;
  /** The requested lifetime; undefined without one. */
  readonly ttl: string | undefined;
}

/** The prompt-cache marks of one request, and which request field each came from. */
export class CacheMarks {
  /** Created with the first mark, because most requests have none. */
  #origins: Map<Markable, MarkOrigin> | undefined;
  readonly #log: TranslationLog;
  #hasHour = false;

  constructor(log: TranslationLog) {
    this.#log = log;
  }

  /** Longest requested cache lifetime. */
  get longest(): "none" | "minutes" | "hour" {
    if (this.#hasHour) return "hour";
    return this.#origins === undefined ? "none" : "minutes";
  }

  /** Assumes the longest lifetime if a native block has marks of its own. */
  noteNative({ json }: NativeBlock): void {
    // Serialized again, because the text may contain the name with escapes.
    if (!json.includes("cache_control") && !json.includes("\\u")) return;
    if (JSON.stringify(parsed(json)).includes("cache_control")) this.#hasHour = true;
  }

  /** Puts `mark` on the wire block made from `field`. `target` is undefined if the field became no block. */
  put(target: Markable | undefined, mark: CacheMark | undefined, field: string): void {
    if (mark === undefined) return;
    if (target === undefined) return this.#log.omit(`${field}.cache_mark`);
    target.cache_control = toCacheControl(mark);
    this.#origins ??= new Map();
    const ttl = mark.ttl && toDurationText(mark.ttl);
    this.#origins.set(target, { field: `${field}.cache_mark`, ttl });
    if (target.cache_control.ttl === "1h") this.#hasHour = true;
  }

  /**
   * Applies the provider's rules to the whole body: keeps the last MAX_MARKS marks, because each covers the prefix of all
   * earlier ones, and shortens a one-hour mark that follows a shorter one. Logs the lifetimes that are sent instead of the
   * requested ones.
   */
  settle(body: Pick<MessagesBody, "tools" | "system" | "messages">): void {
    if (this.#origins === undefined) return;
    const marked = inCacheOrder(body).filter((target) => target.cache_control !== undefined);
    for (const target of marked.slice(0, -MAX_MARKS)) {
      delete target.cache_control;
      this.#log.omit(this.#origin(target).field);
    }
    let short = false;
    for (const target of marked.slice(-MAX_MARKS)) {
      const lifetime = target.cache_control?.ttl;
      const { field, ttl = lifetime && LIFETIMES[lifetime] } = this.#origin(target);
      if (lifetime !== "1h") short = true;
      else if (short) target.cache_control = { type: "ephemeral" };
      if (ttl !== undefined) this.#log.clamp(`${field}.ttl`, ttl, LIFETIMES[target.cache_control?.ttl ?? "5m"]);
    }
  }

  /** The origin of a mark. Marks within native blocks come from no field. */
  #origin(target: Markable): MarkOrigin {
    return this.#origins?.get(target) ?? { field: "cache_mark", ttl: undefined };
  }
}

/** The provider's next longer lifetime, or its longest. */
function toCacheControl({ ttl }: CacheMark): CacheControl {
  if (ttl === undefined) return { type: "ephemeral" };
  const isShort = ttl.seconds < SHORTER_SECONDS || (ttl.seconds === SHORTER_SECONDS && ttl.nanos <= 0);
  return { type: "ephemeral", ttl: isShort ? "5m" : "1h" };
}

function isMarkable(block: Block): block is Exclude<Block, { type: "thinking" | "redacted_thinking" }> {
  return block.type !== "thinking" && block.type !== "redacted_thinking";
}

/** All markable blocks in the order of the cached prefix. */
function inCacheOrder({
  tools = [],
  system = [],
  messages,
}: Pick<MessagesBody, "tools" | "system" | "messages">): Markable[] {
  const targets: Markable[] = [...tools, ...system];
  for (const block of messages.flatMap(({ content }) => content)) {
    // A native block may have null as its content.
    if (block.type === "tool_result" && typeof block.content === "object" && isList(block.content))
      targets.push(...block.content);
    if (isMarkable(block)) targets.push(block);
  }
  return targets;
}

/** State of one translation: the request, its target model, and the omissions and cache marks collected so far. */
export interface TranslationContext {
  readonly request: CompletionRequest;
  readonly model: UpstreamModel;
  readonly log: TranslationLog;
  readonly marks: CacheMarks;
  readonly ids: ToolCallIds;
  readonly place: Place;
}

const isList = <T>(value: readonly T[] | null): value is readonly T[] => Array.isArray(value);
