import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { Tool } from "../../../gen/parley/v1/tool_pb.js";
import type { UpstreamModel } from "../../core/provider.ts";
import { toNative } from "../wire/native.ts";
import { toToolFields } from "../wire/openai-request.ts";
import { readObject, type TranslationLog } from "../wire/translation.ts";
import { DIALECT } from "./parts.ts";
import type { ResponsesBody, ResponsesTool, ResponsesToolChoice } from "./wire.ts";

/** Converts tools and tool choice. Throws `invalid_request` for an invalid schema. */
export function toTools(
  request: CompletionRequest,
  { capabilities: can }: UpstreamModel,
  log: TranslationLog,
): Pick<ResponsesBody, "tools" | "tool_choice" | "parallel_tool_calls"> {
  return toToolFields<ResponsesTool, Exclude<ResponsesToolChoice, string>>(
    request,
    { can, log, dialect: DIALECT },
    {
      toTool: (tool, path) => toTool(tool, { log, path }),
      toNamed: (type, name) => ({ type, name }),
      toAllowed: (mode, tools) => ({ type: "allowed_tools", mode, tools }),
    },
  );
}

function toTool({ kind }: Tool, { log, path }: { log: TranslationLog; path: string }): ResponsesTool | undefined {
  switch (kind.case) {
    case "function": {
      const { name, description, parametersJson, strict = false } = kind.value;
      const parameters = parametersJson === "" ? null : readObject(parametersJson, `${path}.function.parameters_json`);
      return { type: "function", name, description: description || undefined, parameters, strict };
    }
    case "custom": {
      const { name, description, formatJson } = kind.value;
      const format = formatJson === "" ? undefined : toFlatFormat(readObject(formatJson, `${path}.custom.format_json`));
      return { type: "custom", name, description: description || undefined, format };
    }
    case "native":
      return toNative(kind.value, DIALECT, { log, field: path }) as ResponsesTool | undefined;
    case undefined:
      return undefined;
  }
}

/** Moves the syntax and definition of a grammar beside its type, as this API requires. Chat completions have them in an own object. */
function toFlatFormat(format: Readonly<Record<string, unknown>>): object {
  const { grammar, ...more } = format;
  return typeof grammar === "object" && grammar !== null ? { ...more, ...grammar } : format;
}
