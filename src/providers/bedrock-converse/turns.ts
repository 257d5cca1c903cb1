import type { Block, TextBlock, Turn } from "./wire.ts";

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

/** Joins neighbouring turns of one role, because the provider refuses them. Tool results come first, in the order of their calls. */
export function joinTurns(turns: readonly Turn[]): Turn[] {
  const joined: Turn[] = [];
  for (const turn of turns) {
    const last = joined.at(-1);
    if (last?.role === turn.role) last.content.push(...turn.content);
    else joined.push(turn);
  }
  joined.forEach((turn, index) => {
    if (turn.content.some(isResult)) turn.content = withResultsFirst(turn.content, joined[index - 1]);
  });
  return joined;
}

function withResultsFirst(content: readonly Block[], before: Turn | undefined): Block[] {
  const calls = new Map<string, number>();
  before?.content.forEach((block, index) => {
    if ("toolUse" in block) calls.set(block.toolUse.toolUseId, index);
  });
  const position = (block: Block): number =>
    "toolResult" in block ? (calls.get(block.toolResult.toolUseId) ?? calls.size) : 0;
  const results = content.filter(isResult).toSorted((a, b) => position(a) - position(b));
  return [...results, ...content.filter((block) => !isResult(block))];
}

const isResult = (block: Block): boolean => "toolResult" in block;

/** Prepares the last turn as a prefill: removes reasoning and trailing white space. */
export function trimPrefill(turns: readonly Turn[]): Turn[] {
  const last = turns.at(-1);
  if (last === undefined) return [];
  const content = last.content
    .filter((block) => !("reasoningContent" in block))
    .map((block, index, { length }) =>
      index === length - 1 && "text" in block ? Object.assign(block, { text: block.text.trimEnd() }) : block,
    );
  return content.length > 0 ? [...turns.slice(0, -1), { role: last.role, content }] : turns.slice(0, -1);
}

/** Names of the tools that the conversation calls. */
export function calledTools(turns: readonly Turn[]): string[] {
  const names = turns.flatMap(({ content }) =>
    content.flatMap((block) => ("toolUse" in block ? [block.toolUse.name] : [])),
  );
  return [...new Set(names)];
}

/** Whether a tool call of the running exchange lacks its reasoning: the provider then refuses reasoning by budget. */
export function lacksReasoningInToolLoop(turns: readonly Turn[]): boolean {
  for (const { role, content } of turns.toReversed()) {
    if (role === "user" && !content.some(isResult)) return false;
    if (role !== "assistant" || !content.some((block) => "toolUse" in block)) continue;
    if (!("reasoningContent" in content[0]!)) return true;
  }
  return false;
}
