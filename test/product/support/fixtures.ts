import { existsSync, readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("../../fixtures/", import.meta.url);

/** One scenario of `test/fixtures`: both sides of an exchange, as far as it has them. */
export interface Scenario {
  readonly name: string;
  readonly meta: ScenarioMeta;
  readonly clientRequest: Json | undefined;
  readonly upstreamRequest: Json | undefined;
  readonly upstreamResponse: Buffer | undefined;
  /** A JSON document, or the events of a stream. */
  readonly expected: { readonly whole: Json } | { readonly stream: string };
}

interface ScenarioMeta {
  readonly provider: "anthropic" | "gemini" | "openai-compatible" | "gateway";
  readonly stream: boolean;
  readonly upstream_path?: string;
  readonly upstream_status?: number;
  readonly upstream_headers?: Readonly<Record<string, string>>;
  readonly upstream_request_headers?: Readonly<Record<string, string>>;
  readonly expected_status?: number;
  readonly expected_headers?: Readonly<Record<string, string>>;
}

export type Json = Readonly<Record<string, unknown>>;

/** Readers of a scenario's files; undefined for those that it does not have. */
export function readersOf(folder: URL) {
  const read = (file: string): Buffer | undefined => {
    const url = new URL(file, folder);
    return existsSync(url) ? readFileSync(url) : undefined;
  };
  const json = (file: string): Json | undefined => {
    const bytes = read(file);
    return bytes && (JSON.parse(bytes.toString()) as Json);
  };
  return { read, json };
}

/** All scenarios, in their order: their names begin with numbers. */
export function readScenarios(): Scenario[] {
  return readdirSync(FOLDER)
    .filter((name) => /^\d/.test(name))
    .toSorted()
    .map((name) => {
      const { read, json } = readersOf(new URL(`${name}/`, FOLDER));
      const whole = json("expected-openai.json");
      return {
        name,
        meta: json("meta.json") as unknown as ScenarioMeta,
        clientRequest: json("client-request.json"),
        upstreamRequest: json("upstream-request.json"),
        upstreamResponse: read("upstream-response.json") ?? read("upstream-response.sse"),
        expected: whole === undefined ? { stream: read("expected-openai.sse")!.toString() } : { whole },
      };
    });
}
