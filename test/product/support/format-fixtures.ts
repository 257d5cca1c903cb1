import { readdirSync } from "node:fs";
import { type Json, readersOf } from "./fixtures.ts";
import type { UpstreamExchange } from "./upstream.ts";

const FOLDER = new URL("../../fixtures/formats/", import.meta.url);

/** A whole answer of the Anthropic dialect. */
export const ANSWER = {
  id: "msg_up",
  type: "message",
  role: "assistant",
  model: "claude",
  content: [{ type: "text", text: "Hello." }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 10, output_tokens: 3 },
};

/** The same of the Gemini dialect. */
export const GEMINI_ANSWER = {
  candidates: [{ content: { role: "model", parts: [{ text: "Hello." }] }, index: 0, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 3, totalTokenCount: 13 },
};

/** Sizes of the writes in which the upstream sends its answer. */
export const DELIVERIES = [
  ["one write", Infinity],
  ["7-byte writes", 7],
  ["1-byte writes", 1],
] as const;

/** One scenario of `test/fixtures/formats`: what a caller sends, what the upstream is sent and answers, and what the caller gets. */
export interface FormatScenario {
  readonly name: string;
  readonly meta: {
    readonly method: string;
    readonly path: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly stream: boolean;
    readonly upstream_path?: string;
    readonly expected_status: number;
  };
  readonly callerRequest: Json | undefined;
  readonly upstreamRequest: Json | undefined;
  readonly upstreamResponse: Buffer | undefined;
  /** A JSON document, or the text of a stream. */
  readonly expected: { readonly whole: Json } | { readonly stream: string };
  /** What the official client must have at the end of the stream. */
  readonly final: Json | undefined;
}

/** The scenarios whose names begin with `prefix`, in their order. */
export function readFormatScenarios(prefix: string): FormatScenario[] {
  return readdirSync(FOLDER)
    .filter((name) => name.startsWith(prefix))
    .toSorted()
    .map((name) => {
      const { read, json } = readersOf(new URL(`${name}/`, FOLDER));
      const whole = json("expected-reply.json");
      return {
        name,
        meta: json("meta.json") as unknown as FormatScenario["meta"],
        callerRequest: json("caller-request.json"),
        upstreamRequest: json("upstream-request.json"),
        upstreamResponse: read("upstream-response.json") ?? read("upstream-response.sse"),
        expected: whole === undefined ? { stream: String(read("expected-reply.sse")) } : { whole },
        final: json("expected-final.json"),
      };
    });
}

/** The providers and models that the scenarios were written for, all served at `url`. */
export function formatFixtureModels(url: string): { providers: object; models: object } {
  const at = { allow_private: true, api_keys: ["credential"] };
  const pictures = { input: ["text", "image"], output: ["text", "image"] };
  const seeing = { input: ["text", "image"], output: ["text"] };
  return {
    providers: {
      a: { dialect: "anthropic", base_url: url, ...at },
      g: { dialect: "gemini", base_url: url, ...at },
      o: { dialect: "openai", base_url: `${url}/v1`, ...at },
    },
    models: {
      "fx-a": {
        provider: "a",
        upstream_model: "claude-sonnet-4-5",
        context_window: 200_000,
        max_output_tokens: 64_000,
        modalities: seeing,
      },
      "fx-g": {
        provider: "g",
        upstream_model: "gemini-3-flash",
        context_window: 1_048_576,
        max_output_tokens: 65_536,
        modalities: seeing,
      },
      "fx-gi": {
        provider: "g",
        upstream_model: "gemini-3-pro-image",
        context_window: 65_536,
        max_output_tokens: 32_768,
        modalities: pictures,
        capabilities: { image_options: true },
      },
      "fx-o": {
        provider: "o",
        upstream_model: "llama",
        context_window: 131_072,
        max_output_tokens: 8192,
        modalities: seeing,
      },
    },
  };
}

/** Answers with the scenario's bytes in pieces of a size, each in a write of its own. */
export async function serveScenario(
  { response }: UpstreamExchange,
  { meta, upstreamResponse: bytes = Buffer.alloc(0) }: Pick<FormatScenario, "meta" | "upstreamResponse">,
  pieceBytes: number,
): Promise<void> {
  const type = meta.stream ? "text/event-stream" : "application/json";
  response.writeHead(200, { "content-type": type, "content-length": bytes.length });
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    response.write(bytes.subarray(at, at + pieceBytes));
    await new Promise((resolve) => setImmediate(resolve));
  }
  response.end();
}
