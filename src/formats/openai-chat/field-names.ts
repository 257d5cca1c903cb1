import { type Message, type Part, Role } from "../../../gen/parley/v1/message_pb.js";
import type { NameOf } from "../format.ts";

/** Lists of an OpenAI message, by the kind of part; all other parts are in `content`. */
const LISTS: Readonly<Partial<Record<NonNullable<Part["kind"]["case"]>, string>>> = {
  reasoning: "thinking_blocks",
  toolCall: "tool_calls",
};

/** Contract names and their names in the OpenAI format, most specific first. */
const NAMES: readonly (readonly [contract: RegExp, chat: string])[] = [
  [/^max_output_tokens\b/, "max_tokens"],
  [/^stop_sequences\b/, "stop"],
  [/^choice_count\b/, "n"],
  [/^end_user_id\b/, "user"],
  [/^logprobs\.top_count\b/, "top_logprobs"],
  [/^reasoning\.(?:effort|max_tokens)\b/, "reasoning_effort"],
  [/^image_options\.size\b/, "image_config.image_size"],
  [/^image_options\b/, "image_config"],
  [/^audio_options\b/, "audio"],
  [/^provider_options_json\.openai\./, ""],
  [/^(response_format\.json_schema\.schema)_json\b/, "$1"],
  [/^(tools\[\d+\]\.function\.parameters)_json\b/, "$1"],
  [/^(tools\[\d+\]\.custom\.format)_json\b/, "$1"],
  [/\.file\.name$/, ".file.filename"],
  [/\.image\.detail$/, ".image_url.detail"],
  [/\.cache_mark\b/, ".cache_control"],
  [/\.signature$/, ".extra_content"],
];

const PART = /^messages\[(\d+)\]\.parts(?:\[(\d+)\])?/;

/**
 * Returns the names of a request's fields. Keeps only the kinds of parts of assistant messages, because the conversation is released
 * before the report is written. `unrecognized`: names that are already the caller's.
 */
export function fieldNames(messages: readonly Message[], unrecognized: readonly string[]): NameOf {
  const kinds = new Map<number, readonly Part["kind"]["case"][]>();
  messages.forEach(({ role, parts }, index) => {
    if (role === Role.ASSISTANT && parts.some(({ kind }) => kind.case !== "text"))
      kinds.set(
        index,
        parts.map(({ kind }) => kind.case),
      );
  });
  return (path) => {
    if (unrecognized.includes(path)) return path;
    const found = PART.exec(path);
    const place = found === null ? "" : toPlace(found, kinds.get(Number(found[1])));
    let rest = found === null ? path : path.slice(found[0].length);
    rest = rest.replace(/^\.tool_result\.parts/, "").replace(/^\.tool_result(?=\.tool_call_id$)/, "");
    for (const [contract, chat] of NAMES) rest = rest.replace(contract, chat);
    // A tool message is one part: its content is the list.
    return rest === ".tool_call_id" ? place.replace(/\.content\[0\]$/, rest) : place + rest;
  };
}

function toPlace([, message, part]: RegExpExecArray, kinds: readonly Part["kind"]["case"][] | undefined): string {
  const before = `messages[${message}]`;
  if (part === undefined) return `${before}.content`;
  const index = Number(part);
  const kind = kinds?.[index];
  if (kinds === undefined || kind === undefined) return `${before}.content[${part}]`;
  if (kind === "refusal") return `${before}.refusal`;
  const list = LISTS[kind];
  const isSameList = (other: Part["kind"]["case"]): boolean =>
    other === kind || (list === undefined && other !== undefined && LISTS[other] === undefined && other !== "refusal");
  return `${before}.${list ?? "content"}[${kinds.slice(0, index).filter(isSameList).length}]`;
}
