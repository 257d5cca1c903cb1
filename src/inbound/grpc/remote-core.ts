import { create } from "@bufbuild/protobuf";
import { CompletionService } from "../../../gen/parley/v1/completion_pb.js";
import { GetCurrentKeyRequestSchema, type Key, KeyService } from "../../../gen/parley/v1/key_pb.js";
import { GetModelRequestSchema, ListModelsRequestSchema, ModelService } from "../../../gen/parley/v1/model_pb.js";
import type { Call, Caller } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import type { Completions } from "../../core/completions.ts";
import type { Failure } from "../../core/failure.ts";
import type { Models } from "../../core/models.ts";
import type { Principal } from "../../core/principal.ts";
import type { LastLimits } from "../headers.ts";
import { type CallFacts, CoreCalls } from "./core-calls.ts";
import { CoreChannels, type CoreState } from "./core-channels.ts";

/** How long a question that no provider is needed for may take. */
const QUESTION_MS = 10_000;

export interface RemoteCoreOptions {
  /** As `coreTarget` makes it. */
  readonly target: string;
  /** How long a call waits for a core while there is none, such as during its restart. Default: 5 seconds. */
  readonly waitMs?: number;
  readonly clock: Clock;
  /** The API key that a caller has shown: the core wants to see it too. */
  readonly keyOf: (principal: Principal) => string;
  /** Learns what cores say of the callers' limits. */
  readonly limits: LastLimits;
  /**
   * Is told of a call that failed without a core's word, because there was none or it went away: no other process has
   * written that down. What has no signal is no call yet, and left to who asked.
   */
  readonly lost: (failure: Failure, requestId: string) => void;
}

/** A core in another process, called over gRPC: does what the core itself does, and fails as it fails. */
export interface RemoteCore {
  readonly completions: Completions;
  readonly models: Models;
  /** Which key this is, and what it may do. Throws what the core throws, `unauthenticated` above all. */
  currentKey(key: string): Promise<Key>;
  state(): CoreState;
  /** Ends all connections, and the calls on them. */
  close(): void;
}

/** Connects to the cores behind a target. Returns at once; calls wait a while for a core that is on its way. */
export function connectCore({ target, waitMs = 5_000, clock, keyOf, limits, lost }: RemoteCoreOptions): RemoteCore {
  const channels = new CoreChannels(target);
  const calls = new CoreCalls(channels, { clock, waitMs });
  const soon = (): number => clock.monotonic() + QUESTION_MS;
  const factsOf = (caller: Caller | Call): CallFacts => ({
    key: keyOf(caller.principal),
    requestId: caller.requestId,
    heard: (facts) => {
      limits.note(caller.principal, facts);
      caller.admitted(facts);
    },
    ...("signal" in caller
      ? {
          signal: caller.signal,
          expiresMs: caller.expiresMs,
          hops: caller.hops,
          lost: (failure) => lost(failure, caller.requestId),
        }
      : { expiresMs: soon(), lost: () => undefined }),
  });
  return {
    completions: {
      create: (request, call) => calls.unary(CompletionService.method.create, request, factsOf(call)),
      async stream(request, call, emit) {
        for await (const batch of calls.stream(CompletionService.method.stream, request, factsOf(call)))
          await emit(batch);
      },
    },
    models: {
      async list(caller) {
        const answer = await calls.unary(ModelService.method.list, create(ListModelsRequestSchema), factsOf(caller));
        return answer.models;
      },
      get: (id, caller) => calls.unary(ModelService.method.get, create(GetModelRequestSchema, { id }), factsOf(caller)),
    },
    currentKey: (key) =>
      calls.unary(KeyService.method.getCurrent, create(GetCurrentKeyRequestSchema), {
        key,
        expiresMs: soon(),
        heard: () => undefined,
        // Who asks is told, and says so.
        lost: () => undefined,
      }),
    state: () => channels.state(),
    close: () => channels.close(),
  };
}
