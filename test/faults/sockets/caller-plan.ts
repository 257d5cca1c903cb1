import { createDice, type Dice } from "../../../src/simulator/dice.ts";

/** The ways in, by the client that takes them. */
export const CLIENTS = ["openai", "undici", "raw", "grpc-js", "connect-grpc", "connect"] as const;

export type ClientName = (typeof CLIENTS)[number];

/** When a caller leaves before its answer is complete; if it is complete earlier, the caller has it. */
export type Leaving =
  /** So long after it asked, or as soon as its request has led to a call of an upstream. */
  | { readonly when: "after"; readonly ms: number }
  | { readonly when: "called" }
  /** Says at once that nothing more comes from its side, which looks the same, and reads on. Raw connections only. */
  | { readonly when: "half-closed" }
  /** After so many pieces of text. */
  | { readonly when: "pieces"; readonly count: number }
  /** After so many bytes of the answer, its head included. Raw connections only. */
  | { readonly when: "bytes"; readonly count: number };

/** What one caller does. */
export interface CallerPlan {
  readonly seed: number;
  readonly request: number;
  readonly client: ClientName;
  readonly streamed: boolean;
  readonly model: string;
  readonly fallbacks: readonly string[];
  /** How long it rests after each piece; undefined where it reads as fast as it can. */
  readonly openMs: number | undefined;
  readonly leaving: Leaving | undefined;
  readonly deadlineMs: number | undefined;
}

/** The model whose provider nobody listens at. */
export const DEAD_MODEL = "dead";

/** A model that callers with plans of their own do not ask for, so that it never rests. */
export const SPARE_MODEL = "spare";

/** How many models each dialect has: each has a breaker of its own, so that most of them work at any moment. */
const MODELS_EACH = 8;

export const WIRES = ["anthropic", "gemini", "openai"] as const;

/** All models behind the fault server. */
export const MODELS: readonly string[] = WIRES.flatMap((wire) =>
  Array.from({ length: MODELS_EACH }, (_, index) => `${wire}-${index}`),
);

/** A caller without any trouble of its own. */
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

/** Of ten callers about six take their answer as it comes. A pure function. */
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
  // The official client of OpenAI has no deadline that the gateway would notice before the client itself.
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
