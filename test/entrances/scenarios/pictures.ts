import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { refuses, says } from "../../support/scripted-upstream.ts";
import type { Scenario } from "./scenario.ts";

/** A PNG of one pixel. */
export const PICTURE =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const ask = { model: "painter", modalities: [Modality.TEXT, Modality.IMAGE] };
const drawn = says("Here it is:", { picture: PICTURE });

/** Requests for pictures. */
export const PICTURES: readonly Scenario[] = [
  {
    name: "returns the text and the image of an image model",
    ask,
    upstream: { painter: [drawn] },
    expected: { answer: { model: "painter", text: "Here it is:", pictures: [PICTURE] } },
  },
  {
    name: "returns the image after a retry",
    ask,
    upstream: { painter: [refuses(500), drawn] },
    expected: {
      answer: { model: "painter", text: "Here it is:", pictures: [PICTURE] },
      attempts: ["painter upstream_unavailable 500", "painter served 200"],
    },
  },
  {
    name: "says that the provider of images refuses us",
    ask,
    upstream: { painter: [refuses(401)] },
    expected: { failure: "upstream_refused_us", attempts: ["painter upstream_refused_us 401"] },
  },
  {
    name: "says that the model of images does not exist",
    ask: { ...ask, model: "nobody" },
    expected: { failure: "model_not_found", param: "model", message: /'nobody'/ },
  },
];
