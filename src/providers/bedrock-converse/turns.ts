import type { BlockKinds } from "../wire/block-turns.ts";
import type { Block, TextBlock, Turn } from "./wire.ts";

export const KINDS: BlockKinds<Block> = {
  isReasoning: (block) => "reasoningContent" in block,
  callOf: (block) => ("toolUse" in block ? { id: block.toolUse.toolUseId, name: block.toolUse.name } : undefined),
  resultOf: (block) => ("toolResult" in block ? block.toolResult.toolUseId : undefined),
};

/**
 * Positions the system turns of a conversation. They stay in place for a model that takes them there; otherwise their texts are
 * `hoisted` to the system prompt.
 */
export function settleSystemTurns(
  turns: readonly Turn[],
  { midConversationSystem }: { readonly midConversationSystem: boolean },
): { readonly turns: Turn[]; readonly hoisted: TextBlock[] } {
  if (midConversationSystem) return { turns: [...turns], hoisted: [] };
  return {
    turns: turns.filter(({ role }) => role !== "system"),
    hoisted: turns.flatMap(({ role, content }) =>
      role === "system" ? content.filter((block): block is TextBlock => "text" in block) : [],
    ),
  };
}

/** Prepares the last turn as a prefill: removes reasoning and trailing white space. */
export function trimPrefill(turns: readonly Turn[]): Turn[] {
  const last = turns.at(-1);
  if (last === undefined) return [];
  const content = last.content
    .filter((block) => !KINDS.isReasoning(block))
    .map((block, index, { length }) =>
      index === length - 1 && "text" in block ? Object.assign(block, { text: block.text.trimEnd() }) : block,
    );
  return content.length > 0 ? [...turns.slice(0, -1), { role: last.role, content }] : turns.slice(0, -1);
}
