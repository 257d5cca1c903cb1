import type { Capabilities } from "../../core/provider.ts";
import { type BlockKinds, isBlank } from "../wire/block-turns.ts";
import type { Block, TextBlock, Turn } from "./wire.ts";

export const KINDS: BlockKinds<Block> = {
  isReasoning: ({ type }) => type === "thinking" || type === "redacted_thinking",
  callOf: (block) => (block.type === "tool_use" ? block : undefined),
  resultOf: (block) => (block.type === "tool_result" ? block.tool_use_id : undefined),
};

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
 * Prepares the last turn as a prefill: removes reasoning and trailing white space, which the provider refuses there.
 */
export function trimPrefill(turns: readonly Turn[]): Turn[] {
  const last = turns.at(-1);
  if (last === undefined) return [];
  const content = last.content.filter((block) => !KINDS.isReasoning(block));
  const end = content.at(-1);
  // A native block may have a `text` of another type.
  if (end?.type === "text" && typeof end.text === "string")
    content[content.length - 1] = Object.assign(end, { text: end.text.trimEnd() });
  const kept = content.filter(
    (block) => block.type !== "text" || typeof block.text !== "string" || !isBlank(block.text),
  );
  return [...turns.slice(0, -1), ...(kept.length > 0 ? [{ role: last.role, content: kept }] : [])];
}

/** Whether the conversation replays reasoning. */
export function hasReasoning(turns: readonly Turn[]): boolean {
  return turns.some(({ content }) => content.some(KINDS.isReasoning));
}
