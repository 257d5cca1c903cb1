import { FinishReason } from "../../gen/parley/v1/completion_pb.js";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";

/** Shortest time for a rate: a shorter response came in one piece. */
const MIN_SPAN_MS = 50;

/**
 * Completion tokens a second: of a stream from its first token on, otherwise over the whole request. Undefined without tokens, and for
 * a response in one piece.
 */
export function tokensPerSecond({
  completionTokens,
  firstContentMs = 0,
  durationMs,
}: Pick<LoggedRequest, "completionTokens" | "durationMs"> & { readonly firstContentMs?: number | undefined }):
  | number
  | undefined {
  const spanMs = durationMs - firstContentMs;
  return completionTokens === 0n || spanMs < MIN_SPAN_MS ? undefined : (Number(completionTokens) * 1000) / spanMs;
}

/** The finish reason in the words of the contract, such as `tool calls`. Undefined without one. */
export function describeFinish({ finishReason }: Pick<LoggedRequest, "finishReason">): string | undefined {
  if (finishReason === FinishReason.UNSPECIFIED) return undefined;
  return (FinishReason[finishReason] ?? "other").toLowerCase().replaceAll("_", " ");
}
