import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Message, NativeBlock, Part } from "../../gen/parley/v1/message_pb.js";
import type { Tool } from "../../gen/parley/v1/tool_pb.js";

/*
 * Tools that a provider may run for a request: native tools, and tools within native parts, such as the output of a tool search.
 * Both need the same permissions, and the same reservation under a budget.
 */

/** The JSON object of a tool in its dialect. */
export type NativeTool = Readonly<Record<string, unknown>>;

type Messages = Pick<CompletionRequest, "messages">["messages"];
type Given = Pick<CompletionRequest, "messages" | "tools">;

/** Types of tools that the caller runs, and of references to a tool of the request. Their fields hold no tools. */
const OF_THE_CALLER: ReadonlySet<unknown> = new Set(["function", "custom", "tool_reference"]);
/** Type of a group of tools. The group itself is no tool. */
const GROUP = "namespace";

/** Names of fields that have a tool or a list of tools. Some servers ignore the case of names, and take `ſ` for `s`. */
const HAS_TOOLS = /tools?$/iu;
const TYPE = /^type$/i;
/** Arguments and schemas of a tool. In these, field names are chosen by the model or the caller, and hold no tools. */
const HAS_NO_TOOLS = /^(?:input|args|arguments|parameters)$|(?:schema|examples)$/i;
/** JSON with a field of tools, whose name may have escapes. */
const MAY_HAVE_TOOLS = /tools?"|\\u/iu;

/** Limit of reported paths of parts and tools. */
const MAX_LISTED = 1_000;

/** The tools of a provider anywhere within a value from JSON. */
export function toolsWithin(value: unknown): readonly NativeTool[] {
  const tools: NativeTool[] = [];
  const values: [value: unknown, isTool: boolean][] = [[value, false]];
  for (const [each, isTool] of values) {
    if (Array.isArray(each)) for (const inner of each as unknown[]) values.push([inner, isTool]);
    if (!isFields(each)) continue;
    if (isTool) {
      const type = typeOf(each);
      if (OF_THE_CALLER.has(type)) continue;
      if (type !== GROUP) tools.push(each);
    }
    for (const [name, inner] of Object.entries(each))
      if (!HAS_NO_TOOLS.test(name)) values.push([inner, HAS_TOOLS.test(name)]);
  }
  return tools;
}

/** The type of a tool. Undefined for two fields such as `type` and `Type`: a server that ignores case could read either. */
function typeOf(tool: NativeTool): unknown {
  return Object.keys(tool).some((name) => name !== "type" && TYPE.test(name)) ? undefined : tool["type"];
}

/** Whether a value is a JSON object. Numbers and texts that were read exactly are instances of classes, not plain objects. */
function isFields(value: unknown): value is NativeTool {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** The tools within the native parts of a dialect, including native parts in tool results. */
export function toolsInParts(messages: Messages, dialect: string): readonly NativeTool[] {
  const toolsIn = (parts: readonly Part[]): NativeTool[] =>
    parts.flatMap(({ kind }) => {
      if (kind.case === "toolResult") return toolsIn(kind.value.parts);
      return kind.case === "native" && kind.value.dialect === dialect ? toolsOfPart(kind.value) : [];
    });
  return messages.filter(({ parts }) => parts.some(mayHaveTools)).flatMap(({ parts }) => toolsIn(parts));
}

/** Whether a request has tools of a provider at any place. */
export function hasNativeTools({ messages, tools }: Given): boolean {
  return tools.some(isNative) || messages.some(({ parts }) => parts.some(hasTools));
}

/** A request without its refused tools. */
interface Without<R> {
  readonly request: R;
  /** Paths of the tools and parts that were left out. */
  readonly paths: readonly string[];
}

/**
 * Leaves out the native tools, and the native parts with tools, for which `isRefused` returns true. Each is replaced by an element
 * without a kind, so that the others keep their paths. Messages without such parts are shared with the given request.
 */
export function withoutNativeTools<R extends Given>(
  request: R,
  isRefused: (tools: readonly NativeTool[]) => boolean,
): Without<R> {
  const paths: string[] = [];
  const note = (path: string): void => {
    if (paths.length < MAX_LISTED) paths.push(path);
  };
  const toParts = (parts: readonly Part[], path: string): Part[] =>
    parts.map((part, index) => {
      const { kind } = part;
      const at = `${path}[${index}]`;
      if (kind.case === "toolResult" && kind.value.parts.some(hasTools)) {
        const value = { ...kind.value, parts: toParts(kind.value.parts, `${at}.tool_result.parts`) };
        return { ...part, kind: { case: "toolResult", value } };
      }
      if (kind.case !== "native" || !hasTools(part) || !isRefused(toolsOfPart(kind.value))) return part;
      note(at);
      return { ...part, signature: "", kind: { case: undefined } };
    });
  const messages = request.messages.map((message, index): Message => {
    if (!message.parts.some(hasTools)) return message;
    return { ...message, parts: toParts(message.parts, `messages[${index}].parts`) };
  });
  const tools = request.tools.map((tool, index): Tool => {
    if (tool.kind.case !== "native" || !isRefused(toolsOfTool(tool.kind.value))) return tool;
    note(`tools[${index}]`);
    return { ...tool, kind: { case: undefined } };
  });
  return paths.length === 0 ? { request, paths } : { request: { ...request, messages, tools }, paths };
}

/** Whether a tool makes pictures: OpenAI's `image_generation`, and tools of other hosts whose type contains that name. */
export function makesPictures(tool: NativeTool): boolean {
  const types = Object.entries(tool).flatMap(([name, value]) => (TYPE.test(name) ? [value] : []));
  return types.some((type) => typeof type === "string" && type.includes("image_generation"));
}

const isNative = ({ kind }: Tool): boolean => kind.case === "native";

/** A native tool and the tools within it. */
function toolsOfTool({ json }: NativeBlock): readonly NativeTool[] {
  const tool = JSON.parse(json) as NativeTool;
  return [tool, ...toolsWithin(tool)];
}

function toolsOfPart({ json }: NativeBlock): readonly NativeTool[] {
  return MAY_HAVE_TOOLS.test(json) ? toolsWithin(JSON.parse(json)) : [];
}

/** Whether a part may have tools; a quick check that parses no JSON. */
function mayHaveTools({ kind }: Part): boolean {
  return kind.case === "native" || kind.case === "toolResult";
}

function hasTools({ kind }: Part): boolean {
  if (kind.case === "toolResult") return kind.value.parts.some(hasTools);
  return kind.case === "native" && toolsOfPart(kind.value).length > 0;
}
