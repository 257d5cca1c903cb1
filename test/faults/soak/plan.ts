import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import type { Mode } from "../../../src/core/router.ts";
import type { Dice } from "../../../src/simulator/dice.ts";
import { type Ask, userSays } from "../../entrances/scenarios/ask.ts";
import { UNLIMITED } from "../../support/unlimited.ts";

/** Plan of one completion. */
export interface PlannedCall {
  readonly entrance: "http" | "grpc";
  readonly mode: Mode;
  readonly ask: Ask;
  /** Expected result: an answer, an image, or either an answer or a failure. */
  readonly expects: "text" | "picture" | "either";
  /** The caller cancels after this time. */
  readonly leavesAfterMs: number | undefined;
}

/** Fault-free models, one per dialect, and one for images. */
const MODELS = ["alpha-haiku-4.5", "beta-3-flash", "local/test"] as const;
const PAINTER = "beta-3-pro-image-preview";

/** Faults before the first content, after which a fallback can serve. */
const EARLY_FAULTS = ["status=529", "status=500", "status=429", "reset", "garbage", "html", "empty", "hang"] as const;
const FAULTS = [...EARLY_FAULTS, "truncate", "error-after=2", "hang-after=2", "cut-after=2", "reset-after=2"] as const;

/** Percentages. */
const FAULTY = 5;
const LEAVING = 10;
const PICTURES = 3;
const BY_GRPC = 40;

/** Draws one call. Half of the faulty ones have a fallback model, and must be served. */
export function planCall(dice: Dice, number: number): PlannedCall {
  const entrance = dice.roll(100) < BY_GRPC ? "grpc" : "http";
  const mode = dice.roll(2) === 0 ? "whole" : "stream";
  const model = dice.pick(MODELS);
  const leavesAfterMs = dice.roll(100) < LEAVING ? dice.roll(150) : undefined;
  const words = `Write ${10 + dice.roll(60)} words about the number ${number}.`;
  const kind = dice.roll(100);
  const call = { entrance, mode, leavesAfterMs } as const;
  if (kind < FAULTY) {
    const rescued = dice.roll(2) === 0;
    const fault = rescued ? dice.pick(EARLY_FAULTS) : dice.pick(FAULTS);
    const messages = [userSays(`[[fault: ${fault}]] ${words}`)];
    // The fault directive is in the prompt, so the fallback must be a model that ignores it: see `soakConfig`.
    const ask: Ask = { model: `faulty/${model}`, messages, ...(rescued && { fallbackModels: ["sound"] }) };
    return { ...call, ask, expects: rescued ? "text" : "either" };
  }
  if (kind < FAULTY + PICTURES) {
    const modalities = [Modality.TEXT, Modality.IMAGE];
    return { ...call, ask: { model: PAINTER, messages: [userSays(words)], modalities }, expects: "picture" };
  }
  return { ...call, ask: { model, messages: [userSays(words)] }, expects: "text" };
}

/** Configuration of the models. `sound` is an upstream that ignores faults in prompts. */
export interface Upstreams {
  readonly simulatorUrl: string;
  readonly soundUrl: string;
}

/** Faulty models have separate upstreams, so that only their circuit breakers open, and short timeouts. */
export function soakConfig({ simulatorUrl, soundUrl }: Upstreams): {
  readonly limits: object;
  readonly providers: object;
  readonly models: object;
} {
  const provider = { allow_private: true, api_keys: ["any"] };
  const price = { input: 1, output: 2 };
  const timeouts = { first_content_ms: 500, idle_ms: 500 };
  const faulty = (name: string): object => ({ provider: name, upstream_model: "faulty", price, timeouts });
  return {
    limits: UNLIMITED,
    providers: {
      alpha: { ...provider, dialect: "anthropic", base_url: simulatorUrl },
      beta: { ...provider, dialect: "gemini", base_url: simulatorUrl },
      local: { ...provider, dialect: "openai", base_url: `${simulatorUrl}/v1` },
      sound: { ...provider, dialect: "openai", base_url: `${soundUrl}/v1` },
    },
    models: {
      "local/test": { provider: "local", upstream_model: "gpt-5-mini", price },
      sound: { provider: "sound", upstream_model: "sound", price },
      "faulty/alpha-haiku-4.5": faulty("alpha"),
      "faulty/beta-3-flash": faulty("beta"),
      "faulty/local/test": faulty("local"),
    },
  };
}
