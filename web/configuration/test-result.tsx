import type { TestProviderResponse } from "../../gen/parley/console/v1/configuration_pb.js";
import type { TestFailure } from "../../gen/parley/console/v1/model_pb.js";
import { formatDuration } from "../format/duration.ts";
import { formatCount } from "../format/number.ts";
import { outcomeOf } from "../format/outcomes.ts";

/** Result of the test of a provider. `model` is the model that was asked for one token; empty for none. */
export function TestResult({ of: response, model }: { readonly of: TestProviderResponse; readonly model: string }) {
  const { models, listFailure, failure, durationMs } = response;
  return (
    <div className="space-y-1 wrap-anywhere">
      <p>
        {listFailure === undefined ? (
          <>
            <strong className="font-medium text-good">Connected.</strong> It lists {countModels(models.length)}.
          </>
        ) : (
          <>
            <strong className="font-medium text-danger">No list of models.</strong> <Reason of={listFailure} />
          </>
        )}
      </p>
      {model !== "" && (
        <p>
          {failure === undefined ? (
            <>
              <strong className="font-medium text-good">{model} answered</strong> in {formatDuration(durationMs)}.
            </>
          ) : (
            <>
              <strong className="font-medium text-danger">{model} did not answer.</strong> <Reason of={failure} />
            </>
          )}
        </p>
      )}
    </div>
  );
}

function countModels(count: number): string {
  if (count === 0) return "no models: type their names below";
  return count === 1 ? "1 model" : `${formatCount(count)} models`;
}

function Reason({ of: { outcome, httpStatusCode, reason, advice } }: { readonly of: TestFailure }) {
  const status = httpStatusCode === undefined ? "" : ` (HTTP ${httpStatusCode})`;
  return (
    <>
      {outcomeOf(outcome).label}
      {status}: <bdi>{reason}</bdi> {advice}
    </>
  );
}
