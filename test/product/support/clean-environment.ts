import { vi } from "vitest";

/** Takes away what clients read from the environment by themselves: keys, addresses, tracing. Ends with the test. */
export function cleanEnvironment(): void {
  const names = Object.keys(process.env).filter((name) => /^(OPENAI|LANGCHAIN|LANGSMITH|AI_)|_API_KEY$/.test(name));
  for (const name of names) vi.stubEnv(name, undefined);
}
