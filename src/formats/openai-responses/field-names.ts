import type { NameOf } from "../format.ts";
import { INSTRUCTIONS, type Places, WHOLE } from "./places.ts";

/** Contract names and their names in the Responses format, most specific first. */
const NAMES: readonly (readonly [contract: RegExp, responses: string])[] = [
  [/^response_format\.json_schema\.schema_json\b/, "text.format.schema"],
  [/^response_format\.json_schema\b/, "text.format"],
  [/^response_format\b/, "text.format"],
  [/^verbosity\b/, "text.verbosity"],
  [/^end_user_id\b/, "user"],
  [/^logprobs\b(?:\.top_count)?/, "top_logprobs"],
  [/^image_options\.size\b/, "image_config.image_size"],
  [/^image_options\b/, "image_config"],
  [/^provider_options_json\.openai\./, ""],
];

const PART = /^messages\[(\d+)\](?:\.parts(?:\[(\d+)\])?)?/;
const TOOL = /^tools\[(\d+)\](?:\.(?:function|custom)\b)?/;

/** The places in the caller's request of what the contract's request contains. */
interface Origins {
  readonly places: Places;
  /** Whether the input was a text. */
  readonly isText: boolean;
  /** Paths of the contract's tools. */
  readonly tools: readonly string[];
  /** Path of the tool that requests pictures. */
  readonly image: string | undefined;
  /** Names that are already the caller's. */
  readonly unrecognized: readonly string[];
}

/** Returns the names of a request's fields. */
export function fieldNames(origins: Origins): NameOf {
  const { unrecognized, tools, image } = origins;
  return (path) => {
    if (unrecognized.includes(path)) return path;
    const part = PART.exec(path);
    if (part !== null) return toItem(origins, part, path.slice(part[0].length));
    const tool = TOOL.exec(path);
    if (tool !== null) {
      const rest = path.slice(tool[0].length).replace(/^\.(parameters|format)_json\b/, ".$1");
      return (tools[Number(tool[1])] ?? "tools") + rest;
    }
    if (path === "messages") return "input";
    if (image !== undefined && path === "modalities") return `${image}.type`;
    if (image !== undefined && path === "image_options.partial_count") return `${image}.partial_images`;
    let name = path;
    for (const [contract, responses] of NAMES) name = name.replace(contract, responses);
    return name;
  };
}

function toItem({ places, isText }: Origins, [, message, part]: RegExpExecArray, rest: string): string {
  const [item, content] = places.of(Number(message), Number(part ?? 0));
  if (item === INSTRUCTIONS) return "instructions";
  if (isText) return "input";
  const place = content === WHOLE || part === undefined ? `input[${item}]` : `input[${item}].content[${content}]`;
  return (
    place +
    rest
      .replace(/^\.tool_result\.parts/, ".output")
      .replace(/^\.tool_result\.tool_call_id$/, ".call_id")
      .replace(/\.file\.name$/, ".filename")
      .replace(/\.image\.detail$/, ".detail")
  );
}
