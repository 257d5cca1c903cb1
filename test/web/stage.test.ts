import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { ModelStage } from "../../gen/parley/v1/model_pb.js";
import { describeStage } from "../../web/models/stage.ts";

const shutdownTime = timestampFromDate(new Date("2027-03-31"));

describe("the stage of a model", () => {
  it.each([
    [ModelStage.PREVIEW, undefined, "Preview"],
    [ModelStage.PREVIEW, shutdownTime, "Preview: shuts down Mar 31, 2027"],
    [ModelStage.DEPRECATED, undefined, "Deprecated"],
    [ModelStage.DEPRECATED, shutdownTime, "Deprecated: shuts down Mar 31, 2027"],
    [ModelStage.STABLE, undefined, undefined],
    [ModelStage.UNSPECIFIED, undefined, undefined],
  ])("%s is shown where callers have to know it", (stage, until, words) => {
    expect(describeStage({ stage, ...(until && { shutdownTime: until }) })).toBe(words);
  });
});
