import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import type { LogFilter } from "../api/requests.ts";
import { sumQuery } from "../api/usage.ts";
import { ATTRIBUTION_FIELDS } from "../format/attribution.ts";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount } from "../format/number.ts";
import { formatMoment } from "../format/time.ts";
import { PATHS } from "../paths.ts";
import { tokensOf } from "../usage/measures.ts";

/** Days that sums go back at most. */
const YEAR_MS = 365 * 86_400_000;

/** Total of the requests of a session, end user, agent or tag. Renders nothing without such a filter. */
export function AttributionSum({ filter }: { readonly filter: LogFilter }) {
  const [openedMs] = useState(() => Date.now());
  const isNarrowed = ATTRIBUTION_FIELDS.some((field) => filter[field] !== undefined);
  const found = useQuery({ ...sumQuery({ sinceMs: openedMs - YEAR_MS, ...filter }), enabled: isNarrowed });
  if (!isNarrowed || found.data?.total === undefined) return null;
  const { total, cutSince } = found.data;
  const given = ATTRIBUTION_FIELDS.flatMap((field) => (filter[field] === undefined ? [] : [[field, filter[field]]]));
  return (
    <p role="status" className="mb-3 rounded-lg bg-sunken px-4 py-2 text-sm tabular-nums">
      {formatCount(total.completions)} completions, {formatCount(tokensOf(total))} tokens,{" "}
      <strong>{formatMicroUsd(total.costMicroUsd)}</strong>
      {cutSince !== undefined && `, of the last 100,000 completions, since ${formatMoment(cutSince)}`}.{" "}
      <Link
        href={`${PATHS.usage}?${new URLSearchParams(given).toString()}`}
        className="text-accent underline underline-offset-2"
      >
        Usage over time
      </Link>
    </p>
  );
}
