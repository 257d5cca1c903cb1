import { create } from "@bufbuild/protobuf";
import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import {
  type FunctionTool,
  type Tool,
  type ToolChoice,
  ToolChoiceSchema,
  ToolMode,
} from "../../../gen/parley/v1/tool_pb.js";
import { invalidField } from "../../core/failure.ts";
import { MAX_TOOLS } from "../../core/validate.ts";
import type { FunctionNames } from "./function-names.ts";
import { toJsonSchema } from "./json-schema.ts";
import type { GeminiRequest, GeminiTool } from "./schema.ts";

/** The place of a tool, and that of its schema. */
export interface ToolPlace {
  readonly tool: string;
  readonly schema: string;
}

type Declaration = NonNullable<GeminiTool["functionDeclarations"]>[number];

/** Reads the tools and the choice among them. Returns the place of each tool. */
export function readTools(given: GeminiRequest, request: CompletionRequest, names: FunctionNames): ToolPlace[] {
  const places: ToolPlace[] = [];
  const strict = modeOf(given) === "VALIDATED";
  const add = (tool: Tool, place: ToolPlace): void => {
    // One more than core's limit is enough for core to refuse the request.
    if (request.tools.length > MAX_TOOLS) return;
    request.tools.push(tool);
    places.push(place);
  };
  given.tools?.forEach((tool, at) => {
    tool.functionDeclarations?.forEach((declaration, index) => {
      const path = `tools[${at}].functionDeclarations[${index}]`;
      const schema = declaration.parametersJsonSchema == null ? "parameters" : "parametersJsonSchema";
      add(toFunction(declaration, names, strict), { tool: path, schema: `${path}.${schema}` });
    });
    const native = toNative(tool);
    const [key] = Object.keys(native);
    if (key === undefined) return;
    const value = { $typeName: "parley.v1.NativeBlock", dialect: "gemini", json: JSON.stringify(native) } as const;
    const path = `tools[${at}].${key.slice(0, 64)}`;
    add({ $typeName: "parley.v1.Tool", kind: { case: "native", value } }, { tool: path, schema: path });
  });
  const choice = toToolChoice(given, names);
  if (choice !== undefined) request.toolChoice = choice;
  return places;
}

function toFunction(given: Declaration, names: FunctionNames, strict: boolean): Tool {
  const parameters = given.parametersJsonSchema ?? given.parameters;
  const value: FunctionTool = {
    $typeName: "parley.v1.FunctionTool",
    name: names.toContract(given.name),
    description: given.description ?? "",
    parametersJson: parameters == null ? "" : JSON.stringify(toJsonSchema(parameters)),
  };
  if (strict) value.strict = true;
  return { $typeName: "parley.v1.Tool", kind: { case: "function", value } };
}

/** The fields of a tool beside functions: tools that the provider runs itself. */
function toNative(tool: GeminiTool): Readonly<Record<string, unknown>> {
  const native: Record<string, unknown> = {};
  for (const key in tool) if (key !== "functionDeclarations" && tool[key] != null) native[key] = tool[key];
  return native;
}

const CONFIG = "toolConfig.functionCallingConfig";

function modeOf({ toolConfig }: GeminiRequest): string {
  return (toolConfig?.functionCallingConfig?.mode ?? "").toUpperCase();
}

function toToolChoice(given: GeminiRequest, names: FunctionNames): ToolChoice | undefined {
  const allowed = given.toolConfig?.functionCallingConfig?.allowedFunctionNames?.map((name) => names.toContract(name));
  const hasNames = allowed !== undefined && allowed.length > 0;
  switch (modeOf(given)) {
    case "":
    case "MODE_UNSPECIFIED":
      return undefined;
    case "NONE":
      return ofMode(ToolMode.NONE);
    case "AUTO":
    case "VALIDATED":
      return hasNames ? allow(ToolMode.AUTO, allowed) : ofMode(ToolMode.AUTO);
    case "ANY":
      if (!hasNames) return ofMode(ToolMode.REQUIRED);
      return allowed.length === 1
        ? create(ToolChoiceSchema, { choice: { case: "function", value: allowed[0]! } })
        : allow(ToolMode.REQUIRED, allowed);
    default:
      throw invalidField(`${CONFIG}.mode`, "must be AUTO, ANY, NONE or VALIDATED");
  }
}

function ofMode(mode: ToolMode): ToolChoice {
  return create(ToolChoiceSchema, { choice: { case: "mode", value: mode } });
}

function allow(mode: ToolMode, names: readonly string[]): ToolChoice {
  return create(ToolChoiceSchema, { choice: { case: "allowed", value: { mode, names: [...names] } } });
}
