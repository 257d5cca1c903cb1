import { createDice, type Dice } from "../../../src/simulator/dice.ts";

/** Entrances, with the client library. */
export const CLIENTS = ["openai", "undici", "raw", "grpc-js", "connect-grpc", "connect"] as const;

export type ClientName = (typeof CLIENTS)[number];

/** When a caller cancels, unless its answer is complete earlier. */
type Leaving =
  /** After this time, or when its request has caused an upstream call. */
  | { readonly when: "after"; readonly ms: number }
  | { readonly when: "called" }
  /** Half-closes the connection after the request, and keeps reading. Raw connections only. */
  | { readonly when: "half-closed" }
  /** After this number of text chunks. */
  | { readonly when: "pieces"; readonly count: number }
  /** After this number of response bytes, including the head. Raw connections only. */
  | { readonly when: "bytes"; readonly count: number };

/** Plan of one caller. */
export interface CallerPlan {
  readonly seed: number;
  readonly request: number;
  readonly client: ClientName;
  readonly streamed: boolean;
  readonly model: string;
  readonly fallbacks: readonly string[];
  /** Pause after each chunk; undefined for none. */
  readonly openMs: number | undefined;
  readonly leaving: Leaving | undefined;
  readonly deadlineMs: number | undefined;
}

/** A model whose provider's port is closed. */
export const DEAD_MODEL = "dead";

/** A model without callers that have faults of their own, so that its circuit breaker never opens. */
export const SPARE_MODEL = "spare";

/** Models per dialect: each has its own circuit breaker, so that most are available at any time. */
const MODELS_EACH = 8;

export const WIRES = ["anthropic", "gemini", "openai"] as const;

/** All models of the fault server. */
export const MODELS: readonly string[] = WIRES.flatMap((wire) =>
  Array.from({ length: MODELS_EACH }, (_, index) => `${wire}-${index}`),
);

/** Plan of a caller without faults. */
export function plainCaller(seed: number, request: number): CallerPlan {
  return {
    seed,
    request,
    client: "undici",
    streamed: false,
    model: SPARE_MODEL,
    fallbacks: [],
    openMs: undefined,
    leaving: undefined,
    deadlineMs: undefined,
  };
}

/** Draws a plan; six of ten callers read the whole answer without delay. A pure function. */
export function drawCallerPlan(seed: number, request: number): CallerPlan {
  const dice = createDice(`caller ${seed} ${request}`);
  const client = dice.pick(CLIENTS);
  const [model = DEAD_MODEL, ...others] = shuffled(dice, MODELS);
  const fallbacks = others.slice(0, dice.pick([0, 0, 1, 2, 3]));
  const isPrimaryDead = dice.roll(25) === 0;
  const trouble = dice.roll(100);
  const plan = {
    ...plainCaller(seed, request),
    client,
    streamed: dice.roll(3) > 0,
    model: isPrimaryDead ? DEAD_MODEL : model,
    fallbacks: dice.roll(25) === 0 ? [DEAD_MODEL, ...fallbacks] : fallbacks,
  };
  if (trouble < 10) return { ...plan, openMs: 1 + dice.roll(8) };
  if (trouble < 30) return { ...plan, leaving: drawLeaving(dice, client) };
  // OpenAI's client has no deadline that the gateway would see.
  if (trouble < 38 && client !== "openai") return { ...plan, deadlineMs: 5 + dice.roll(400) };
  return plan;
}

function drawLeaving(dice: Dice, client: ClientName): Leaving {
  if (client === "raw" && dice.roll(4) === 0) return { when: "half-closed" };
  switch (dice.roll(4)) {
    case 0:
      return { when: "after", ms: dice.roll(40) };
    case 1:
      return { when: "called" };
    case 2:
      if (client === "raw") return { when: "bytes", count: 1 + dice.roll(4_000) };
  }
  return { when: "pieces", count: 1 + dice.roll(12) };
}

function shuffled<T>(dice: Dice, items: readonly T[]): T[] {
  const rest = [...items];
  return items.map(() => rest.splice(dice.roll(rest.length), 1)[0]!);
}
