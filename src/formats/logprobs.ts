import type { TokenLogprob, TopLogprob } from "../../gen/parley/v1/message_pb.js";

/** Log probabilities of a choice or a chunk. */
interface Logprobs {
  readonly content: readonly TokenLogprob[];
  readonly refusal: readonly TokenLogprob[];
}

/** `logprobs` in OpenAI's formats; null without any. */
export function writeLogprobs({ content, refusal }: Logprobs): object | null {
  if (content.length === 0 && refusal.length === 0) return null;
  const list = (tokens: readonly TokenLogprob[]): object[] | null =>
    tokens.length === 0 ? null : tokens.map(tokenLogprob);
  return { content: list(content), refusal: list(refusal) };
}

/** A token with its alternatives. */
export function tokenLogprob(token: TokenLogprob): object {
  const one = ({ token: text, logprob, bytes }: TopLogprob | TokenLogprob): object => ({
    token: text,
    logprob,
    bytes: bytes ? [...bytes] : null,
  });
  return { ...one(token), top_logprobs: token.top.map(one) };
}
