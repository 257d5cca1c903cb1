import type { Capabilities } from "../../core/provider.ts";
import { isBlank } from "./parts.ts";
import type { Block, TextBlock, Turn } from "./wire.ts";

/**
 * Positions the system turns of a conversation. A model with `midConversationSystem` takes a system turn between a user's turn and
 * the model's, or at the end. In other positions the text joins the user's turn if the model has `midConversationSystem` or
 * `preservedReasoning`. For other models the text is `hoisted` to the system prompt.
 */
export function settleSystemTurns(
  turns: readonly Turn[],
  { midConversationSystem, preservedReasoning }: Capabilities,
): { readonly turns: Turn[]; readonly hoisted: TextBlock[] } {
  const hoisted: TextBlock[] = [];
  const settled: Turn[] = [];
  turns.forEach((turn, index) => {
    if (turn.role !== "system") settled.push(turn);
    else if (!midConversationSystem && !preservedReasoning) {
      hoisted.push(...turn.content.filter((block) => block.type === "text"));
    } else if (midConversationSystem && isPlacedBetween(turns, index)) settled.push(turn);
    else settled.push({ role: "user", content: turn.content });
  });
  return { turns: settled, hoisted };
}

function isPlacedBetween(turns: readonly Turn[], index: number): boolean {
  const before = turns.slice(0, index).findLast(({ role }) => role !== "system");
  const after = turns.slice(index).find(({ role }) => role !== "system");
  return before?.role === "user" && after?.role !== "user";
}

/**
 * Joins neighbouring turns of one role into the first of them. Tool results come first in their turn, in the order of their calls:
 * the provider accepts them nowhere else.
 */
export function joinTurns(turns: readonly Turn[]): Turn[] {
  const joined: Turn[] = [];
  for (const turn of turns) {
    const last = joined.at(-1);
    if (last?.role === turn.role) last.content.push(...turn.content);
    else joined.push(turn);
  }
  joined.forEach((turn, index) => {
    if (turn.content.length > 1 && turn.content.some(isResult))
      turn.content = withResultsFirst(turn.content, joined[index - 1]);
  });
  return joined;
}

function withResultsFirst(content: readonly Block[], before: Turn | undefined): Block[] {
  const calls = new Map<string, number>();
  before?.content.forEach((block, index) => {
    if (block.type === "tool_use") calls.set(block.id, index);
  });
  const position = (block: Block): number =>
    block.type === "tool_result" ? (calls.get(block.tool_use_id) ?? calls.size) : 0;
  const results = content.filter(isResult).toSorted((a, b) => position(a) - position(b));
  return [...results, ...content.filter((block) => !isResult(block))];
}

const isResult = (block: Block): boolean => block.type === "tool_result";

/** Whether the last turn is the assistant's, for the model to continue (prefill). */
export function endsWithAssistant(turns: readonly Turn[]): boolean {
  return turns.at(-1)?.role === "assistant";
}

/**
 * Prepares the last turn as a prefill: removes reasoning and trailing white space, which the provider refuses there.
 */
export function trimPrefill(turns: readonly Turn[]): Turn[] {
  const last = turns.at(-1);
  if (last === undefined) return [];
  const content = last.content.filter(({ type }) => type !== "thinking" && type !== "redacted_thinking");
  const end = content.at(-1);
  // A native block may have a `text` of another type.
  if (end?.type === "text" && typeof end.text === "string")
    content[content.length - 1] = Object.assign(end, { text: end.text.trimEnd() });
  const kept = content.filter(
    (block) => block.type !== "text" || typeof block.text !== "string" || !isBlank(block.text),
  );
  return [...turns.slice(0, -1), ...(kept.length > 0 ? [{ role: last.role, content: kept }] : [])];
}

/**
 * Whether the conversation ends inside a tool loop in which an assistant turn lacks its leading reasoning. The provider
 * then refuses manual reasoning.
 */
export function lacksReasoningInToolLoop(turns: readonly Turn[]): boolean {
  for (let index = turns.length - 1; index >= 0; index--) {
    const { role, content } = turns[index]!;
    const looped = role !== "user" || content.some(isResult);
    if (!looped) return false;
    if (role === "assistant" && content.some(({ type }) => type === "tool_use") && !beginsWithReasoning(content))
      return true;
  }
  return false;
}

function beginsWithReasoning([first]: readonly Block[]): boolean {
  return first?.type === "thinking" || first?.type === "redacted_thinking";
}

/** Whether the conversation replays reasoning. */
export function hasReasoning(turns: readonly Turn[]): boolean {
  return turns.some(({ content }) => content.some(({ type }) => type === "thinking" || type === "redacted_thinking"));
}
