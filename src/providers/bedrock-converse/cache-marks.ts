import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { CacheMark } from "../../../gen/parley/v1/message_pb.js";
import type { UpstreamModel } from "../../core/provider.ts";
import type { Place } from "../wire/block-turns.ts";
import { toDurationText } from "../wire/duration.ts";
import type { ToolCallIds } from "../wire/tool-call-ids.ts";
import type { TranslationLog } from "../wire/translation.ts";
import type { DocumentNames } from "./documents.ts";
import type { CachePointBlock } from "./wire.ts";

/** Limit of cache points per request; the provider refuses more. Source: "Prompt caching" in the documentation of Bedrock. */
const MAX_POINTS = 4;

/** Lifetimes of the provider in the JSON form of a duration. */
const LIFETIMES = { "5m": "300s", "1h": "3600s" } as const;

const SHORTER_SECONDS = 300n;

interface MarkOrigin {
  /** Path of the mark in the request. */
  readonly field: string;
  readonly mark: CacheMark;
}

/** The prompt-cache marks of one request, which become blocks after the marked ones. */
export class CacheMarks {
  readonly #origins = new Map<object, MarkOrigin>();
  readonly #points = new Map<object, CachePointBlock>();
  readonly #log: TranslationLog;
  readonly #taken: boolean;

  /** `taken`: whether the model takes cache points. */
  constructor(log: TranslationLog, taken: boolean) {
    this.#log = log;
    this.#taken = taken;
  }

  /** Longest cache lifetime that is sent; known after `settle`. */
  get longest(): "none" | "minutes" | "hour" {
    if (this.#points.size === 0) return "none";
    return [...this.#points.values()].some(({ cachePoint }) => cachePoint.ttl === "1h") ? "hour" : "minutes";
  }

  /** Marks the block made from `field`; `target` is undefined if the field became no block that can be marked. */
  put(target: object | undefined, mark: CacheMark | undefined, field: string): void {
    if (mark === undefined) return;
    if (target === undefined || !this.#taken) this.#log.omit(`${field}.cache_mark`);
    else this.#origins.set(target, { field: `${field}.cache_mark`, mark });
  }

  /**
   * Applies the provider's rules to the marks of all blocks, in the order of the prefix: keeps the last MAX_POINTS, because each covers
   * the prefix of all earlier ones, and shortens a one-hour lifetime that follows a shorter one.
   */
  settle(blocks: readonly object[]): void {
    const marked = blocks.flatMap((block) => {
      const origin = this.#origins.get(block);
      return origin === undefined ? [] : [{ block, ...origin }];
    });
    for (const { field } of marked.slice(0, -MAX_POINTS)) this.#log.omit(field);
    let short = false;
    for (const { block, field, mark } of marked.slice(-MAX_POINTS)) {
      const wanted = toLifetime(mark);
      short ||= wanted !== "1h";
      const ttl = short && wanted === "1h" ? "5m" : wanted;
      if (mark.ttl !== undefined) this.#log.clamp(`${field}.ttl`, toDurationText(mark.ttl), LIFETIMES[ttl ?? "5m"]);
      this.#points.set(block, { cachePoint: { type: "default", ttl } });
    }
  }

  /** The blocks, with a cache point after each marked one. */
  withPoints<Block extends object>(blocks: readonly Block[]): (Block | CachePointBlock)[] {
    return blocks.flatMap((block) => {
      const point = this.#points.get(block);
      return point === undefined ? [block] : [block, point];
    });
  }
}

/** The provider's next longer lifetime, or its longest; undefined for its default. */
function toLifetime({ ttl }: CacheMark): "5m" | "1h" | undefined {
  if (ttl === undefined) return undefined;
  const isShort = ttl.seconds < SHORTER_SECONDS || (ttl.seconds === SHORTER_SECONDS && ttl.nanos <= 0);
  return isShort ? "5m" : "1h";
}

/** State of one translation. */
export interface TranslationContext {
  readonly request: CompletionRequest;
  readonly model: UpstreamModel;
  readonly log: TranslationLog;
  readonly marks: CacheMarks;
  readonly ids: ToolCallIds;
  readonly place: Place;
  readonly documents: DocumentNames;
}
