import { existsSync, readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("../../fixtures/formats/", import.meta.url);

type Json = Readonly<Record<string, unknown>>;

/** One scenario of `test/fixtures/formats`: what a caller of a format sends and gets, and both sides of the provider's exchange. */
export interface FormatScenario {
  readonly name: string;
  readonly meta: {
    readonly method: "GET" | "POST";
    readonly path: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly expected_status: number;
    readonly upstream_path?: string;
  };
  readonly request: Json | undefined;
  readonly upstreamRequest: Json | undefined;
  readonly upstreamResponse: Buffer | undefined;
  readonly upstreamType: "application/json" | "text/event-stream";
  /** A whole reply, or the text of a stream. */
  readonly expected: Json | string;
}

/** The scenarios of a format, by the first letter of their names. */
export function readFormatScenarios(letter: string): FormatScenario[] {
  return readdirSync(FOLDER)
    .filter((name) => name.startsWith(letter))
    .toSorted()
    .map((name) => {
      const read = (file: string): Buffer | undefined => {
        const url = new URL(`${name}/${file}`, FOLDER);
        return existsSync(url) ? readFileSync(url) : undefined;
      };
      const json = (file: string): Json | undefined => {
        const bytes = read(file);
        return bytes && (JSON.parse(bytes.toString()) as Json);
      };
      const stream = read("upstream-response.sse");
      return {
        name,
        meta: json("meta.json") as unknown as FormatScenario["meta"],
        request: json("caller-request.json"),
        upstreamRequest: json("upstream-request.json"),
        upstreamResponse: stream ?? read("upstream-response.json"),
        upstreamType: stream === undefined ? "application/json" : "text/event-stream",
        expected: json("expected-reply.json") ?? read("expected-reply.sse")!.toString(),
      };
    });
}

/** The providers and models that the scenarios were written for, all served at `url`. */
export function formatModels(url: string): { providers: object; models: object } {
  const at = { allow_private: true, api_keys: ["credential"] };
  const modalities = { input: ["text", "image"], output: ["text"] };
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
        created: "2026-01-01",
        context_window: 200_000,
        max_output_tokens: 64_000,
        modalities,
      },
      "fx-g": {
        provider: "g",
        upstream_model: "gemini-3-flash",
        context_window: 1_048_576,
        max_output_tokens: 65_536,
        modalities,
      },
      "fx-o": {
        provider: "o",
        upstream_model: "llama",
        context_window: 131_072,
        max_output_tokens: 8192,
        modalities,
      },
    },
  };
}
