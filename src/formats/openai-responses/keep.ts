import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { AnswerBuilder } from "../../core/answer-builder.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import type { KeptResponse } from "../../core/kept-responses.ts";
import { exceedsJsonSize, MAX_PARSED_DEPTH, MAX_REQUEST_JSON } from "../../encoding/json-size.ts";
import type { AnswerStream, FormatRoute, Keeping, KeptInput } from "../format.ts";
import type { JsonText } from "../held-strings.ts";
import { responseId } from "./answer.ts";
import type { ReadRequest } from "./request.ts";
import { type Answered, KEPT, NOT_KEPT, writeStatefulItems } from "./response.ts";
import { EventStream } from "./stream.ts";

type Item = Readonly<Record<string, unknown>>;

/** The kept content of a response. */
interface Kept {
  /** The conversation before the answer. */
  readonly input: readonly Item[];
  /** The response object that was sent. */
  readonly response: { readonly output: readonly Item[] };
  /** The items with the provider's state, if the caller did not request that state; null without state. */
  readonly state: { readonly output: readonly Item[] } | null;
}

/** How the answer to a request is kept; undefined when it is not. */
export function keepingOf(read: ReadRequest): Keeping | undefined {
  if (!read.isKept) return undefined;
  return {
    whole: (completion, text) => ({
      id: responseId(completion.id),
      content: toContent(read, text, read.withState ? undefined : completion),
    }),
    endBytes: KEPT.length,
    // In the last event of a stream, the event's number follows.
    withdraw: (end) => end.replace(/"store": true\}(?=(?:,"sequence_number":\d+\})?\s*$)/, NOT_KEPT),
  };
}

/** The content to keep. `answer`: undefined when `text` has the state of the provider. */
function toContent(read: ReadRequest, text: JsonText, answer: Answered | undefined): Buffer {
  const items = answer && writeStatefulItems(answer, read);
  return Buffer.concat([
    Buffer.from(`{"input":${read.conversation},"response":`),
    toBuffer(text),
    ...(items === undefined
      ? [Buffer.from(',"state":null}')]
      : [Buffer.from(',"state":{"output":'), toBuffer(items), Buffer.from("}}")]),
  ]);
}

function toBuffer(text: JsonText): Buffer {
  return typeof text === "string" ? Buffer.from(text) : Buffer.concat(text);
}

/** A stream whose answer is kept. */
export class KeptStream implements AnswerStream {
  readonly contentType: string;
  readonly #read: ReadRequest;
  readonly #events: EventStream;
  /** The answer so far; undefined when the events have the state of the provider. */
  readonly #answer: AnswerBuilder | undefined;
  /** ID of the completion. */
  #id = "";

  constructor(read: ReadRequest, requestId: string) {
    this.#read = read;
    this.#events = new EventStream(read, requestId);
    this.#answer = read.withState ? undefined : new AnswerBuilder();
    this.contentType = this.#events.contentType;
  }

  get keepAlive(): string {
    return this.#events.keepAlive;
  }

  get ended(): boolean {
    return this.#events.ended;
  }

  get kept(): KeptResponse | undefined {
    if (!this.ended) return undefined;
    const answer = this.#answer && { id: this.#id, choices: this.#answer.build().choices };
    return { id: responseId(this.#id), content: toContent(this.#read, this.#events.response, answer) };
  }

  write(chunks: readonly CompletionChunk[]): string {
    const [first] = chunks;
    if (first?.event.case === "start") this.#id = first.event.value.id;
    if (this.#answer !== undefined) for (const chunk of chunks) this.#answer.add(chunk);
    return this.#events.write(chunks);
  }

  fail(failure: Failure): string {
    return this.#events.fail(failure);
  }
}

/** Limits of a kept content's JSON: a request, and an answer that may be as large. */
const MAX_KEPT_JSON = { depth: MAX_PARSED_DEPTH, values: 2 * MAX_REQUEST_JSON.values };

function readKept(content: Buffer): Kept {
  const json = content.toString("utf8");
  if (exceedsJsonSize(json, MAX_KEPT_JSON))
    throw new Failure("request_too_large", "The stored response has too many values to be read.");
  return JSON.parse(json) as Kept;
}

/** The items of a kept conversation, the answer included. Throws `request_too_large`. */
export function itemsOf(content: Buffer): readonly Item[] {
  const { input, response, state } = readKept(content);
  return [...input, ...(state ?? response).output];
}

const ID = /^[\w-]{1,128}$/;
const isName = (id: string): boolean => ID.test(id);

/** The routes of kept responses below a path. */
export function keptRoutes(path: string): readonly FormatRoute[] {
  return [
    {
      method: "GET",
      path: `${path}/{id}`,
      isName,
      operation: (id) => ({ name: "kept", find: (input) => find(id, input, ({ response }) => response) }),
    },
    { method: "DELETE", path: `${path}/{id}`, isName, operation: (id) => ({ name: "kept", find: remove(id) }) },
    {
      method: "GET",
      path: `${path}/{id}/input_items`,
      isName,
      operation: (id) => ({
        name: "kept",
        find: (input) => find(id, input, (kept) => toPage(id, kept, input.query)),
      }),
    },
  ];
}

async function find(
  id: string,
  { responses, accountId, query }: KeptInput,
  write: (kept: Kept) => object,
): Promise<() => object> {
  if (query.get("stream") === "true") throw invalidField("stream", "is not supported for stored responses");
  const found = await responses.find(accountId, id);
  return () => {
    const content = found?.open();
    if (content === undefined) throw notFound(id);
    return write(readKept(content));
  };
}

function remove(id: string): (input: KeptInput) => Promise<() => object> {
  return async ({ responses, accountId }) => {
    if (!(await responses.remove(accountId, id))) throw notFound(id);
    return () => ({ id, object: "response", deleted: true });
  };
}

function notFound(id: string): Failure {
  return new Failure("not_found", `Response with id '${id.slice(0, 64)}' not found.`);
}

const PAGE = { usual: 20, most: 100 } as const;

/** A page of the items before an answer; the newest first, unless `order` is `asc`. */
function toPage(id: string, { input }: Kept, query: URLSearchParams): object {
  const limit = Number(query.get("limit") ?? PAGE.usual);
  if (!Number.isInteger(limit) || limit < 1 || limit > PAGE.most)
    throw invalidField("limit", `must be a whole number from 1 to ${PAGE.most}`);
  const order = query.get("order") ?? "desc";
  if (order !== "asc" && order !== "desc") throw invalidField("order", "must be asc or desc");
  const items = input.map((item, at) => toListed(item, `${id.replace("resp_", "item_")}_${at}`));
  if (order === "desc") items.reverse();
  const after = query.get("after");
  const start = after === null ? 0 : items.findIndex((item) => item["id"] === after) + 1;
  if (after !== null && start === 0) throw invalidField("after", "is not an item of this response");
  const data = items.slice(start, start + limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.["id"] ?? null,
    last_id: data.at(-1)?.["id"] ?? null,
    has_more: start + limit < items.length,
  };
}

/** An item in the form of lists: with an ID, a type, and a list of parts. */
function toListed(item: Item, id: string): Item {
  const { content, role } = item;
  return {
    ...item,
    id: item["id"] ?? id,
    type: item["type"] ?? "message",
    ...(typeof content === "string" && {
      content: [{ type: role === "assistant" ? "output_text" : "input_text", text: content }],
    }),
  };
}
