import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { ModelStage } from "../../gen/parley/v1/model_pb.js";
import { Badge } from "../components/badge.tsx";
import { describeStage } from "./stage.ts";

/** Badge of a model that is a preview or deprecated; nothing for other models. */
export function StageBadge({ model }: { readonly model: Model }) {
  const words = describeStage(model);
  if (words === undefined) return null;
  return <Badge look={model.stage === ModelStage.DEPRECATED ? "warn" : "plain"}>{words}</Badge>;
}
