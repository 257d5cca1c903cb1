import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ToolSchema } from "../../gen/parley/v1/tool_pb.js";
import { failureOfField } from "../api/failure-of-field.ts";

/** A result of the example. */
export const RESULTS_EXAMPLE = JSON.stringify({ get_weather: { sky: "clear", celsius: 21 } }, null, 2);

export const TOOLS_EXAMPLE = JSON.stringify(
  [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "The weather at a place, now.",
        parameters: {
          type: "object",
          properties: { city: { type: "string" } },
          required: ["city"],
        },
      },
    },
  ],
  null,
  2,
);

/** Parses tools in the OpenAI format. Throws a field error with the position of the fault. */
export function readTools(text: string): MessageInitShape<typeof ToolSchema>[] {
  if (text.trim() === "") return [];
  const tools = parseJson("tools", text);
  if (!Array.isArray(tools)) throw failureOfField("tools", "must be a list: [ … ]");
  return tools.map(readTool);
}

/**
 * Parses simulated results: an object with what each function returns. Texts are returned as they are, anything else as
 * JSON. Throws a field error.
 */
export function readResults(text: string): ReadonlyMap<string, string> {
  if (text.trim() === "") return new Map();
  const results = parseJson("results", text);
  if (!isObject(results)) throw failureOfField("results", "must be an object of results by function name");
  return new Map(
    Object.entries(results).map(([name, result]) => [
      name,
      typeof result === "string" ? result : JSON.stringify(result),
    ]),
  );
}

/** Parses JSON. Throws a field error, with the line if the browser reports it. */
export function parseJson(field: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (reason) {
    const line = /\bline (\d+)/.exec(String(reason))?.[1];
    throw failureOfField(field, `is not JSON${line === undefined ? "" : ` from line ${line} on`}`);
  }
}

function readTool(tool: unknown, index: number): MessageInitShape<typeof ToolSchema> {
  const at = `[${index}]`;
  const wrong = (what: string) => failureOfField("tools", `${at}${what}`);
  if (!isObject(tool) || tool["type"] !== "function") throw wrong('.type: must be "function"');
  const { function: described } = tool;
  if (!isObject(described)) throw wrong(".function: must be an object");
  const { name, description = "", parameters, strict } = described;
  if (typeof name !== "string" || name === "") throw wrong(".function.name: is required");
  if (typeof description !== "string") throw wrong(".function.description: must be text");
  if (parameters !== undefined && !isObject(parameters)) throw wrong(".function.parameters: must be a JSON schema");
  if (strict !== undefined && typeof strict !== "boolean") throw wrong(".function.strict: must be true or false");
  const parametersJson = parameters === undefined ? "" : JSON.stringify(parameters);
  return {
    kind: {
      case: "function",
      value: { name, description, parametersJson, ...(strict !== undefined && { strict }) },
    },
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
