import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { Tool } from "../../../gen/parley/v1/tool_pb.js";
import type { UpstreamModel } from "../../core/provider.ts";
import { toNative } from "../wire/native.ts";
import { toToolFields } from "../wire/openai-request.ts";
import { readObject, type TranslationLog } from "../wire/translation.ts";
import type { OpenAiRequest, OpenAiTool, OpenAiToolChoice, OpenAiToolName } from "./wire.ts";

/** Converts tools and tool choice. Throws `invalid_request` for an invalid schema. */
export function toTools(
  request: CompletionRequest,
  { capabilities: can }: UpstreamModel,
  log: TranslationLog,
): Pick<OpenAiRequest, "tools" | "tool_choice" | "parallel_tool_calls"> {
  return toToolFields<OpenAiTool, Exclude<OpenAiToolChoice, string>>(
    request,
    { can, log, dialect: "openai" },
    {
      toTool: (tool, path) => toTool(tool, { log, path }),
      toNamed: (kind, name) =>
        kind === "custom" ? { type: kind, custom: { name } } : { type: kind, function: { name } },
      toAllowed: (mode, tools) => ({
        type: "allowed_tools",
        allowed_tools: { mode, tools: tools as OpenAiToolName[] },
      }),
    },
  );
}

function toTool({ kind }: Tool, { log, path }: { log: TranslationLog; path: string }): OpenAiTool | undefined {
  switch (kind.case) {
    case "function": {
      const { name, description, parametersJson, strict } = kind.value;
      const parameters =
        parametersJson === "" ? undefined : readObject(parametersJson, `${path}.function.parameters_json`);
      return { type: "function", function: { name, description: description || undefined, parameters, strict } };
    }
    case "custom": {
      const { name, description, formatJson } = kind.value;
      const format = formatJson === "" ? undefined : readObject(formatJson, `${path}.custom.format_json`);
      return { type: "custom", custom: { name, description: description || undefined, format } };
    }
    case "native":
      return toNative(kind.value, "openai", { log, field: path }) as OpenAiTool | undefined;
    case undefined:
      return undefined;
  }
}
