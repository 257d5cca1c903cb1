import { create } from "@bufbuild/protobuf";
import { type CompletionRequest, CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { MessageSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { sleep } from "../../src/core/clock.ts";
import { Failure } from "../../src/core/failure.ts";
import { type Hedge, type Model, upstreamKey } from "../../src/core/model.ts";
import type { Emit, UpstreamCall } from "../../src/core/provider.ts";
import { createRoute, type Route, type RoutePolicy } from "../../src/core/route.ts";
import { Breaker } from "../../src/router/breaker.ts";
import { Routes } from "../../src/router/routes.ts";
import { createRouter } from "../../src/router/router.ts";
import { UpstreamLoad } from "../../src/router/upstream-load.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { modelOf, ScriptedProvider } from "../support/scripted-provider.ts";
import { newCall, NO_RULES, say, stop } from "./routed.ts";

/** A provider whose only batch of an answer comes after a time that is drawn for each call. */
class DrawnProvider extends ScriptedProvider {
  readonly #clock: FakeClock;
  readonly #drawMs: () => number;
  sent = 0;

  constructor(clock: FakeClock, drawMs: () => number) {
    super(clock, {});
    this.#clock = clock;
    this.#drawMs = drawMs;
  }

  override async stream({ signal }: UpstreamCall, emit: Emit): Promise<void> {
    this.sent += 1;
    await sleep(this.#clock, this.#drawMs(), signal);
    signal.throwIfAborted();
    await emit([say("hi"), stop]);
  }
}

export interface HedgedOptions {
  readonly requests: number;
  readonly hedge: Hedge | undefined;
  readonly random: () => number;
  /** Draws the milliseconds to the first content of a call. */
  readonly drawMs: () => number;
}

/** Sends requests to a name with two equal targets, through the product's router. */
export async function sendHedged({ requests, hedge, random, drawMs }: HedgedOptions) {
  const clock = new FakeClock();
  const provider = new DrawnProvider(clock, drawMs);
  const models = ["a", "b"].map((id) => modelOf(id, provider));
  const targets = models.map((model) => ({ model, weight: 1, when: undefined }));
  const facts = { description: "", created: 0, policy: "weighted", affinity: false } as const;
  const route = createRoute({ id: "pool", ...facts, hedge, targets });
  const breaker = { failures: 5, openMs: 5_000, maxOpenMs: 30_000 };
  const router = createRouter({ models, clock, random, backoff: { baseMs: 100, capMs: 2_000 }, breaker });
  const waitedMs: number[] = [];
  const request = asking("hi");
  const send = async (): Promise<void> => {
    const beganMs = clock.monotonic();
    const plan = router.plan(request, [route], { mode: "stream", rules: NO_RULES });
    let isFirst = true;
    await plan.stream(newCall(), () => {
      if (isFirst) waitedMs.push(clock.monotonic() - beganMs);
      isFirst = false;
      return undefined;
    });
  };
  const all: Promise<void>[] = [];
  for (let number = 0; number < requests; number++) {
    all.push(send());
    await clock.pass(20);
  }
  await clock.drive(Promise.all(all));
  return { waitedMs, calls: provider.sent, hedges: router.hedges().get("pool") };
}

/** A pseudo-random number from 0 to 1, the same sequence for the same seed: mulberry32. */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A request whose conversation begins with `words`. */
export function asking(words: string): CompletionRequest {
  return create(CompletionRequestSchema, {
    messages: [create(MessageSchema, { role: Role.USER, parts: [{ kind: { case: "text", value: words } }] })],
  });
}

export interface SimulatedTarget {
  readonly weight?: number;
  /** Milliseconds to the first content of a request that is sent now. */
  readonly firstContentMs?: (nowMs: number) => number;
  readonly isDown?: (nowMs: number) => boolean;
}

export interface PoolOptions {
  readonly targets: Readonly<Record<string, SimulatedTarget>>;
  readonly policy: RoutePolicy;
  readonly affinity: boolean;
  readonly random: () => number;
  /** Milliseconds from the first content to the end of an answer. Default: 0. */
  readonly restMs?: number;
}

/** The choice of targets with real breakers and loads, and upstream models whose behaviour is a function of the time. */
export class Pool {
  readonly clock = new FakeClock();
  readonly route: Route;
  readonly #options: PoolOptions;
  readonly #routes: Routes;
  readonly #breakers = new Map<string, Breaker>();
  readonly #loads = new Map<string, UpstreamLoad>();

  constructor(options: PoolOptions) {
    this.#options = options;
    const { targets, policy, affinity, random } = options;
    const provider = new ScriptedProvider(this.clock, {});
    const breaker = { failures: 5, openMs: 5_000, maxOpenMs: 30_000 };
    for (const id of Object.keys(targets)) {
      const key = upstreamKey(modelOf(id, provider));
      this.#breakers.set(key, new Breaker(() => breaker, this.clock));
      this.#loads.set(key, new UpstreamLoad(this.clock));
    }
    this.#routes = new Routes({
      clock: this.clock,
      random,
      breakerOf: (model) => this.#breakers.get(upstreamKey(model))!,
      loadOf: (model) => this.#loads.get(upstreamKey(model))!,
    });
    this.route = createRoute({
      id: "pool",
      description: "",
      created: 0,
      policy,
      affinity,
      targets: Object.entries(targets).map(([id, { weight = 1 }]) => ({
        model: modelOf(id, provider),
        weight,
        when: undefined,
      })),
    });
  }

  /** Sends a request now. Returns the serving target and its time to the first content; undefined when none serves. */
  send(request: CompletionRequest, keyFamilyId = "key_1"): { readonly id: string; readonly ms: number } | undefined {
    const caller = { keyFamilyId, accountId: "acct" };
    const { models } = this.#routes.rank(request, [this.route], { mode: "stream", caller });
    for (const model of models) {
      const ms = this.#attempt(model, caller.accountId);
      if (ms !== undefined) return { id: model.id, ms };
    }
    return undefined;
  }

  #attempt(model: Model, accountId: string): number | undefined {
    const { firstContentMs = () => 0, isDown = () => false } = this.#options.targets[model.id]!;
    const permit = this.#breakers.get(upstreamKey(model))!.admit(accountId);
    if (permit instanceof Failure) return undefined;
    const call = this.#loads.get(upstreamKey(model))!.begin("stream", accountId);
    if (isDown(this.clock.monotonic())) {
      permit.failed(new Failure("upstream_unavailable", "Down."));
      call.end("unknown");
      return undefined;
    }
    const ms = firstContentMs(this.clock.monotonic());
    this.clock.after(ms, () => {
      permit.committed();
      call.answered();
    });
    this.clock.after(ms + (this.#options.restMs ?? 0), () => {
      permit.succeeded();
      call.end("answered");
    });
    return ms;
  }
}
