import { NAME } from "../../core/validate.ts";
import { KINDS, type Kinds } from "../../formats/anthropic/block-schema.ts";
import { Refusal } from "../answer.ts";
import { decodeBase64, measureImage } from "../image-input.ts";
import { findLimits, findModel } from "../models.ts";
import type { Block, MessageBody, MessagesBody } from "./body.ts";
import { checkReplay, checkThinking } from "./thinking.ts";

/** First API version without sampling parameters. */
const VERSION_WITHOUT_SAMPLING = "2026-10-21";

/** Request headers that affect the validation of the body. */
export interface Terms {
  readonly version: string;
  /** Enabled beta features. */
  readonly betas: ReadonlySet<string>;
}

function refuseUnless(isRight: boolean, message: string): void {
  if (!isRight) throw new Refusal(400, message);
}

function toBlocks({ content }: MessageBody): readonly Block[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** Fields that exist only with a beta. */
const BETA_FIELDS = { context_management: "context-management-2025-06-27" } as const;

function checkBetas(body: MessagesBody, betas: ReadonlySet<string>): void {
  for (const [field, beta] of Object.entries(BETA_FIELDS))
    refuseUnless(!(field in body) || betas.has(beta), `${field}: Extra inputs are not permitted`);
}

function checkSampling(body: MessagesBody, version: string): void {
  for (const field of ["temperature", "top_p", "top_k"] as const) {
    const isAllowed = version !== VERSION_WITHOUT_SAMPLING || body[field] === undefined;
    refuseUnless(isAllowed, `${field}: Extra inputs are not permitted`);
  }
  const isDoubled = typeof body.temperature === "number" && typeof body.top_p === "number";
  refuseUnless(!isDoubled, "`temperature` and `top_p` cannot both be specified for this model. Please use only one.");
}

function checkRange(field: string, value: number | null | undefined, [least, most]: readonly [number, number]): void {
  if (value == null) return;
  refuseUnless(value >= least, `${field}: Input should be greater than or equal to ${least}`);
  refuseUnless(value <= most, `${field}: Input should be less than or equal to ${most}`);
}

function checkLimits(body: MessagesBody): void {
  const { maxOutputTokens } = findLimits(body.model);
  checkRange("temperature", body.temperature, [0, 1]);
  checkRange("top_p", body.top_p, [0, 1]);
  checkRange("top_k", body.top_k, [0, Infinity]);
  checkRange("max_tokens", body.max_tokens, [0, Infinity]);
  checkRange("thinking.enabled.budget_tokens", body.thinking?.budget_tokens, [1024, Infinity]);
  refuseUnless(body.max_tokens != null, "max_tokens: Field required");
  refuseUnless(
    (body.max_tokens ?? 0) <= maxOutputTokens,
    `max_tokens: ${body.max_tokens} > ${maxOutputTokens}, which is the maximum allowed number of output tokens for ${body.model}`,
  );
  for (const stop of body.stop_sequences ?? []) {
    refuseUnless(stop.trim() !== "", "stop_sequences: each stop sequence must contain non-whitespace");
  }
}

function checkImage(data: string, mediaType: string, path: string): void {
  const bytes = decodeBase64(data);
  if (!bytes) throw new Refusal(400, `${path}.image.source.base64: The image data is not valid base64`);
  const shown = measureImage(bytes)?.mediaType;
  if (shown === undefined) throw new Refusal(400, `${path}.image.source.base64.data: Could not process image`);
  refuseUnless(
    shown === mediaType,
    `${path}.image.source.base64.data: Image does not match the provided media type ${mediaType}, ` +
      `but the image appears to be a ${shown} image`,
  );
}

/** Fields of blocks that the format reports as unknown. */
const UNREAD_FIELDS = /\.(?:context|caller|citations)$/u;

function checkFields(unrecognized: readonly string[]): void {
  const field = unrecognized.find((name) => /\.content\.|^system\./u.test(name) && !UNREAD_FIELDS.test(name));
  refuseUnless(field === undefined, `${field}: Extra inputs are not permitted`);
}

function checkType({ type }: Block, kinds: Kinds, path: string): void {
  const known = [...kinds].map((kind) => `'${kind}'`).join(", ");
  refuseUnless(kinds.has(type), `${path}: Input tag '${type}' does not match any of the expected tags: ${known}`);
}

function checkCacheControl(control: MessagesBody["cache_control"], path: string): void {
  const ttl = control?.ttl ?? "5m";
  refuseUnless(ttl === "5m" || ttl === "1h", `${path}cache_control.ephemeral.ttl: Input should be '5m' or '1h'`);
}

function checkBlocks(message: MessageBody, path: string): void {
  refuseUnless(
    message.role === "assistant" || message.content.length > 0,
    `${path}: all messages must have non-empty content except for the optional final assistant message`,
  );
  for (const [index, block] of toBlocks(message).entries()) {
    const where = `${path}.content.${index}`;
    checkType(block, KINDS.message, where);
    checkCacheControl(block["cache_control"] as MessagesBody["cache_control"], `${where}.`);
    if (block.type === "tool_use")
      refuseUnless(ID.test(block.id), `${where}.id: String should match pattern '${ID.source}'`);
    if (block.type === "tool_result" && Array.isArray(block.content))
      block.content.forEach((inner, at) =>
        checkType(inner as Block, KINDS.result, `${where}.tool_result.content.${at}`),
      );
    if (block.type === "text" && (typeof message.content !== "string" || message.role !== "assistant")) {
      refuseUnless(block.text !== "", "messages: text content blocks must be non-empty");
      refuseUnless(block.text.trim() !== "", "messages: text content blocks must contain non-whitespace text");
    }
    const isInPlace = message.role === "user" || (block.type !== "image" && block.type !== "tool_result");
    refuseUnless(isInPlace, `${where}: \`${block.type}\` blocks are only permitted in user messages`);
    const isAnswer = block.type === "tool_use" || block.type === "thinking" || block.type === "redacted_thinking";
    refuseUnless(
      !isAnswer || message.role === "assistant",
      `${where}: \`${block.type}\` blocks are only permitted in assistant messages`,
    );
    if (block.type === "image" && block.source.type === "base64") {
      checkImage(block.source.data, block.source.media_type, where);
    }
  }
}

function checkSystemTurn(messages: readonly MessageBody[], index: number, model: string): void {
  refuseUnless(index > 0, "messages.0: use the top-level 'system' parameter for the initial system prompt");
  refuseUnless(findModel(model) === undefined, "role 'system' is not supported on this model");
  const before = messages.slice(0, index).findLast((message) => message.role !== "system");
  const after = messages.slice(index).find((message) => message.role !== "system");
  refuseUnless(
    before?.role === "user" && after?.role !== "user",
    `messages.${index}: a system message must follow a user turn and precede an assistant turn or end the conversation`,
  );
}

/** Merges consecutive messages of the same role, as the real API does. */
function mergeTurns(messages: readonly MessageBody[]): { role: MessageBody["role"]; blocks: readonly Block[] }[] {
  const turns: { role: MessageBody["role"]; blocks: Block[] }[] = [];
  for (const message of messages) {
    const last = turns.at(-1);
    if (last?.role === message.role) last.blocks.push(...toBlocks(message));
    else turns.push({ role: message.role, blocks: [...toBlocks(message)] });
  }
  return turns;
}

function checkToolTurns(messages: readonly MessageBody[]): void {
  const turns = mergeTurns(messages);
  const seen = new Set<string>();
  let open: ReadonlySet<string> = new Set();
  for (const [index, { role, blocks }] of turns.entries()) {
    const results = blocks.filter((block) => block.type === "tool_result").map((block) => block.tool_use_id);
    for (const id of results) {
      refuseUnless(
        open.has(id),
        `messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block ` +
          "must have a corresponding `tool_use` block in the previous message.",
      );
    }
    const missing = open.difference(new Set(results));
    const isLed = blocks.slice(0, results.length).every((block) => block.type === "tool_result");
    refuseUnless(
      missing.size === 0 && (open.size === 0 || (role === "user" && isLed)),
      `messages.${index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ` +
        `${[...(missing.size > 0 ? missing : open)].join(", ")}. Each \`tool_use\` block must have a corresponding ` +
        "`tool_result` block in the next message.",
    );
    const calls = blocks.filter((block) => block.type === "tool_use").map((block) => block.id);
    for (const id of calls) {
      refuseUnless(!seen.has(id), "messages: `tool_use` ids must be unique");
      seen.add(id);
    }
    open = new Set(calls);
  }
  refuseUnless(
    open.size === 0,
    `messages: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${[...open].join(", ")}.`,
  );
}

const ID = /^[a-zA-Z0-9_-]+$/u;

function checkPrefill({ messages, thinking }: MessagesBody): void {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return;
  refuseUnless(
    thinking == null || thinking.type === "disabled",
    "messages: the final message must not be an assistant message when thinking is enabled",
  );
  const block = toBlocks(last).at(-1);
  const isTrimmed = block?.type !== "text" || block.text === block.text.trimEnd();
  refuseUnless(isTrimmed, "messages: final assistant content cannot end with trailing whitespace");
}

function checkTools({ tools: given, tool_choice: choice }: MessagesBody): void {
  const tools = given ?? [];
  const names = tools.map((tool) => tool.name);
  for (const [index, { type, name, input_schema: schema, cache_control: control }] of tools.entries()) {
    const path = `tools.${index}`;
    refuseUnless(
      type == null || type === "custom",
      `${path}: Input tag '${type}' does not match any of the expected tags`,
    );
    refuseUnless(NAME.test(name), `${path}.name: String should match pattern '${NAME.source}'`);
    refuseUnless(schema["type"] === "object", `${path}.input_schema.type: Input should be 'object'`);
    checkCacheControl(control, `${path}.`);
  }
  refuseUnless(new Set(names).size === names.length, "tools: Tool names must be unique.");
  refuseUnless(
    choice == null || tools.length > 0,
    "tool_choice: tool_choice may only be specified while providing tools",
  );
  if (choice?.type !== "tool") return;
  refuseUnless(names.includes(choice.name), `tool_choice: Tool '${choice.name}' not found in provided tools`);
}

/** Checks the rules that the format does not have. Throws `Refusal` (400) for the first violation. */
export function checkRules(body: MessagesBody, unrecognized: readonly string[], { version, betas }: Terms): void {
  checkFields(unrecognized);
  checkBetas(body, betas);
  checkCacheControl(body.cache_control, "");
  const isTier = body.service_tier == null || ["auto", "standard_only"].includes(body.service_tier);
  refuseUnless(isTier, "service_tier: Input should be 'auto' or 'standard_only'");
  checkSampling(body, version);
  checkThinking(body, betas);
  checkLimits(body);
  checkTools(body);
  for (const [index, message] of body.messages.entries()) {
    checkBlocks(message, `messages.${index}`);
    if (message.role === "system") checkSystemTurn(body.messages, index, body.model);
  }
  checkToolTurns(body.messages);
  checkPrefill(body);
  checkReplay(body);
}
