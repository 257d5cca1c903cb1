import { vi } from "vitest";

/** Removes what clients read from the environment by themselves: keys, addresses, tracing. Ends with the test. */
export function cleanEnvironment(): void {
  const names = Object.keys(process.env).filter((name) =>
    /^(AI_|ANTHROPIC|GEMINI|GOOGLE|LANGCHAIN|LANGSMITH|OPENAI)|_API_KEY$/.test(name),
  );
  for (const name of names) vi.stubEnv(name, undefined);
}
