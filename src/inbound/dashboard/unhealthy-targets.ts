import type { MessageInitShape } from "@bufbuild/protobuf";
import { TargetState, type UnhealthyTargetSchema } from "../../../gen/parley/console/v1/overview_pb.js";
import { type Model, upstreamKey } from "../../core/model.ts";
import { isRoute, type Route } from "../../core/route.ts";
import type { HealthRecorder, Opening } from "../../router/upstream-health.ts";
import { optionalTime } from "./account-messages.ts";

/** Share of failed calls from which an upstream model is unhealthy. */
const UNHEALTHY_SHARE = 0.1;
const MAX_TARGETS = 10;
const MAX_MODEL_IDS = 10;

/** Models and their health. */
export interface TargetPorts {
  readonly models: () => readonly (Model | Route)[];
  readonly health: Pick<HealthRecorder, "of">;
  /** The open breaker of a model's upstream model; undefined while it is closed. */
  readonly openingOf: (model: Model) => Opening | undefined;
}

/** Upstream models with an open circuit, or of whose recent calls a tenth failed: the worst first. */
export function unhealthyTargets({
  models,
  health,
  openingOf,
}: TargetPorts): MessageInitShape<typeof UnhealthyTargetSchema>[] {
  const upstreams = Map.groupBy(
    models().filter((model): model is Model => !isRoute(model)),
    upstreamKey,
  );
  return [...upstreams.values()]
    .map((group) => {
      const first = group[0]!;
      const { attempts, failures } = health.of(first);
      const rest = openingOf(first);
      const badness = rest === undefined ? failures / Math.max(attempts, 1) : 2;
      return { group, first, attempts, failures, rest, badness };
    })
    .filter(({ badness }) => badness >= UNHEALTHY_SHARE)
    .toSorted((left, right) => right.badness - left.badness)
    .slice(0, MAX_TARGETS)
    .map(({ group, first: { providerName, upstream }, attempts, failures, rest }) => ({
      provider: providerName,
      name: upstream.name,
      modelIds: group.slice(0, MAX_MODEL_IDS).map(({ id }) => id),
      state: stateOf(rest, failures === attempts),
      ...optionalTime("circuitOpenTime", rest?.sinceMs),
      attempts: BigInt(attempts),
      failures: BigInt(failures),
    }));
}

function stateOf(rest: Opening | undefined, isFailing: boolean): TargetState {
  if (rest === undefined) return isFailing ? TargetState.FAILING : TargetState.DEGRADED;
  return rest.remainingMs > 0 ? TargetState.CIRCUIT_OPEN : TargetState.RECOVERING;
}
