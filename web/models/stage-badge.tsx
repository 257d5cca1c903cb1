import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { ModelStage } from "../../gen/parley/v1/model_pb.js";
import { Badge } from "../components/badge.tsx";
import { formatUtcDate } from "../format/time.ts";

/** Badge of a model that is a preview or goes away; nothing for others. */
export function StageBadge({ model: { stage, shutdownTime } }: { readonly model: Model }) {
  const until = shutdownTime === undefined ? "" : `: shuts down ${formatUtcDate(shutdownTime)}`;
  if (stage === ModelStage.DEPRECATED) return <Badge look="warn">Deprecated{until}</Badge>;
  if (stage === ModelStage.PREVIEW) return <Badge look="plain">Preview{until}</Badge>;
  return null;
}
