import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A provider that counts the generated tokens of each request, whether its caller received them or not. */
export interface CountingUpstream {
  readonly url: string;
  /** Tokens by the name in the request's prompt; absent while the answer is in flight. */
  readonly generated: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

/** Length and speed of one answer. */
interface Pace {
  readonly tokens: number;
  readonly tokensPerSecond: number;
}

const PROMPT_TOKENS = 5;
const BATCH_MS = 100;

/**
 * Starts a provider for all three dialects. It generates from the arrival of a request, at the drawn rate, and stops
 * when its connection is closed; it would bill the tokens until then.
 */
export async function startCountingUpstream(paceOf: (name: string) => Pace): Promise<CountingUpstream> {
  const generated = new Map<string, number>();
  const server = createServer({ noDelay: true }, (request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.once("end", () => {
      const body = Buffer.concat(pieces).toString();
      const name = /request-\d+/.exec(body)![0];
      answer({ request, response, body, name });
    });
  });
  const answer = ({ request, response, body, name }: Exchange): void => {
    const { tokens, tokensPerSecond } = paceOf(name);
    const dialect = dialectOf(request);
    const isStream = request.url!.includes("stream") || body.includes('"stream":true');
    /** Tokens generated so far, in batches of BATCH_MS. While this process is blocked, it generates none. */
    let said = 0;
    if (isStream) response.writeHead(200, { "content-type": "text/event-stream" });
    generated.set(name, 0);
    const timer = setInterval(() => {
      const now = Math.min(tokens, said + Math.floor((tokensPerSecond * BATCH_MS) / 1000));
      if (isStream && now > said) response.write(dialect.piece("word ".repeat(now - said)));
      said = now;
      if (now < tokens) return;
      clearInterval(timer);
      if (isStream) response.end(dialect.end(tokens));
      else {
        const text = JSON.stringify(dialect.whole("word ".repeat(tokens), tokens));
        response.writeHead(200, { "content-type": "application/json" }).end(text);
      }
    }, BATCH_MS);
    response.once("close", () => {
      clearInterval(timer);
      generated.set(name, said);
    });
  };
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    generated,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: string;
  readonly name: string;
}

/** A wire format with text and counts. */
interface Dialect {
  readonly piece: (text: string) => string;
  readonly end: (tokens: number) => string;
  readonly whole: (text: string, tokens: number) => object;
}

const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

const openaiUsage = (tokens: number): object => ({
  prompt_tokens: PROMPT_TOKENS,
  completion_tokens: tokens,
  total_tokens: PROMPT_TOKENS + tokens,
});
const geminiUsage = (tokens: number): object => ({
  promptTokenCount: PROMPT_TOKENS,
  candidatesTokenCount: tokens,
});
const anthropicUsage = (tokens: number): object => ({ input_tokens: PROMPT_TOKENS, output_tokens: tokens });

const OPENAI: Dialect = {
  piece: (content) => event({ choices: [{ index: 0, delta: { content }, finish_reason: null }] }),
  end: (tokens) =>
    `${event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }], usage: openaiUsage(tokens) })}data: [DONE]\n\n`,
  whole: (content, tokens) => ({
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: openaiUsage(tokens),
  }),
};

const GEMINI: Dialect = {
  piece: (text) => event({ candidates: [{ index: 0, content: { role: "model", parts: [{ text }] } }] }),
  end: (tokens) => event({ candidates: [{ index: 0, finishReason: "STOP" }], usageMetadata: geminiUsage(tokens) }),
  whole: (text, tokens) => ({
    candidates: [{ index: 0, content: { role: "model", parts: [{ text }] }, finishReason: "STOP" }],
    usageMetadata: geminiUsage(tokens),
  }),
};

const ANTHROPIC: Dialect = {
  piece: (text) => event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
  end: (tokens) =>
    event({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: anthropicUsage(tokens) }) +
    event({ type: "message_stop" }),
  whole: (text, tokens) => ({
    type: "message",
    content: [{ type: "text", text }],
    stop_reason: "end_turn",
    usage: anthropicUsage(tokens),
  }),
};

function dialectOf({ url = "" }: IncomingMessage): Dialect {
  if (url.startsWith("/v1beta")) return GEMINI;
  return url.startsWith("/v1/messages") ? ANTHROPIC : OPENAI;
}
