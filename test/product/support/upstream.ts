import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** One request that reached the upstream. */
export interface UpstreamExchange {
  readonly request: IncomingMessage;
  readonly body: string;
  readonly response: ServerResponse;
  /** Whether its connection is closed, or its answer complete. */
  closed: boolean;
}

/** A provider that answers as a test says, on a real socket. */
export interface Upstream {
  readonly url: string;
  /** Everything that was asked, oldest first. */
  readonly exchanges: UpstreamExchange[];
  close(): Promise<void>;
}

/** Starts one. What `answer` leaves open stays open until the caller leaves, or `close`. */
export async function startUpstream(answer: (exchange: UpstreamExchange) => void | Promise<void>): Promise<Upstream> {
  const exchanges: UpstreamExchange[] = [];
  const server = createServer({ noDelay: true }, (request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.once("end", () => {
      const exchange = { request, response, body: Buffer.concat(pieces).toString(), closed: false };
      exchanges.push(exchange);
      response.once("close", () => void (exchange.closed = true));
      void answer(exchange);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The configuration of a provider of the OpenAI dialect at `url`, with the model `local/test`. */
export function localModel(url: string): { providers: object; models: object } {
  return {
    providers: { local: { dialect: "openai", base_url: `${url}/v1`, allow_private: true } },
    models: {
      "local/test": {
        provider: "local",
        upstream_model: "test",
        context_window: 100_000,
        max_output_tokens: 10_000,
        price: { input: 1, output: 2 },
      },
    },
  };
}

/** One event of a stream in the OpenAI dialect that says `text`. */
export function textEvent(text: string): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })}\n\n`;
}

/** The end of such a stream. */
export const END_EVENTS = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`;

/** Writes the head of a stream. */
export function beginStream(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
}

/** Answers with `text`, in the way that the request asks for. */
export function answerText({ body, response }: UpstreamExchange, text: string): void {
  if ((JSON.parse(body) as { stream?: boolean }).stream === true) {
    beginStream(response);
    response.end(textEvent(text) + END_EVENTS);
    return;
  }
  const message = { role: "assistant", content: text };
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  answerJson(response, 200, { choices: [{ index: 0, message, finish_reason: "stop" }], usage });
}

/** Answers with a status, a JSON body and headers. */
export function answerJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}
