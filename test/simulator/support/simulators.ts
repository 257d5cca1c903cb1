import { onTestFinished, vi } from "vitest";
import { startSimulator, type Simulator, type SimulatorOptions } from "../../../src/simulator/server.ts";

/** Starts a simulator that is closed at the end of the test. Removes real API keys from the environment. */
export async function openSimulator(options: SimulatorOptions = {}): Promise<Simulator> {
  for (const name of Object.keys(process.env)) {
    if (/^(ANTHROPIC|CLAUDE|OPENAI|GOOGLE|GEMINI)_/u.test(name)) vi.stubEnv(name, undefined);
  }
  const simulator = await startSimulator(options);
  onTestFinished(() => simulator.close());
  return simulator;
}

export const HEADERS = {
  anthropic: { "x-api-key": "any", "anthropic-version": "2023-06-01" },
  gemini: { "x-goog-api-key": "any" },
  openai: { authorization: "Bearer any" },
} as const;

export const GEMINI_MODEL = "/v1beta/models/gemini-3-flash-preview";

/** Minimal request of each dialect. */
export const REQUESTS = {
  anthropic: {
    path: "/v1/messages",
    body: { model: "claude-haiku-4-5-20251001", max_tokens: 1000, messages: [{ role: "user", content: "Say hello" }] },
  },
  gemini: {
    path: `${GEMINI_MODEL}:generateContent`,
    body: { contents: [{ role: "user", parts: [{ text: "Say hello" }] }] },
  },
  openai: {
    path: "/v1/chat/completions",
    body: { model: "gpt-5-mini", messages: [{ role: "user", content: "Say hello" }] },
  },
} as const;

export type DialectName = keyof typeof REQUESTS;

export interface Post {
  readonly dialect: DialectName;
  readonly path?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Posts a request of a dialect. Defaults to the minimal request. */
export function post(simulator: Simulator, { dialect, path, body, headers }: Post): Promise<Response> {
  return fetch(simulator.url + (path ?? REQUESTS[dialect].path), {
    method: "POST",
    headers: { "content-type": "application/json", ...HEADERS[dialect], ...headers },
    body: JSON.stringify(body ?? REQUESTS[dialect].body),
  });
}

/** Returns the minimal request as a stream. */
export function toStreamed(dialect: DialectName): { path: string; body: unknown } {
  const { path, body } = REQUESTS[dialect];
  if (dialect === "gemini") return { path: `${GEMINI_MODEL}:streamGenerateContent?alt=sse`, body };
  return { path, body: { ...body, stream: true } };
}
