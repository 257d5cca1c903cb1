import { Refusal } from "../answer.ts";
import { readDataUrl } from "./request.ts";
import type { ChatBody, ChatMessage } from "./schema.ts";

const MAX_STOPS = 4;
const MAX_TOOLS = 128;

function refuseUnless(isRight: boolean, message: string, field: string): void {
  if (!isRight) throw new Refusal(400, message, { field, code: "invalid_value" });
}

function checkImages(message: ChatMessage, path: string): void {
  if (message.role !== "user" || typeof message.content === "string") return;
  for (const [index, part] of message.content.entries()) {
    if (part.type !== "image_url") continue;
    const field = `${path}.content[${index}].image_url`;
    const { url } = part.image_url;
    const isAddress = /^https?:\/\/\S+$/u.test(url);
    refuseUnless(isAddress || url.startsWith("data:"), `Invalid image URL: '${url.slice(0, 40)}'.`, field);
    refuseUnless(isAddress || readDataUrl(url) !== undefined, "You uploaded an unsupported image.", field);
  }
}

/** Checks that `tool` messages with the results directly follow the calls of an assistant message. */
function checkToolMessages(messages: readonly ChatMessage[]): void {
  const open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      refuseUnless(
        open.delete(message.tool_call_id),
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        `messages.[${index}].role`,
      );
      continue;
    }
    refuseUnansweredCalls(open, index);
    if (message.role === "assistant") for (const call of message.tool_calls ?? []) open.add(call.id);
  }
  refuseUnansweredCalls(open, messages.length);
}

function refuseUnansweredCalls(open: ReadonlySet<string>, index: number): void {
  refuseUnless(
    open.size === 0,
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The " +
      `following tool_call_ids did not have response messages: ${[...open].join(", ")}`,
    `messages.[${index}].role`,
  );
}

function checkTools({ tools, tool_choice: choice }: ChatBody): void {
  const names = (tools ?? []).map((tool) => tool.function.name);
  refuseUnless(tools?.length !== 0, "Invalid 'tools': empty array. Expected an array with minimum length 1.", "tools");
  refuseUnless(names.length <= MAX_TOOLS, `Invalid 'tools': at most ${MAX_TOOLS} are allowed.`, "tools");
  const isForced = choice !== undefined && choice !== null && choice !== "none" && choice !== "auto";
  refuseUnless(
    !isForced || names.length > 0,
    "'tool_choice' is only allowed when 'tools' are specified.",
    "tool_choice",
  );
  if (typeof choice !== "object" || choice === null || choice.type !== "function") return;
  refuseUnless(
    names.includes(choice.function.name),
    `Tool choice '${choice.function.name}' not found in 'tools'.`,
    "tool_choice",
  );
}

/** Checks the rules that the schema does not express. Throws `Refusal` (400) for the first violation. */
export function checkRules(body: ChatBody): void {
  refuseUnless(
    body.messages.length > 0,
    "Invalid 'messages': empty array. Expected an array with minimum length 1.",
    "messages",
  );
  const stops = Array.isArray(body.stop) ? body.stop : [];
  refuseUnless(stops.length <= MAX_STOPS, `Invalid 'stop': at most ${MAX_STOPS} sequences are allowed.`, "stop");
  refuseUnless(
    !body.stream_options || body.stream === true,
    "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
    "stream_options",
  );
  refuseUnless(
    typeof body.top_logprobs !== "number" || body.logprobs === true,
    "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.",
    "top_logprobs",
  );
  checkTools(body);
  for (const [index, message] of body.messages.entries()) checkImages(message, `messages[${index}]`);
  checkToolMessages(body.messages);
}
