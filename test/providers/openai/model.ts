import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import type { Capabilities, UpstreamModel } from "../../../src/core/provider.ts";
import { ABLE } from "../../support/scripted-provider.ts";

/** A model that can do everything, but for what a test rules out. */
export function modelThat(
  can: Partial<Capabilities> = {},
  facts: Partial<Omit<UpstreamModel, "capabilities">> = {},
): UpstreamModel {
  return {
    name: "llama-x",
    contextWindow: 128_000,
    maxOutputTokens: 16_000,
    defaultMaxTokens: 4_096,
    inputModalities: new Set([Modality.TEXT, Modality.IMAGE, Modality.AUDIO]),
    outputModalities: new Set([Modality.TEXT, Modality.IMAGE, Modality.AUDIO]),
    ...facts,
    capabilities: { ...ABLE, ...can },
  };
}
