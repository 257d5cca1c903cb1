import { useQuery } from "@tanstack/react-query";
import { modelsQuery } from "../api/models.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount } from "../format/number.ts";
import type { Turn } from "./turns.ts";
import { useWorkspace } from "./workspace.ts";

/** Approximate characters per token of English text. */
const CHARS_PER_TOKEN = 4;

/** Approximate size and cost of the prompt with the message that is being written, over all compared models. */
export function Estimate() {
  const { draft, message, pictures, threads } = useWorkspace((state) => state);
  const { data: models = [] } = useQuery(modelsQuery);
  if (message.trim() === "") return null;
  let tokens = 0;
  let microUsd = 0;
  for (const { model, turns } of threads) {
    const price = models.find(({ id }) => id === (model || draft.model))?.price;
    const characters = draft.system.length + draft.tools.length + message.length + sizeOf(turns);
    const own = Math.ceil(characters / CHARS_PER_TOKEN);
    tokens += own;
    microUsd += (own * Number(price?.inputMicroUsdPerMtok ?? 0n)) / 1e6;
  }
  const cost = microUsd === 0 ? "" : `, ${formatMicroUsd(BigInt(Math.ceil(microUsd)))} before the answer`;
  return (
    <p className="text-sm text-muted tabular-nums">
      ~{formatCount(tokens)} prompt tokens{cost}
      {pictures.length > 0 && ", without the images"}
    </p>
  );
}

function sizeOf(turns: readonly Turn[]): number {
  return turns.reduce((sum, turn) => sum + (turn.role === "assistant" ? turn.answer.text : turn.text).length, 0);
}
