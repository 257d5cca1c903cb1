import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { CacheMark, NativeBlock } from "../../../gen/parley/v1/message_pb.js";
import type { UpstreamModel } from "../../core/provider.ts";
import { parsed } from "../wire/json.ts";
import type { TranslationLog } from "../wire/translation.ts";
import type { ToolCallIds } from "./turns.ts";
import type { Block, CacheControl, Markable, MessagesBody } from "./wire.ts";

/** The provider refuses requests with more marks than this. */
const MAX_MARKS = 4;

/** The prompt-cache marks of one request, and which request field each came from. */
export class CacheMarks {
  /** Created with the first mark, because most requests have none. */
  #fields: Map<Markable, string> | undefined;
  readonly #log: TranslationLog;
  #hasHour = false;

  constructor(log: TranslationLog) {
    this.#log = log;
  }

  /** Longest requested cache lifetime. */
  get longest(): "none" | "minutes" | "hour" {
    if (this.#hasHour) return "hour";
    return this.#fields === undefined ? "none" : "minutes";
  }

  /** Assumes the longest lifetime for marks that a native block has of its own. */
  noteNative({ json }: NativeBlock): void {
    // Written anew, because the text may have the name with escapes.
    if (JSON.stringify(parsed(json)).includes("cache_control")) this.#hasHour = true;
  }

  /** Puts `mark` on the wire block made from `field`. `target` is undefined if the field became no block. */
  put(target: Markable | undefined, mark: CacheMark | undefined, field: string): void {
    if (mark === undefined) return;
    if (target === undefined) return this.#log.omit(`${field}.cache_mark`);
    target.cache_control = toCacheControl(mark, field, this.#log);
    this.#fields ??= new Map();
    this.#fields.set(target, `${field}.cache_mark`);
    if (target.cache_control.ttl === "1h") this.#hasHour = true;
  }

  /**
   * Applies the provider's rules to the whole body: keeps the last MAX_MARKS marks, because each covers the prefix of all
   * earlier ones, and shortens a one-hour mark that follows a shorter one.
   */
  settle(body: Pick<MessagesBody, "tools" | "system" | "messages">): void {
    if (this.#fields === undefined) return;
    const marked = inCacheOrder(body).filter((target) => target.cache_control !== undefined);
    for (const target of marked.slice(0, -MAX_MARKS)) {
      delete target.cache_control;
      this.#log.omit(this.#field(target));
    }
    let short = false;
    for (const target of marked.slice(-MAX_MARKS)) {
      if (target.cache_control?.ttl !== "1h") short = true;
      else if (short) {
        target.cache_control = { type: "ephemeral" };
        this.#log.omit(`${this.#field(target)}.ttl`);
      }
    }
  }

  #field(target: Markable): string {
    return this.#fields?.get(target) ?? "cache_mark";
  }
}

function toCacheControl({ ttl }: CacheMark, field: string, log: TranslationLog): CacheControl {
  if (ttl === "5m" || ttl === "1h") return { type: "ephemeral", ttl };
  log.omitWhen(ttl !== "", `${field}.cache_mark.ttl`);
  return { type: "ephemeral" };
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
}

const isList = <T>(value: readonly T[] | null): value is readonly T[] => Array.isArray(value);
