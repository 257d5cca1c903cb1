import { expect, it } from "vitest";
import { readModelList } from "../../../src/providers/wire/model-list.ts";

const model = (name: string, contextWindow?: number, maxOutputTokens?: number) => ({
  name,
  contextWindow,
  maxOutputTokens,
});

// The forms of the hosts' API references of lists of models, read in November 2026.
it.each<[string, unknown, readonly object[]]>([
  ["OpenAI", { object: "list", data: [{ id: "gpt-5.1", object: "model", owned_by: "system" }] }, [model("gpt-5.1")]],
  [
    "Anthropic",
    { data: [{ type: "model", id: "claude-opus-4-5-20251101", display_name: "Claude Opus 4.5" }], has_more: false },
    [model("claude-opus-4-5-20251101")],
  ],
  [
    "Google, without models of embeddings",
    {
      models: [
        {
          name: "models/gemini-3-pro-preview",
          inputTokenLimit: 1_048_576,
          outputTokenLimit: 65_536,
          supportedGenerationMethods: ["generateContent", "countTokens"],
        },
        { name: "models/gemini-embedding-001", supportedGenerationMethods: ["embedContent"] },
      ],
    },
    [model("gemini-3-pro-preview", 1_048_576, 65_536)],
  ],
  [
    "Groq",
    { data: [{ id: "llama-3.3-70b-versatile", context_window: 131_072, max_completion_tokens: 32_768 }] },
    [model("llama-3.3-70b-versatile", 131_072, 32_768)],
  ],
  [
    "Mistral, without models of embeddings",
    {
      data: [
        { id: "mistral-large-latest", max_context_length: 131_072, capabilities: { completion_chat: true } },
        { id: "mistral-embed", capabilities: { completion_chat: false } },
      ],
    },
    [model("mistral-large-latest", 131_072)],
  ],
  [
    "OpenRouter, without models of pictures",
    {
      data: [
        { id: "openai/gpt-5", context_length: 400_000, architecture: { output_modalities: ["text"] } },
        { id: "google/banana", architecture: { output_modalities: ["image", "smell", "text", "text"] } },
        { id: "a/painter", context_length: 4_096, architecture: { output_modalities: ["image"] } },
      ],
    },
    [
      { ...model("openai/gpt-5", 400_000), outputModalities: ["text"] },
      { ...model("google/banana"), outputModalities: ["text", "image"] },
    ],
  ],
  [
    "Together, whose list is an array",
    [
      { id: "meta-llama/Llama-3.3-70B-Instruct-Turbo", type: "chat", context_length: 131_072 },
      { id: "black-forest-labs/FLUX.1-schnell", type: "image" },
    ],
    [model("meta-llama/Llama-3.3-70B-Instruct-Turbo", 131_072)],
  ],
  ["vLLM", { data: [{ id: "local", object: "model", max_model_len: 32_768 }] }, [model("local", 32_768)]],
  ["a server with what is no list", { data: { id: "a" }, models: 7 }, []],
  [
    "a server with broken entries",
    { data: [null, {}, { id: 7 }, { id: "" }, { id: "x".repeat(300) }, { id: "a" }, { id: "a" }] },
    [model("a")],
  ],
])("reads the list of %s", (_, json, models) => {
  expect(readModelList(json)).toEqual(models);
});

it("reads at most 2,000 models", () => {
  expect(readModelList({ data: Array.from({ length: 3_000 }, (_, index) => ({ id: `m${index}` })) })).toHaveLength(
    2_000,
  );
});
