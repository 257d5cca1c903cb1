import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { type Tool, type ToolChoice, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import { isObject, parseMeasured } from "../wire/json.ts";
import { toNative } from "../wire/native.ts";
import { omitToolFields, type TranslationLog } from "../wire/translation.ts";
import type { FunctionCallingConfig, FunctionDeclaration, GenerateContentRequest, JsonObject } from "./wire.ts";

const NAME = /^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$/;

/** Converts the tools and the tool choice. Both fields are undefined without tools. Throws `invalid_request`. */
export function toTools(
  request: CompletionRequest,
  model: UpstreamModel,
  log: TranslationLog,
): Pick<GenerateContentRequest, "tools" | "toolConfig"> {
  const { tools, toolChoice } = request;
  if (tools.length === 0 || !model.capabilities.tools) {
    omitToolFields(request, log);
    return { tools: undefined, toolConfig: undefined };
  }
  const functionDeclarations = tools.map(toDeclaration).filter((declaration) => declaration !== undefined);
  const native = tools
    .map(({ kind }, index) =>
      kind.case === "native" ? toNative(kind.value, "gemini", { log, field: `tools[${index}]` }) : undefined,
    )
    .filter((tool) => tool !== undefined);
  if (functionDeclarations.length === 0)
    return { tools: native.length > 0 ? native : undefined, toolConfig: undefined };
  // The provider has no such option. Dropping calls from the answer instead would break the result count of the next
  // turn.
  log.omitWhen(request.parallelToolCalls === false, "parallel_tool_calls");
  const config = toCallingConfig(toolChoice?.choice, model, log);
  // Only VALIDATED guarantees that a call matches its schema.
  const strict = tools.some(({ kind }) => kind.case === "function" && kind.value.strict === true);
  const functionCallingConfig: FunctionCallingConfig | undefined =
    config ?? (strict ? { mode: "VALIDATED" } : undefined);
  return {
    tools: [{ functionDeclarations }, ...native],
    toolConfig: functionCallingConfig && { functionCallingConfig },
  };
}

/** Converts a function of the caller. Undefined for another tool. */
function toDeclaration({ kind }: Tool, index: number): FunctionDeclaration | undefined {
  const field = `tools[${index}]`;
  if (kind.case === "native" || kind.case === undefined) return undefined;
  if (kind.case !== "function") throw invalidField(field, "this model takes only function tools");
  const { name, description, parametersJson } = kind.value;
  if (!NAME.test(name)) throw invalidField(`${field}.function.name`, "must begin with a letter or _ for this model");
  return {
    name,
    description: description === "" ? undefined : description,
    parametersJsonSchema: toParameters(parametersJson, `${field}.function.parameters_json`),
  };
}

/** Parses the parameter schema. Undefined for a function without arguments, which must have no schema. */
function toParameters(text: string, field: string): JsonObject | undefined {
  if (text === "") return undefined;
  const schema = parseMeasured(text);
  if (!isObject(schema)) throw invalidField(field, "must be a JSON Schema object");
  return Object.keys(schema).length === 0 ? undefined : schema;
}

/** Converts the tool choice. Undefined for AUTO, the provider's default. */
function toCallingConfig(
  choice: ToolChoice["choice"] | undefined,
  model: UpstreamModel,
  log: TranslationLog,
): FunctionCallingConfig | undefined {
  switch (choice?.case) {
    case "mode":
      if (choice.value === ToolMode.NONE) return { mode: "NONE" };
      return choice.value === ToolMode.REQUIRED ? force(undefined, model, log) : undefined;
    case "function":
      return force([choice.value], model, log);
    case "allowed": {
      const { mode, names } = choice.value;
      // The provider rejects names with AUTO; VALIDATED gives the model the same freedom.
      return mode === ToolMode.REQUIRED ? force(names, model, log) : { mode: "VALIDATED", allowedFunctionNames: names };
    }
    case "custom":
      throw invalidField("tool_choice", "this model takes only function tools");
    case undefined:
      break;
  }
  return undefined;
}

function force(
  names: readonly string[] | undefined,
  model: UpstreamModel,
  log: TranslationLog,
): FunctionCallingConfig | undefined {
  const { forcedTools } = model.capabilities;
  log.omitWhen(!forcedTools, "tool_choice");
  const mode = forcedTools ? "ANY" : "VALIDATED";
  if (names !== undefined) return { mode, allowedFunctionNames: names };
  return forcedTools ? { mode } : undefined;
}
