import { useMutation } from "@tanstack/react-query";
import type { TestModelResponse, Upstream } from "../../gen/parley/console/v1/model_pb.js";
import { readFailure } from "../api/failure.ts";
import { testModel } from "../api/models.ts";
import { Button } from "../components/button.tsx";
import { formatDuration } from "../format/duration.ts";
import { outcomeOf } from "../format/outcomes.ts";

/** Button that asks an upstream model for one token, and the result. */
export function TestConnection({ upstream: { provider, name, modelIds } }: { readonly upstream: Upstream }) {
  const test = useMutation({ mutationFn: () => testModel(modelIds[0]!) });
  return (
    <div className="flex max-w-xl flex-wrap items-center gap-x-4 gap-y-2 text-sm sm:flex-row-reverse sm:text-right">
      <Button
        look="secondary"
        size="small"
        busy={test.isPending}
        aria-label={`Test connection to ${provider} / ${name}`}
        title="Asks for one token, at the provider’s price"
        onClick={() => test.mutate()}
      >
        {test.isPending ? "Testing …" : "Test connection"}
      </Button>
      <p role="status" className="min-w-0 flex-1 wrap-anywhere">
        {test.isSuccess && <Result {...test.data} />}
        {test.isError && readFailure(test.error)?.message}
      </p>
    </div>
  );
}

function Result({ durationMs, failure }: TestModelResponse) {
  if (failure === undefined) return <>Answered in {formatDuration(durationMs)}.</>;
  const { outcome, httpStatusCode, reason, advice } = failure;
  const status = httpStatusCode === undefined ? "" : ` (HTTP ${httpStatusCode})`;
  return (
    <>
      <strong className="font-medium text-danger">
        {outcomeOf(outcome).label}
        {status}.
      </strong>{" "}
      <bdi>{reason}</bdi> {advice}
    </>
  );
}
