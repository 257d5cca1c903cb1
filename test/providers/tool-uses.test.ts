import { describe, expect, it } from "vitest";
import type { ToolUses } from "../../src/core/fees.ts";
import type { NativeTool } from "../../src/core/native-tools.ts";
import { toolUsesOf as toAnthropicUses } from "../../src/providers/anthropic/tool-uses.ts";
import { toolUsesOf as toGeminiUses } from "../../src/providers/gemini/tool-uses.ts";
import { toolUsesOf as ofResponses } from "../../src/providers/openai-responses/tool-uses.ts";
import { toolUsesOf as toChatUses } from "../../src/providers/openai/tool-uses.ts";

const ofAnthropic = (body: object, inParts: readonly NativeTool[] = []): ToolUses | undefined =>
  toAnthropicUses(body, inParts);
const ofGemini = (body: object, inParts: readonly NativeTool[] = []): ToolUses | undefined =>
  toGeminiUses(body, inParts);

describe("the uses of a provider's tools that a body allows", () => {
  it.each<[string, ToolUses | undefined, ToolUses | undefined]>([
    [
      "anthropic: own tools",
      ofAnthropic({
        tools: [
          { name: "f", input_schema: {} },
          { type: "custom", name: "g" },
        ],
      }),
      undefined,
    ],
    ["anthropic: no tools", ofAnthropic({}), undefined],
    ["anthropic: searches", ofAnthropic({ tools: [{ type: "web_search_20250305", max_uses: 4 }] }), { webSearches: 4 }],
    [
      "anthropic: searches without a bound",
      ofAnthropic({ tools: [{ type: "web_search_20260209" }] }),
      { webSearches: Infinity },
    ],
    [
      "anthropic: searches with the bound 0, which a server may read as none",
      ofAnthropic({ tools: [{ type: "web_search_20250305", max_uses: 0 }] }),
      { webSearches: Infinity },
    ],
    [
      "responses: searches with the bound 0",
      ofResponses({ tools: [{ type: "web_search" }], max_tool_calls: 0 }),
      { webSearches: Infinity },
    ],
    [
      "anthropic: tools without a fee",
      ofAnthropic({ tools: [{ type: "web_fetch_20250910" }, { type: "bash_20250124" }, { type: "memory_20250818" }] }),
      undefined,
    ],
    [
      "anthropic: code",
      ofAnthropic({ tools: [{ type: "code_execution_20250825" }] }),
      { unknown: "code_execution_20250825" },
    ],
    [
      "gemini: own tools and those without a fee",
      ofGemini({ tools: [{ functionDeclarations: [], codeExecution: {}, url_context: {} }] }),
      undefined,
    ],
    [
      "gemini: searches",
      ofGemini({ tools: [{ google_search: {} }, { codeExecution: {} }] }),
      { webSearches: Infinity },
    ],
    ["gemini: maps", ofGemini({ tools: [{ googleMaps: {} }, { retrieval: {} }] }), { unknown: "googleMaps" }],
    ["gemini: a cached content", ofGemini({ cachedContent: "cachedContents/1" }), { unknown: "cachedContent" }],
    [
      "responses: own tools and those without a fee",
      ofResponses({ tools: [{ type: "function" }, { type: "mcp" }] }),
      undefined,
    ],
    [
      "responses: tools without a bound",
      ofResponses({ tools: [{ type: "web_search_preview" }, { type: "file_search" }] }),
      { webSearches: Infinity, fileSearches: Infinity },
    ],
    [
      "responses: calls that the request bounds",
      ofResponses({ tools: [{ type: "web_search" }, { type: "code_interpreter" }], max_tool_calls: 3 }),
      { webSearches: 3, codeExecutions: 3 },
    ],
    [
      "responses: containers of the usual size",
      ofResponses({
        tools: [
          { type: "code_interpreter", container: { type: "auto", memory_limit: "1g" } },
          { type: "code_interpreter", container: { type: "auto", memory_limit: null } },
          { type: "code_interpreter", container: "cntr_1" },
        ],
        max_tool_calls: 3,
      }),
      { codeExecutions: 3 },
    ],
    [
      "responses: a larger container, which costs a multiple",
      ofResponses({ tools: [{ type: "code_interpreter", container: { type: "auto", memory_limit: "64g" } }] }),
      { unknown: "code_interpreter with memory_limit" },
    ],
    ["responses: pictures that the price covers", ofResponses({ tools: [{ type: "image_generation" }] }), undefined],
    [
      "responses: pictures with the price of text",
      ofResponses({ tools: [{ type: "image_generation" }] }, { pricesPictures: false }),
      { unknown: "image_generation" },
    ],
    ["responses: an unknown tool", ofResponses({ tools: [{ type: "x_search" }] }), { unknown: "x_search" }],
    [
      "responses: the name of a property of all objects",
      ofResponses({ tools: [{ type: "constructor" }] }),
      { unknown: "constructor" },
    ],
    [
      "responses: tools of a namespace",
      ofResponses({
        tools: [
          {
            type: "namespace",
            tools: [{ type: "function" }, { type: "web_search" }, { type: "namespace", tools: [{ type: "x_search" }] }],
          },
        ],
      }),
      { webSearches: Infinity, unknown: "x_search" },
    ],
    [
      "responses: tools of an item",
      ofResponses({ input: [{ type: "tool_search_output", tools: [{ type: "file_search" }] }, { role: "user" }] }),
      { fileSearches: Infinity },
    ],
    [
      "responses: tools of an item, below other fields",
      ofResponses({ input: [{ type: "shell_call", action: { tool: { type: "x_search" } } }] }),
      { unknown: "x_search" },
    ],
    [
      "responses: words of a tool's schema, and what it was called with",
      ofResponses({
        input: [
          {
            type: "mcp_list_tools",
            tools: [{ name: "f", input_schema: { properties: { tools: { type: "array" } } } }],
          },
          { type: "tool_search_call", arguments: { tools: [{ type: "hammer" }] } },
        ],
      }),
      undefined,
    ],
    [
      "anthropic: tools within blocks",
      ofAnthropic({}, [{ type: "web_search_20250305", max_uses: 2 }]),
      { webSearches: 2 },
    ],
    ["gemini: tools within parts", ofGemini({}, [{ googleSearch: {} }]), { webSearches: Infinity }],
    [
      "openai: tools within parts",
      toChatUses({ model: "m", messages: [] }, [{ type: "x_search" }]),
      { unknown: "x_search" },
    ],
    ["responses: a stored prompt", ofResponses({ prompt: { id: "pmpt_1" } }), { unknown: "prompt" }],
  ])("%s", (_, uses, expected) => {
    expect(uses).toEqual(expected);
  });
});
