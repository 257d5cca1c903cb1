import type { CacheMark } from "../../../gen/parley/v1/message_pb.js";
import type { TranslationLog } from "../wire/translation.ts";
import type { Block, CacheControl, Markable, MessagesBody } from "./wire.ts";

/** The provider refuses a request with more marks. */
const MAX_MARKS = 4;

/** The prompt-cache marks of one request, and which request field each came from. */
export class CacheMarks {
  /** Made with the first mark: most requests have none. */
  #fields: Map<Markable, string> | undefined;
  readonly #log: TranslationLog;
  #hasHour = false;

  constructor(log: TranslationLog) {
    this.#log = log;
  }

  /** For how long prefixes are kept at most. */
  get longest(): "none" | "minutes" | "hour" {
    if (this.#fields === undefined) return "none";
    return this.#hasHour ? "hour" : "minutes";
  }

  /** Puts `mark`, if there is one, on the wire block that `field` of the request became; undefined when it became none. */
  put(target: Markable | undefined, mark: CacheMark | undefined, field: string): void {
    if (mark === undefined) return;
    if (target === undefined) return this.#log.omit(`${field}.cache_control`);
    target.cache_control = toCacheControl(mark, field, this.#log);
    this.#fields ??= new Map();
    this.#fields.set(target, `${field}.cache_control`);
    if (target.cache_control.ttl === "1h") this.#hasHour = true;
  }

  /** The same for a whole message: the mark stands on its last block that can bear one. */
  putLast(blocks: readonly Block[], mark: CacheMark | undefined, field: string): void {
    if (mark !== undefined) this.put(blocks.findLast(isMarkable), mark, field);
  }

  /**
   * Keeps the provider's rules over the whole body: the last four marks stay, because each covers all that the ones
   * before it do, and an hour's entry may not follow a shorter one.
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
    return this.#fields?.get(target) ?? "cache_control";
  }
}

function toCacheControl({ ttl }: CacheMark, field: string, log: TranslationLog): CacheControl {
  if (ttl === "5m" || ttl === "1h") return { type: "ephemeral", ttl };
  log.omitWhen(ttl !== "", `${field}.cache_control.ttl`);
  return { type: "ephemeral" };
}

function isMarkable(block: Block): block is Exclude<Block, { type: "thinking" | "redacted_thinking" }> {
  return block.type !== "thinking" && block.type !== "redacted_thinking";
}

/** All that can bear a mark, in the order of the prefix that the provider caches. */
function inCacheOrder({
  tools = [],
  system = [],
  messages,
}: Pick<MessagesBody, "tools" | "system" | "messages">): Markable[] {
  const targets: Markable[] = [...tools, ...system];
  for (const block of messages.flatMap(({ content }) => content)) {
    if (block.type === "tool_result" && typeof block.content === "object") targets.push(...block.content);
    if (isMarkable(block)) targets.push(block);
  }
  return targets;
}
