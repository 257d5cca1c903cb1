import { TOOLS, visit } from "../translate/conversation.ts";

/** A short conversation: 0.6 kB of JSON. */
export const MESSAGES = [
  {
    role: "system",
    content:
      "You are the assistant of a small museum. Answer in plain words, keep to the question, and say so when the " +
      "collection does not tell.",
  },
  { role: "user", content: 'Who built the old bridge over the river, and why is it called "the long one"?' },
  { role: "assistant", content: "Masons of the town built it; its name comes from its nine arches." },
  { role: "user", content: "Thank you.\nPlease tell me a little more about the masons, in two or three sentences." },
] as const;

/** A conversation with this number of messages. All but the first have about 600 characters. */
function longConversation(messages: number): object {
  const turn = (_: unknown, index: number): object => ({
    role: index % 2 === 0 ? "user" : "assistant",
    content: `Page ${index} of the diary. ${"We went down to the river and counted the arches of the bridge. ".repeat(9)}`,
  });
  return { messages: [MESSAGES[0], ...Array.from({ length: messages - 1 }, turn)] };
}

/** Fields of a chat request that differ between loads. */
export const CONVERSATIONS = {
  /** 0.6 kB. */
  short: () => ({ messages: MESSAGES }),
  /** 30 kB. */
  "fifty messages": () => longConversation(50),
  /** 300 kB, some 75,000 tokens. */
  "five hundred messages": () => longConversation(500),
  /** Three tools, two earlier calls and their results: 3 kB. */
  tools: () => ({ messages: [MESSAGES[0], ...visit(1), ...visit(2), MESSAGES[3]], tools: TOOLS, tool_choice: "auto" }),
  /** Requests a picture. */
  picture: () => ({ messages: MESSAGES.slice(0, 2), modalities: ["image", "text"] }),
} as const;

/** One conversation. */
export type Conversation = keyof typeof CONVERSATIONS;
