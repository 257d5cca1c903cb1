import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { ModelService } from "../../../gen/parley/console/v1/model_pb.js";
import type { Clock } from "../../core/clock.ts";
import { type Model, upstreamKey } from "../../core/model.ts";
import type { HealthRecorder, Opening } from "../../router/upstream-health.ts";
import { type Condition, toModelMessage, toUpstreamMessage } from "./model-messages.ts";

/** What the model service stands on. */
export interface ModelServicePorts {
  /** The models there are now, in the order of the registry. */
  readonly models: () => readonly Model[];
  readonly health: Pick<HealthRecorder, "of" | "sinceMs">;
  /** Undefined while the upstream model of a model does not rest. */
  readonly openingOf: (model: Model) => Opening | undefined;
  readonly clock: Clock;
}

/** The models for everybody, and how their providers are doing for administrators. */
export function createModelService({
  models,
  health,
  openingOf,
  clock,
}: ModelServicePorts): ServiceImpl<typeof ModelService> {
  const conditionOf = (model: Model): Condition => ({
    health: health.of(model),
    rest: openingOf(model),
    nowMs: clock.now(),
  });
  return {
    list: () => ({ models: models().map((model) => toModelMessage(model, conditionOf(model))) }),

    listUpstreams() {
      const upstreams = Map.groupBy(models(), upstreamKey);
      return {
        upstreams: [...upstreams.values()].map((group) => {
          const [first, ...others] = group as [Model, ...Model[]];
          return toUpstreamMessage([first, ...others], conditionOf(first));
        }),
        since: timestampFromMs(health.sinceMs()),
        time: timestampFromMs(clock.now()),
      };
    },
  };
}
