import { create } from "@bufbuild/protobuf";
import {
  type CompletionRequest,
  CompletionRequestSchema,
  CompletionService,
  ExplainRequestSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import { EmbeddingService } from "../../../gen/parley/v1/embedding_pb.js";
import { GetCurrentKeyRequestSchema, type Key, KeyService } from "../../../gen/parley/v1/key_pb.js";
import {
  GetModelRequestSchema,
  ListModelsRequestSchema,
  type Model,
  ModelService,
} from "../../../gen/parley/v1/model_pb.js";
import type { Call, Caller } from "../../core/call.ts";
import type { Clock } from "../../core/clock.ts";
import type { Completions } from "../../core/completions.ts";
import { type Embedder, vectorBytes } from "../../core/embeddings.ts";
import { Failure } from "../../core/failure.ts";
import { MAX_PAGE } from "../../core/model-page.ts";
import type { Models } from "../../core/models.ts";
import type { Principal } from "../../core/principal.ts";
import { MAX_INT32 } from "../../core/validate.ts";
import type { LastLimits } from "../headers.ts";
import { ImageJoiner } from "../image-pieces.ts";
import { type CallFacts, CoreCalls } from "./core-calls.ts";
import { CoreChannels, type CoreState, type CoreTls } from "./core-channels.ts";

/** Time limit of calls without a provider. */
const QUESTION_MS = 10_000;

export interface RemoteCoreOptions {
  /** As `coreTarget` makes it. */
  readonly target: string;
  /** Default: plain TCP. */
  readonly tls?: CoreTls | undefined;
  /** Time that a call waits for a core, such as during its restart. Default: 5 seconds. */
  readonly waitMs?: number;
  readonly clock: Clock;
  /** The header by which the core authenticates the caller, too. */
  readonly authorizationOf: (principal: Principal) => string;
  /** Receives the limits that cores report. */
  readonly limits: LastLimits;
  /**
   * Called for a call that failed without an answer of a core, because none was reachable: no other process has recorded it.
   * Requests without a signal are not calls and are left to the caller of this function.
   */
  readonly lost: (failure: Failure, requestId: string) => void;
}

/** A core in another process, called over gRPC, with the behaviour and failures of a local core. */
export interface RemoteCore {
  readonly completions: Completions;
  readonly embedder: Embedder;
  readonly models: Models;
  /**
   * Authenticates a caller by its header. Returns the failure with which a core has answered, such as `unauthenticated`; throws one when
   * none has.
   */
  currentKey(authorization: string): Promise<Key | Failure>;
  state(): CoreState;
  /** Closes all connections with their calls. */
  close(): void;
}

/** Connects to the cores behind a target. Returns at once; calls wait for a core up to the time limit. */
export function connectCore({
  target,
  tls,
  waitMs = 5_000,
  clock,
  authorizationOf,
  limits,
  lost,
}: RemoteCoreOptions): RemoteCore {
  const channels = new CoreChannels(target, tls);
  const calls = new CoreCalls(channels, { clock, waitMs, use: "calls" });
  const questions = new CoreCalls(channels, { clock, waitMs, use: "keys" });
  const soon = (): number => clock.monotonic() + QUESTION_MS;
  const factsOf = (caller: Caller | Call): CallFacts => ({
    authorization: authorizationOf(caller.principal),
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
          trace: caller.trace?.context,
          attribution: caller.attribution,
          // The core finds them itself in what it reads.
          unrecognized: caller.inFormat === undefined ? caller.unrecognized : undefined,
          lost: (failure) => lost(failure, caller.requestId),
        }
      : { expiresMs: soon(), lost: () => undefined }),
  });
  return {
    completions: {
      create: (request, call) => {
        const sent = toSent(request, call);
        // This process receives responses of any size.
        const maxResponseBytes = request.maxResponseBytes ?? MAX_INT32;
        return calls.unary(CompletionService.method.create, { ...sent, maxResponseBytes }, factsOf(call));
      },
      async stream(request, call, emit) {
        const images = new ImageJoiner();
        for await (const batch of calls.stream(CompletionService.method.stream, toSent(request, call), factsOf(call))) {
          const chunks = images.join(batch);
          if (chunks.length > 0) await emit(chunks);
        }
      },
      count: (request, call) => calls.unary(CompletionService.method.count, toSent(request, call), factsOf(call)),
      explain: (completion, call, mode) =>
        calls.unary(
          CompletionService.method.explain,
          create(ExplainRequestSchema, { completion: toSent(completion, call), stream: mode === "stream" }),
          factsOf(call),
        ),
    },
    embedder: {
      async create(request, call) {
        // Here, too: the core's own hold ends when this process has read the answer, of which the caller may read nothing.
        call.share?.holdAnswer(vectorBytes(request.inputs.length, request.dimensions));
        const answer = await calls.unary(EmbeddingService.method.create, request, factsOf(call));
        // A model may ignore the length that was asked for.
        call.share?.answered(answer.embeddings.reduce((bytes, { values }) => bytes + vectorBytes(1, values.length), 0));
        return answer;
      },
    },
    models: {
      async list(caller) {
        const found: Model[] = [];
        // Each page counts as a request.
        const request = create(ListModelsRequestSchema, { pageSize: MAX_PAGE });
        do {
          const page = await calls.unary(ModelService.method.list, request, factsOf(caller));
          found.push(...page.models);
          request.pageToken = page.nextPageToken;
        } while (request.pageToken !== "");
        return found;
      },
      page: (request, caller) => calls.unary(ModelService.method.list, request, factsOf(caller)),
      get: (id, caller) => calls.unary(ModelService.method.get, create(GetModelRequestSchema, { id }), factsOf(caller)),
    },
    async currentKey(authorization) {
      let isLost = false;
      try {
        return await questions.unary(KeyService.method.getCurrent, create(GetCurrentKeyRequestSchema), {
          authorization,
          expiresMs: soon(),
          heard: () => undefined,
          // Reported to the caller of this function, which records it.
          lost: () => (isLost = true),
        });
      } catch (reason) {
        if (isLost || !(reason instanceof Failure)) throw reason;
        return reason;
      }
    },
    state: () => channels.state(),
    close: () => channels.close(),
  };
}

/** Returns the request for a core: as its caller wrote it, where that is of a provider's dialect. */
function toSent(request: CompletionRequest, { inFormat }: Call): CompletionRequest {
  if (inFormat === undefined) return request;
  const { requiredLabels } = request;
  return create(CompletionRequestSchema, { inFormat, ...(requiredLabels !== undefined && { requiredLabels }) });
}
