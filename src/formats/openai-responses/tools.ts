import { createHash } from "node:crypto";
import type { Tool, ToolChoice } from "../../../gen/parley/v1/tool_pb.js";
import { Failure, invalidField } from "../../core/failure.ts";
import { MAX_TOOLS } from "../../core/validate.ts";
import { MODES } from "../openai-words.ts";
import { toNative } from "./native.ts";
import { type GivenChoice, type GivenTool, KNOWN_FUNCTION_KEYS, type NamedTool } from "./tool-schema.ts";

/** A tool's name, and the name of its namespace if it has one. */
export interface ToolName {
  readonly name: string;
  readonly namespace: string | undefined;
}

const MAX_NAME_CHARS = 64;
/** Longest name of a namespace: it is part of the names of all its tools. */
const MAX_NAMESPACE_CHARS = 256;

/**
 * Names of the tools of a request. The contract has no namespaces, so their names are joined. The names of the answer's calls are looked
 * up in the request's own tools, so that no state is kept between requests.
 */
export class ToolNames {
  readonly #flat = new Map<string, string>();
  readonly #given = new Map<string, ToolName>();

  /** Adds a tool of a namespace; returns its name in the contract. */
  add({ name, namespace }: ToolName): string {
    const flat = this.flat(name, namespace);
    this.#flat.set(keyOf(name, namespace), flat);
    this.#given.set(flat, { name, namespace });
    return flat;
  }

  /** The contract's name of a tool, which may be one of an earlier request. */
  flat(name: string, namespace: string | null | undefined): string {
    if (namespace == null || namespace === "") return name;
    return this.#flat.get(keyOf(name, namespace)) ?? join(namespace, name);
  }

  /** The caller's name of a called tool. */
  given(flat: string): ToolName {
    return this.#given.get(flat) ?? { name: flat, namespace: undefined };
  }
}

const keyOf = (name: string, namespace: string | undefined): string => JSON.stringify([namespace, name]);

/** Joins the names. Names that are too long are cut, and made unique by a hash. */
function join(namespace: string, name: string): string {
  const joined = `${namespace}__${name}`;
  if (joined.length <= MAX_NAME_CHARS) return joined;
  const hash = createHash("sha256").update(joined).digest("hex").slice(0, 8);
  return `${joined.slice(0, MAX_NAME_CHARS - hash.length - 1)}_${hash}`;
}

/** The tools of a request. */
export interface ReadTools {
  readonly tools: Tool[];
  readonly names: ToolNames;
  /** Paths of the contract's tools in the request, such as `tools[1].tools[0]`. */
  readonly places: readonly string[];
  /** Paths of tools that are left out. */
  readonly omitted: readonly string[];
  /** A tool of OpenAI's servers without which no tool can be called. */
  readonly demanded: { readonly place: string; readonly type: string } | undefined;
  /** The `image_generation` tool that makes the answer hold pictures. */
  readonly image: { readonly place: string; readonly size: unknown; readonly partialCount: number } | undefined;
}

/** Reads tools. Tools of types that the contract does not have are native: OpenAI's servers run them, or only its models call them. */
export function readTools(given: readonly GivenTool[], choice: GivenChoice | null | undefined): ReadTools {
  const tools: Tool[] = [];
  const names = new ToolNames();
  const places: string[] = [];
  const omitted: string[] = [];
  const push = (kind: Tool["kind"], place: string): void => {
    // One more than core's limit is enough for core to refuse the request.
    if (tools.length > MAX_TOOLS) return;
    tools.push({ $typeName: "parley.v1.Tool", kind });
    places.push(place);
  };
  const add = (tool: NamedTool, place: string, namespace?: string): void => {
    const name = namespace === undefined ? tool.name : names.add({ name: tool.name, namespace });
    push(toKind(tool, name), place);
    for (const key in tool)
      if (tool.type === "function" && !KNOWN_FUNCTION_KEYS.has(key) && tool[key] != null)
        omitted.push(`${place}.${key.slice(0, MAX_NAME_CHARS)}`);
  };
  const hasOwn = given.some(({ type }) => type === "function" || type === "custom" || type === "namespace");
  let image: ReadTools["image"];
  let demanded: ReadTools["demanded"];
  given.forEach((tool, index) => {
    const place = `tools[${index}]`;
    if (tool.type === "namespace") {
      if (tool.name.length > MAX_NAMESPACE_CHARS)
        throw invalidField(`${place}.name`, `must be at most ${MAX_NAMESPACE_CHARS} characters`);
      tool.tools.forEach((each, at) => {
        if (isNamed(each)) add(each, `${place}.tools[${at}]`, tool.name);
        else omitted.push(`${place}.tools[${at}]`);
      });
    } else if (isNamed(tool)) add(tool, place);
    else if (isImageTool(tool) && (!hasOwn || chosenType(choice) === "image_generation"))
      image = toImageTool(tool, place);
    else {
      const { type } = tool as { readonly type: string };
      if (isDemanded(type, { choice, hasOwn })) demanded ??= { place, type };
      push(toNative(tool), place);
    }
  });
  return { tools, names, places, omitted, demanded, image };
}

const isNamed = (tool: { readonly type: string }): tool is NamedTool =>
  tool.type === "function" || tool.type === "custom";
function toImageTool(tool: object, place: string): ReadTools["image"] {
  const { size, partial_images: partial } = tool as { size?: unknown; partial_images?: unknown };
  return { place, size, partialCount: typeof partial === "number" && Number.isInteger(partial) ? partial : 0 };
}

const isImageTool = ({ type }: { readonly type: string }): boolean => type === "image_generation";
/** Whether a tool is one that clients declare in every request, so that leaving it out does no harm. */
const isDispensable = (type: string): boolean => type.startsWith("web_search") || type === "image_generation";

/** Whether the answer would miss its purpose without the tool. */
function isDemanded(
  type: string,
  { choice, hasOwn }: { readonly choice: GivenChoice | null | undefined; readonly hasOwn: boolean },
): boolean {
  const isForced = chosenType(choice) === type || (choice === "required" && !hasOwn);
  return isForced || (!hasOwn && !isDispensable(type));
}

/** Why only a provider of this dialect can serve the request; undefined if others can too. */
export function whyNotElsewhere({ demanded }: ReadTools): (() => Failure) | undefined {
  if (demanded === undefined) return undefined;
  const { place, type } = demanded;
  return () =>
    unsupported(
      `${place}.type`,
      `Parley does not run the tool \`${type.slice(0, MAX_NAME_CHARS)}\`. Remove it, or call a model that has it directly.`,
    );
}

/** The failure of a value that the format has and the gateway does not support. `message`: the whole message. */
export function unsupported(field: string, message: string): Failure {
  return new Failure("invalid_request", message, {
    detail: "unsupported_value",
    violations: [{ field, description: "is not supported" }],
  });
}

const chosenType = (choice: GivenChoice | null | undefined): string | undefined =>
  typeof choice === "object" ? choice?.type : undefined;

function toKind(tool: NamedTool, name: string): Tool["kind"] {
  const description = tool.description ?? "";
  if (tool.type === "custom") {
    const formatJson = tool.format == null ? "" : JSON.stringify(tool.format);
    const value = { $typeName: "parley.v1.CustomTool", name, description, formatJson } as const;
    return { case: "custom", value };
  }
  const parametersJson = tool.parameters == null ? "" : JSON.stringify(tool.parameters);
  const value = { $typeName: "parley.v1.FunctionTool", name, description, parametersJson } as const;
  const strict = tool.strict == null ? {} : { strict: tool.strict };
  return { case: "function", value: { ...value, ...strict } };
}

/**
 * Reads the tool choice; undefined when it has no effect. The contract cannot name a native tool; if it is the only tool, requiring any
 * call requires it. Throws `invalid_request` for a tool that is not among the tools.
 */
export function readToolChoice(choice: GivenChoice, { tools, names, image }: ReadTools): ToolChoice | undefined {
  if (typeof choice === "string") return toChoice({ case: "mode", value: MODES[choice] });
  const { type, name, namespace } = choice;
  switch (type) {
    case "function":
    case "custom":
      return toChoice({ case: type, value: names.flat(name ?? "", namespace) });
    case "allowed_tools": {
      const named = (choice.tools ?? []).filter(isNamed);
      const value = {
        mode: MODES[choice.mode ?? "auto"],
        names: named.map((tool) => names.flat(tool.name, tool.namespace as string)),
      };
      return toChoice({ case: "allowed", value: { $typeName: "parley.v1.AllowedTools", ...value } });
    }
    default:
      if (type === "image_generation" && image !== undefined) return undefined;
      if (!tools.some(isNative))
        throw invalidField("tool_choice", `names ${type.slice(0, MAX_NAME_CHARS)}, which is not among tools`);
      return isOnlyTool(tools) ? toChoice({ case: "mode", value: MODES.required }) : undefined;
  }
}

const isNative = ({ kind }: Tool): boolean => kind.case === "native";
const isOnlyTool = (tools: readonly Tool[]): boolean => tools.length === 1;

/** Whether the choice names one native tool among several tools, which only the caller's own body can express. */
export function isLostChoice(choice: GivenChoice | null | undefined, { tools, image }: ReadTools): boolean {
  const type = chosenType(choice);
  if (type === undefined || NAMED_CHOICES.has(type) || (type === "image_generation" && image !== undefined))
    return false;
  return !isOnlyTool(tools);
}

/** Types of choices that the contract has. */
const NAMED_CHOICES: ReadonlySet<string> = new Set(["function", "custom", "allowed_tools"]);

const toChoice = (choice: ToolChoice["choice"]): ToolChoice => ({
  $typeName: "parley.v1.ToolChoice",
  choice,
});
