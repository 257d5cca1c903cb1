import fc from "fast-check";
import { anyCharacter } from "../../support/any-character.ts";

/** A whole answer of the provider, as JSON. */
export interface WireAnswer {
  readonly content: readonly WireBlock[];
  readonly stop_reason: string;
  readonly stop_details: unknown;
  readonly usage: Readonly<Record<string, unknown>>;
}

type WireBlock =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "thinking"; readonly thinking: string; readonly signature: string }
  | { readonly type: "redacted_thinking"; readonly data: string }
  | { readonly type: "tool_use"; readonly id: string; readonly name: string; readonly input: object };

const words = fc.string({ unit: anyCharacter, maxLength: 30 });
const token = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/);
const tokens = fc.nat(100_000);

const block: fc.Arbitrary<WireBlock> = fc.oneof(
  fc.record({ type: fc.constant("text" as const), text: words }),
  fc.record({ type: fc.constant("thinking" as const), thinking: words, signature: token }),
  fc.record({ type: fc.constant("redacted_thinking" as const), data: token }),
  fc.record({
    type: fc.constant("tool_use" as const),
    id: token,
    name: token,
    input: fc.dictionary(token, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
  }),
);

/** Any answer. */
export const anyMessage: fc.Arbitrary<WireAnswer> = fc.record({
  content: fc.array(block, { maxLength: 6 }),
  stop_reason: fc.constantFrom("end_turn", "tool_use", "max_tokens", "refusal", "pause_turn", "novelty"),
  stop_details: fc.option(fc.record({ type: fc.constant("refusal"), explanation: words })),
  usage: fc.record({
    input_tokens: tokens,
    output_tokens: tokens,
    cache_read_input_tokens: fc.option(tokens),
    cache_creation_input_tokens: fc.option(tokens),
    cache_creation: fc.option(fc.record({ ephemeral_5m_input_tokens: tokens, ephemeral_1h_input_tokens: tokens })),
    server_tool_use: fc.option(fc.record({ web_search_requests: tokens })),
    output_tokens_details: fc.option(fc.record({ thinking_tokens: tokens })),
  }),
});

/** The answer as the provider would stream it, content in pieces of a few characters. */
export function toSse({ content, stop_reason, stop_details, usage }: WireAnswer): string {
  const list: object[] = [{ type: "message_start", message: { content: [], usage: { ...usage, output_tokens: 1 } } }];
  content.forEach((wireBlock, index) => {
    const [start, deltas] = toPieces(wireBlock);
    list.push({ type: "content_block_start", index, content_block: start });
    list.push({ type: "ping" }, ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })));
    list.push({ type: "content_block_stop", index });
  });
  list.push({ type: "message_delta", delta: { stop_reason, stop_details }, usage: { ...usage, input_tokens: null } });
  list.push({ type: "message_stop" });
  return list.map((event) => `event: ${(event as { type: string }).type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

function toPieces(wireBlock: WireBlock): [start: object, deltas: object[]] {
  switch (wireBlock.type) {
    case "text":
      return [{ type: "text", text: "" }, cut(wireBlock.text).map((text) => ({ type: "text_delta", text }))];
    case "thinking":
      return [
        { type: "thinking", thinking: "", signature: "" },
        [
          ...cut(wireBlock.thinking).map((thinking) => ({ type: "thinking_delta", thinking })),
          { type: "signature_delta", signature: wireBlock.signature },
        ],
      ];
    case "redacted_thinking":
      return [wireBlock, []];
    case "tool_use": {
      const json = Object.keys(wireBlock.input).length === 0 ? "" : JSON.stringify(wireBlock.input);
      return [
        { ...wireBlock, input: {} },
        cut(json).map((partial_json) => ({ type: "input_json_delta", partial_json })),
      ];
    }
  }
}

/** An empty piece first, as the provider sends one, then three characters each. */
function cut(text: string): string[] {
  const characters = Array.from(text);
  const pieces = [""];
  for (let at = 0; at < characters.length; at += 3) pieces.push(characters.slice(at, at + 3).join(""));
  return pieces;
}
