import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { formatMicroUsd } from "../format/money.ts";
import { formatCount } from "../format/number.ts";

/** Tokens and cost of a request. */
export function Tokens({ request }: { readonly request: LoggedRequest }) {
  const { promptTokens, cachedTokens, completionTokens, reasoningTokens, imageTokens, costMicroUsd, estimated } =
    request;
  const { unknownUnits } = request;
  return (
    <>
      <dl className="space-y-2 text-sm tabular-nums">
        <Count name="Prompt tokens" count={promptTokens} />
        <Count name="cached" count={cachedTokens} isPart />
        <Count name="cached speech" count={request.cachedAudioTokens} isPart />
        <Count name="cached images" count={request.cachedImageTokens} isPart />
        <Count name="written to cache" count={request.cacheWriteTokens} isPart />
        <Count name="written for an hour" count={request.cacheWriteHourTokens} isPart />
        <Count name="speech" count={request.promptAudioTokens} isPart />
        <Count name="images" count={request.promptImageTokens} isPart />
        <Count name="Completion tokens" count={completionTokens} />
        <Count name="reasoning" count={reasoningTokens} isPart />
        <Count name="speech" count={request.completionAudioTokens} isPart />
        <Count name="images" count={imageTokens} isPart />
        {request.webSearches > 0n && <Count name="Web searches" count={request.webSearches} />}
        {request.fileSearches > 0n && <Count name="File searches" count={request.fileSearches} />}
        {request.codeExecutions > 0n && <Count name="Code executions" count={request.codeExecutions} />}
        <div className="flex justify-between gap-4 border-t border-line pt-2 font-semibold">
          <dt>Cost</dt>
          <dd>{formatMicroUsd(costMicroUsd)}</dd>
        </div>
        {request.ownCostMicroUsd > 0n && (
          <div className="flex justify-between gap-4 pl-4 text-muted">
            <dt>with the account’s own credential</dt>
            <dd>{formatMicroUsd(request.ownCostMicroUsd)}</dd>
          </div>
        )}
      </dl>
      {unknownUnits.length > 0 && (
        <p className="mt-3 text-sm text-muted">
          The provider also counted {unknownUnits.join(", ")}, which Parley has no price for: the cost may be too low.
        </p>
      )}
      {estimated && (
        <p className="mt-3 text-sm text-muted">Estimated from text length: the provider reported no token usage.</p>
      )}
    </>
  );
}

interface CountProps {
  readonly name: string;
  readonly count: bigint;
  /** Part of the previous count; hidden if zero. */
  readonly isPart?: boolean;
}

function Count({ name, count, isPart = false }: CountProps) {
  if (isPart && count === 0n) return null;
  return (
    <div className={`flex justify-between gap-4 ${isPart ? "pl-4 text-muted" : ""}`}>
      <dt>{name}</dt>
      <dd>{formatCount(count)}</dd>
    </div>
  );
}
