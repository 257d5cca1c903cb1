import { connect } from "node:net";
import OpenAI from "openai";
import { type Dispatcher, request as send } from "undici";
import { promptOf } from "../../support/faults/fault-server.ts";
import type { CallerPlan } from "./caller-plan.ts";
import { readHttpAnswer, textOfEvents } from "./http-reply.ts";
import { left, type Reply } from "./reply.ts";

/** One call in flight, from the client's side. */
export interface Asking {
  readonly plan: CallerPlan;
  /** Aborts when the caller cancels. */
  readonly signal: AbortSignal;
  /** Reports progress; resolves when the caller reads on. */
  readonly took: (read: { readonly pieces?: number; readonly bytes?: number }) => Promise<void>;
}

/** Addresses and key of the product. */
export interface HttpDoor {
  readonly url: string;
  readonly port: number;
  readonly key: string;
  /** Shared connections of callers. */
  readonly dispatcher: Dispatcher;
}

function bodyOf({ request, model, fallbacks, streamed }: CallerPlan) {
  return {
    model,
    fallback_models: [...fallbacks],
    stream: streamed,
    ...(streamed && { stream_options: { include_usage: true } }),
    messages: [{ role: "user" as const, content: promptOf(request) }],
  };
}

/** The request's ID in the ledger. */
export function requestIdOf(request: number): string {
  return `faults-${request}`;
}

function headersOf({ request, deadlineMs }: CallerPlan): Record<string, string> {
  return {
    "x-request-id": requestIdOf(request),
    ...(deadlineMs !== undefined && { "x-request-timeout-ms": String(deadlineMs) }),
  };
}

/** Calls with undici, on kept-alive connections. */
export async function askUndici({ url, key, dispatcher }: HttpDoor, { plan, signal, took }: Asking): Promise<Reply> {
  let body = "";
  try {
    const answer = await send(`${url}/v1/chat/completions`, {
      dispatcher,
      signal,
      method: "POST",
      headers: { ...headersOf(plan), authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(bodyOf(plan)),
    });
    const read = (ended: boolean): Reply =>
      readHttpAnswer({ status: answer.statusCode, type: String(answer.headers["content-type"]), body, ended });
    try {
      const decoder = new TextDecoder();
      for await (const piece of answer.body as AsyncIterable<Buffer>) {
        body += decoder.decode(piece, { stream: true });
        await took({ pieces: 1, bytes: piece.length });
      }
      return read(true);
    } catch (error) {
      if (signal.aborted) return left(textOfEvents(body));
      const reply = read(false);
      if (reply.end === "failed") return reply;
      return { ...reply, end: "broken", breaches: [...reply.breaches, String(error)] };
    }
  } catch (error) {
    return signal.aborted ? left("") : { end: "broken", text: "", breaches: [String(error)] };
  }
}

/** Calls with OpenAI's client. */
export async function askOpenAi({ url, key, dispatcher }: HttpDoor, { plan, signal, took }: Asking): Promise<Reply> {
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0, fetchOptions: { dispatcher } });
  let text = "";
  try {
    const { stream, ...body } = bodyOf(plan);
    const options = { signal, headers: headersOf(plan) };
    if (!stream) {
      const { choices, model, usage } = await client.chat.completions.create(body, options);
      return { end: "complete", text: choices[0]?.message.content ?? "", model, usage: usageOf(usage), breaches: [] };
    }
    const chunks = await client.chat.completions.create({ ...body, stream }, options);
    let model: string | undefined;
    let usage: Reply["usage"];
    let finishes = 0;
    for await (const chunk of chunks) {
      ({ model } = chunk);
      usage = usageOf(chunk.usage) ?? usage;
      const [choice] = chunk.choices;
      if (choice?.finish_reason) finishes += 1;
      if (choice?.delta.content) {
        text += choice.delta.content;
        await took({ pieces: 1 });
      }
    }
    // To this client a closed connection is the end of the answer: check the finish reason.
    if (signal.aborted) return left(text);
    return { end: finishes === 1 ? "complete" : "broken", text, model, usage, breaches: [] };
  } catch (error) {
    if (signal.aborted) return left(text);
    if (!(error instanceof OpenAI.APIError)) return { end: "broken", text, breaches: [String(error)] };
    const { status, type, code, message } = error as InstanceType<typeof OpenAI.APIError>;
    if (type === undefined) return { end: "broken", text, breaches: [String(error)] };
    return { end: "failed", text, failure: { http: status, type, code, message }, breaches: [] };
  }
}

function usageOf(usage: OpenAI.CompletionUsage | null | undefined): Reply["usage"] {
  return usage ? { prompt: usage.prompt_tokens, completion: usage.completion_tokens } : undefined;
}

/** Calls on a separate raw connection. */
export async function askRaw({ port, key }: HttpDoor, { plan, signal, took }: Asking): Promise<Reply> {
  const body = JSON.stringify(bodyOf(plan));
  const headers = Object.entries({
    ...headersOf(plan),
    host: `127.0.0.1:${port}`,
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
  });
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const leave = (): void => void socket.destroy();
  signal.addEventListener("abort", leave, { once: true });
  const message = new ChunkedMessage();
  const isHalfClosed = plan.leaving?.when === "half-closed";
  try {
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\n${headers.map((pair) => `${pair.join(": ")}\r\n`).join("")}\r\n${body}`,
    );
    if (isHalfClosed) socket.end();
    for await (const bytes of socket as AsyncIterable<Buffer>) {
      message.add(bytes);
      if (message.complete) break;
      await took({ pieces: 1, bytes: bytes.length });
    }
  } catch (error) {
    if (!signal.aborted && !isHalfClosed) message.breaches.push(String(error));
  } finally {
    signal.removeEventListener("abort", leave);
    socket.destroy();
  }
  const { complete: ended, status, type, text } = message;
  if ((signal.aborted || isHalfClosed) && !ended)
    return left(type.startsWith("text/event-stream") ? textOfEvents(text) : "");
  if (status === 0) return { end: "broken", text: "", breaches: ["no answer", ...message.breaches] };
  const reply = readHttpAnswer({ status, type, body: text, ended });
  return { ...reply, breaches: [...reply.breaches, ...message.breaches] };
}

/** Parser of an HTTP/1.1 response. */
class ChunkedMessage {
  readonly breaches: string[] = [];
  status = 0;
  type = "";
  complete = false;
  #arrived = Buffer.alloc(0);
  #length: number | undefined;
  readonly #body: Buffer[] = [];

  get text(): string {
    // A truncated body may end within a character.
    return new TextDecoder().decode(Buffer.concat(this.#body), { stream: !this.complete });
  }

  add(bytes: Buffer): void {
    this.#arrived = Buffer.concat([this.#arrived, bytes]);
    if (this.status === 0 && !this.#readHead()) return;
    if (this.#length === undefined) this.#readChunks();
    else {
      this.#body.push(this.#arrived);
      this.complete = this.#body.reduce((sum, piece) => sum + piece.length, 0) >= this.#length;
      this.#arrived = Buffer.alloc(0);
    }
  }

  #readHead(): boolean {
    const end = this.#arrived.indexOf("\r\n\r\n");
    if (end < 0) return false;
    const head = this.#arrived.toString("latin1", 0, end);
    this.status = Number(head.split(" ")[1]);
    this.type = /^content-type: *(.*)$/im.exec(head)?.[1] ?? "";
    const length = /^content-length: *(\d+)/im.exec(head)?.[1];
    this.#length = length === undefined ? undefined : Number(length);
    this.#arrived = this.#arrived.subarray(end + 4);
    return true;
  }

  #readChunks(): void {
    for (;;) {
      const lineEnd = this.#arrived.indexOf("\r\n");
      if (lineEnd < 0) return;
      const size = Number.parseInt(this.#arrived.toString("latin1", 0, lineEnd), 16);
      if (Number.isNaN(size)) return void this.breaches.push("a chunk without its size");
      if (this.#arrived.length < lineEnd + 2 + size + 2) return;
      this.#body.push(this.#arrived.subarray(lineEnd + 2, lineEnd + 2 + size));
      this.#arrived = this.#arrived.subarray(lineEnd + 2 + size + 2);
      if (size === 0) {
        this.complete = true;
        if (this.#arrived.length > 0) this.breaches.push("bytes after the end of the answer");
        return;
      }
    }
  }
}
