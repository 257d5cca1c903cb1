import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { ModelStage } from "../../gen/parley/v1/model_pb.js";
import { formatUtcDate } from "../format/time.ts";

/** Describes the stage of a model that is a preview or deprecated; undefined for other models. */
export function describeStage({ stage, shutdownTime }: Pick<Model, "stage" | "shutdownTime">): string | undefined {
  const until = shutdownTime === undefined ? "" : `: shuts down ${formatUtcDate(shutdownTime)}`;
  if (stage === ModelStage.DEPRECATED) return `Deprecated${until}`;
  return stage === ModelStage.PREVIEW ? `Preview${until}` : undefined;
}
