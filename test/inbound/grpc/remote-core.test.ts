import { once } from "node:events";
import { constants, createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "vitest";
import {
  type Completion,
  type CompletionChunk,
  CompletionChunkSchema,
  CompletionRequestSchema,
  CompletionSchema,
  CompletionStartSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import { ListModelsRequestSchema, ListModelsResponseSchema } from "../../../gen/parley/v1/model_pb.js";
import { LabelRequirementsSchema } from "../../../gen/parley/v1/label_pb.js";
import { RoutePlanSchema } from "../../../gen/parley/v1/route_pb.js";
import { EmbeddingRequestSchema, EmbeddingsSchema } from "../../../gen/parley/v1/embedding_pb.js";
import { MAX_NAME_CHARS, MAX_TAG_CHARS, MAX_TAGS } from "../../../src/core/attribution.ts";
import type { Call, CallerShare } from "../../../src/core/call.ts";
import { deltaChunk } from "../../../src/core/chunks.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { Failure } from "../../../src/core/failure.ts";
import type { LimitFacts } from "../../../src/core/limiter.ts";
import type { Emit } from "../../../src/core/provider.ts";
import { Calls } from "../../../src/inbound/calls.ts";
import { MAX_SHOWN_CHARS } from "../../../src/inbound/grpc/core-calls.ts";
import { coreTarget } from "../../../src/inbound/grpc/core-target.ts";
import { connectCore, type RemoteCore } from "../../../src/inbound/grpc/remote-core.ts";
import { type GrpcServer, startGrpcServer } from "../../../src/inbound/grpc/server.ts";
import { LOOK_MS } from "../../../src/inbound/http2/guarded-connection.ts";
import { LastLimits } from "../../../src/inbound/headers.ts";
import type { EdgeServices, Refusal } from "../../../src/inbound/services.ts";
import { anyConnections, roomyAdmission } from "../../support/admission.ts";
import { batchesOf } from "../../support/batches.ts";
import { callOf, FACTS, somebody } from "../../support/core-ports.ts";
import { toInputs } from "../../support/embedding-inputs.ts";

const undo: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
});

const KEY = "sk_parley_somebodys";
const REQUEST = create(CompletionRequestSchema, { model: "alpha" });
const MIB = 1024 * 1024;
/**
 * Callers that leave right after they came, which together are more than a core takes of one connection at once, and more resets
 * than Node allows one by default: 1,000 at once.
 */
const [ROUNDS, LEAVING] = [3, 500];

/** Calls that are made at once with long headers: those of a round are more than a core takes of strangers on one connection. */
const NAMED = 200;
/** Until a core has looked at its connections again. */
const waitForChecks = (): Promise<void> => delay(3 * LOOK_MS);

/** Large answers that come at once. */
const LARGE_ANSWERS = 4;

type Answers = Partial<EdgeServices["completions"]> & {
  readonly embed?: EdgeServices["embedder"]["create"];
  readonly page?: EdgeServices["models"]["page"];
};

/** A core whose completions are scripted, listening. Notes the calls and the credentials that reach it. */
async function openCore(answers: Answers, port = 0) {
  const seen: Call[] = [];
  const credentials: (string | undefined)[] = [];
  const refusals: Refusal[] = [];
  const calls = new Calls(systemClock);
  const unscripted = (): never => {
    throw new Error("not scripted");
  };
  const noted = <A extends unknown[], R>(run: (...args: A) => R) => {
    return (...args: A): R => {
      const call = args[1] as Call;
      seen.push(call);
      call.admitted(FACTS);
      return run(...args);
    };
  };
  const services: EdgeServices = {
    completions: {
      create: noted(answers.create ?? unscripted),
      stream: noted(answers.stream ?? unscripted),
      count: noted(answers.count ?? unscripted),
      explain: noted(answers.explain ?? unscripted),
    },
    embedder: { create: noted(answers.embed ?? unscripted) },
    models: {
      list: async () => [],
      page: noted(answers.page ?? unscripted),
      get: async () => {
        throw new Failure("rate_limited", "Too many.", { limits: FACTS, retryAfterMs: 2000 });
      },
    },
    authenticate: async ({ authorization }) => {
      credentials.push(authorization);
      if (authorization !== `Bearer ${KEY}`) throw new Failure("unauthenticated", "Who?");
      return somebody;
    },
    requireRequestRate: () => undefined,
    limitsOf: () => FACTS,
    calls,
    admission: roomyAdmission(systemClock),
    connections: anyConnections(),
    clock: systemClock,
    refused: (refusal) => void refusals.push(refusal),
  };
  const options = { maxReceiveBytes: 32 * MIB, maxSendBytes: 64 * MIB, maxConnectionAgeMs: 3_600_000 };
  const server = await startGrpcServer(services, { host: "127.0.0.1", port, ...options });
  undo.push(() => server.close());
  return { server, seen, credentials, refusals, calls };
}

/** A front's connection to cores, and what it is told besides answers. */
function openRemote(servers: readonly Pick<GrpcServer, "port">[], waitMs = 1000) {
  const lost: string[] = [];
  const told: LimitFacts[] = [];
  const limits = new LastLimits();
  const remote = connectCore({
    target: coreTarget(servers.map(({ port }) => `127.0.0.1:${port}`).join(",")),
    waitMs,
    clock: systemClock,
    authorizationOf: () => `Bearer ${KEY}`,
    limits,
    lost: (failure, requestId) => lost.push(`${requestId} ${failure.code}`),
  });
  undo.push(() => remote.close());
  const controller = new AbortController();
  const call = (facts: Partial<Call> = {}): Call =>
    callOf({
      signal: controller.signal,
      arrivedMs: systemClock.monotonic(),
      requestId: "req_front",
      admitted: (fact) => void told.push(fact),
      ...facts,
    });
  const leave = (): void => controller.abort(new Failure("cancelled", "gone"));
  const stream = (facts: Partial<Call> = {}): AsyncGenerator<readonly CompletionChunk[]> =>
    batchesOf((emit) => remote.completions.stream(REQUEST, call(facts), emit), leave);
  return { remote, lost, told, limits, controller, call, leave, stream };
}

function whole(id: string): Completion {
  return create(CompletionSchema, { id, model: "alpha" });
}

const text = (value: string): CompletionChunk => deltaChunk({ choiceIndex: 0, partIndex: 0 }, { case: "text", value });

function textOf(batch: readonly CompletionChunk[]): string[] {
  return batch.flatMap(({ event }) =>
    event.case === "partDelta" && event.value.content.case === "text" ? event.value.content.value : [],
  );
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "none",
    (reason: unknown) => (reason instanceof Failure ? reason.code : String(reason)),
  );
}

async function readAll(stream: AsyncIterable<readonly CompletionChunk[]>): Promise<string[]> {
  const texts: string[] = [];
  for await (const batch of stream) texts.push(...textOf(batch));
  return texts;
}

/** A stream that says one word and then nothing until its caller leaves. */
async function saysOneWord(_: unknown, { signal }: Call, emit: Emit): Promise<void> {
  const start = create(CompletionStartSchema, { id: "chatcmpl-1", model: "alpha" });
  await emit([create(CompletionChunkSchema, { event: { case: "start", value: start } }), text("Once")]);
  await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Failure)));
}

describe("a call of a remote core", () => {
  it("takes the caller's key, its request ID and what is left of its deadline along", async () => {
    const core = await openCore({ create: async () => whole("c1") });
    const { remote, call } = openRemote([core.server]);
    const expiresMs = systemClock.monotonic() + 30_000;
    expect(await remote.completions.create(REQUEST, call({ expiresMs }))).toMatchObject({ id: "c1" });
    expect(new Set(core.credentials)).toEqual(new Set([`Bearer ${KEY}`]));
    expect(core.seen[0]).toMatchObject({ requestId: "req_front", entrance: "grpc" });
    expect(Math.abs(core.seen[0]!.expiresMs! - expiresMs)).toBeLessThan(5_000);
  });

  it("makes embeddings with the same facts of the call", async () => {
    const answer = create(EmbeddingsSchema, { id: "embd-1", model: "e", embeddings: [{ values: [0.5, -2] }] });
    const core = await openCore({ embed: async () => answer });
    const { remote, call, told } = openRemote([core.server]);
    const request = create(EmbeddingRequestSchema, { model: "e", inputs: toInputs(["a"]), strict: true });
    const expiresMs = systemClock.monotonic() + 30_000;
    expect(await remote.embedder.create(request, call({ expiresMs, unrecognized: ["9"] }))).toMatchObject({
      id: "embd-1",
      embeddings: [{ values: [0.5, -2] }],
    });
    expect(new Set(core.credentials)).toEqual(new Set([`Bearer ${KEY}`]));
    expect(core.seen[0]).toMatchObject({ requestId: "req_front", unrecognized: ["9"] });
    expect(told).toEqual([FACTS]);
  });

  it("counts the vectors of embeddings as the caller's, before and after they are there", async () => {
    const embeddings = [{ values: Array.from({ length: 1_000 }, () => 0.5) }];
    const core = await openCore({ embed: async () => create(EmbeddingsSchema, { model: "e", embeddings }) });
    const { remote, call } = openRemote([core.server]);
    const counted: string[] = [];
    const share: CallerShare = {
      holdAnswer: (bytes) => counted.push(`${bytes} of ${core.seen.length}`),
      answered: (bytes) => counted.push(`${bytes} after ${core.seen.length}`),
      openAnswer: () => undefined,
      keepAnswers: () => undefined,
      work: (run) => run(),
      workInTurn: async (run) => run(),
    };
    const request = create(EmbeddingRequestSchema, { model: "e", inputs: toInputs(["a"]) });
    await remote.embedder.create({ ...request, dimensions: 10 }, call({ share }));
    await remote.embedder.create(request, call({ share }));
    expect(counted).toEqual(["80 of 0", "8000 after 1", "24576 of 1", "8000 after 2"]);
  });

  it("reports the failures of embeddings as those of completions", async () => {
    const failure = new Failure("invalid_request", "inputs: no.", {
      violations: [{ field: "inputs", description: "no" }],
    });
    const core = await openCore({ embed: async () => Promise.reject(failure) });
    const { remote, call } = openRemote([core.server]);
    const asked = remote.embedder.create(create(EmbeddingRequestSchema, { model: "e" }), call());
    await expect(asked).rejects.toMatchObject({ code: "invalid_request", param: "inputs" });
  });

  it("takes a request to be explained along, with its mode", async () => {
    const asked: unknown[] = [];
    const core = await openCore({
      async explain(request, _, mode) {
        asked.push(request.requiredLabels?.regions, mode);
        return create(RoutePlanSchema, { model: request.model });
      },
    });
    const { remote, call } = openRemote([core.server]);
    const request = { ...REQUEST, requiredLabels: create(LabelRequirementsSchema, { regions: ["eu"] }) };
    expect((await remote.completions.explain(request, call(), "stream")).model).toBe(REQUEST.model);
    expect(asked).toEqual([["eu"], "stream"]);
  });

  it.each([[undefined], [0], [1]])("takes the count of gateways along (%j)", async (hops) => {
    const core = await openCore({ create: async () => whole("c1") });
    const { remote, call } = openRemote([core.server]);
    await remote.completions.create(REQUEST, call({ hops }));
    expect(core.seen[0]).toMatchObject({ hops: hops ?? 0 });
  });

  it("tells the caller's limits before there is any answer", async () => {
    const core = await openCore({ stream: saysOneWord });
    const { stream, told, limits } = openRemote([core.server]);
    const batches = stream();
    await batches.next();
    expect(told).toEqual([FACTS]);
    expect(limits.peek(somebody)).toEqual(FACTS);
    await batches.return(undefined);
  });

  it("tells them with a refusal too", async () => {
    const core = await openCore({});
    const { remote, call, told } = openRemote([core.server]);
    const refused = remote.models.get("alpha", call());
    await expect(refused).rejects.toMatchObject({ code: "rate_limited", limits: FACTS, retryAfterMs: 2000 });
    expect(told).toEqual([FACTS]);
  });

  it("lists 1,000 models with a request, or as many as its caller asks for", async () => {
    const sizes: number[] = [];
    const core = await openCore({
      async page({ pageSize, pageToken }) {
        sizes.push(pageSize);
        const [id, nextPageToken] = pageToken === "" ? ["first", "second"] : [pageToken, ""];
        return create(ListModelsResponseSchema, { models: [{ id }], nextPageToken });
      },
    });
    const { remote, call } = openRemote([core.server]);
    expect((await remote.models.list(call())).map(({ id }) => id)).toEqual(["first", "second"]);
    await remote.models.page(create(ListModelsRequestSchema, { pageSize: 7 }), call());
    expect(sizes).toEqual([1_000, 1_000, 7]);
  });

  it("hands over together what came together", async () => {
    const pieces = Array.from({ length: 10 }, (_, index) => text(String(index)));
    const core = await openCore({
      async stream(_request, _call, emit) {
        await emit(pieces);
      },
    });
    const { stream } = openRemote([core.server]);
    const sizes: number[] = [];
    for await (const batch of stream()) sizes.push(batch.length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(10);
    expect(sizes.length).toBeLessThan(10);
  });

  it("does not wait for others, however many are under way", async () => {
    const { promise, resolve } = Promise.withResolvers<Completion>();
    const core = await openCore({ create: () => promise });
    // Further connections take their time on a busy machine.
    const waitMs = 30_000;
    const { remote, call } = openRemote([core.server], waitMs);
    // More than one connection takes.
    const answers = Array.from({ length: 1_200 }, () => remote.completions.create(REQUEST, call()));
    await expect.poll(() => core.seen.length, { timeout: waitMs }).toBe(1_200);
    resolve(whole("c1"));
    expect(new Set((await Promise.all(answers)).map(({ id }) => id))).toEqual(new Set(["c1"]));
  });

  it("carries messages of 40 MiB back", async () => {
    const large = "x".repeat(40 * MIB);
    const core = await openCore({
      async stream(_request, _call, emit) {
        await emit([text(large), text("!")]);
      },
    });
    const { stream } = openRemote([core.server]);
    const texts = await readAll(stream());
    expect(texts.map((each) => each.length)).toEqual([large.length, 1]);
  });

  it("does not wait for large answers of others, nor fails by them", async () => {
    const large = Promise.withResolvers<Completion>();
    let asked = 0;
    const core = await openCore({
      async create(request) {
        if (request.model !== "large") return whole("small");
        asked += 1;
        return large.promise;
      },
    });
    const { remote, call, lost } = openRemote([core.server]);
    const request = { ...REQUEST, model: "large" };
    // More together than a connection of Node's HTTP/2 holds by default, or with the 64 MB of earlier versions.
    let arrived = 0;
    const answers = Array.from({ length: LARGE_ANSWERS }, async () => {
      const answer = await remote.completions.create(request, call());
      arrived += 1;
      return answer;
    });
    await expect.poll(() => asked).toBe(LARGE_ANSWERS);
    large.resolve(whole("x".repeat(25 * MIB)));
    const first = codeOf(remote.completions.create(REQUEST, call())).then((code) => ({ code, arrived }));
    // More than the refused streams after which Node closes a connection.
    const others: Promise<string>[] = [];
    for (let sent = 0; sent < 150; sent += 1) {
      others.push(codeOf(remote.completions.create(REQUEST, call())));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await first).toEqual({ code: "none", arrived: 0 });
    expect(new Set(await Promise.all(others))).toEqual(new Set(["none"]));
    expect((await Promise.all(answers)).map(({ id }) => id.length)).toEqual(answers.map(() => 25 * MIB));
    expect(lost).toEqual([]);
  });

  it("says that a request is too large when it is for the core", async () => {
    const core = await openCore({ create: async () => whole("c1") });
    const { remote, call } = openRemote([core.server]);
    const request = create(CompletionRequestSchema, { model: "x".repeat(33 * MIB) });
    expect(await codeOf(remote.completions.create(request, call()))).toBe("request_too_large");
  });

  it("does not let a caller who reads nothing hold up the others", async () => {
    const core = await openCore({
      async stream(_request, _call, emit) {
        for (let piece = 0; piece < 2_000; piece += 1) await emit([text("x".repeat(16 * 1024))]);
      },
    });
    const { stream } = openRemote([core.server]);
    const idle = Array.from({ length: 8 }, () => stream());
    for (const batches of idle) await batches.next();
    expect(await readAll(stream())).toHaveLength(2_000);
    for (const batches of idle) await batches.return(undefined);
  });
});

describe("a caller who leaves", () => {
  it("ends the core's call", async () => {
    const core = await openCore({ stream: saysOneWord });
    const { stream, leave } = openRemote([core.server]);
    await stream().next();
    leave();
    await expect.poll(() => core.seen[0]!.signal.aborted).toBe(true);
    expect(core.seen[0]!.signal.reason).toMatchObject({ code: "cancelled" });
    await expect.poll(() => core.calls.active).toBe(0);
  });

  it("is answered with the reason for which its call was ended", async () => {
    const core = await openCore({ create: () => new Promise(() => undefined) });
    const { remote, call, controller } = openRemote([core.server]);
    const answer = codeOf(remote.completions.create(REQUEST, call()));
    await expect.poll(() => core.seen.length).toBe(1);
    controller.abort(new Failure("overloaded", "The gateway is shutting down."));
    expect(await answer).toBe("overloaded");
    await expect.poll(() => core.seen[0]!.signal.aborted).toBe(true);
  });

  it("does not end the calls of others, however often one leaves at once", async () => {
    const core = await openCore({ stream: saysOneWord });
    const other = openRemote([core.server]);
    const batches = other.stream();
    await batches.next();
    for (let round = 1; round <= ROUNDS; round++) {
      const leaving = Array.from({ length: LEAVING }, () => new AbortController());
      const left = leaving.map(({ signal }) =>
        codeOf(other.remote.completions.stream(REQUEST, other.call({ signal }), () => undefined)),
      );
      await expect.poll(() => core.seen.length).toBe(1 + round * LEAVING);
      for (const controller of leaving) controller.abort(new Failure("cancelled", "gone"));
      expect(new Set(await Promise.all(left))).toEqual(new Set(["cancelled"]));
      await expect.poll(() => core.calls.active).toBe(1);
    }
    expect(core.seen[0]!.signal.aborted).toBe(false);
    await batches.return(undefined);
  });

  it("does not end the calls of others, however long the names are that it says", async () => {
    const core = await openCore({ stream: saysOneWord, create: async () => whole("c1") });
    const { remote, call, stream } = openRemote([core.server]);
    const batches = stream();
    await batches.next();
    const tags = Array.from({ length: MAX_TAGS }, (_, index) => `${index} ${"語".repeat(MAX_TAG_CHARS - 3)}`);
    const attribution = { session: "話".repeat(MAX_NAME_CHARS), endUser: "ann", tags };
    const callByNames = () => codeOf(remote.completions.create(REQUEST, call({ attribution })));
    for (let round = 0; round < ROUNDS; round++)
      expect(new Set(await Promise.all(Array.from({ length: NAMED }, callByNames)))).toEqual(new Set(["none"]));
    const { session, endUser, tags: arrived = [] } = core.seen[1]!.attribution!;
    expect({ session, endUser }).toEqual({ session: attribution.session, endUser: "ann" });
    expect(arrived).toEqual(tags.slice(0, arrived.length));
    expect(arrived.length).toBeGreaterThan(2);
    await waitForChecks();
    expect(core.seen[0]!.signal.aborted).toBe(false);
    await batches.return(undefined);
  });

  it("is not ended by the credentials of strangers, however long and many", async () => {
    const core = await openCore({ stream: saysOneWord });
    const { remote, stream } = openRemote([core.server]);
    const batches = stream();
    await batches.next();
    const header = (index: number): string => `Bearer ey.${index}${"x".repeat(MAX_SHOWN_CHARS - 20)}`;
    for (let round = 0; round < ROUNDS; round++)
      await Promise.all(Array.from({ length: NAMED }, (_, index) => codeOf(remote.currentKey(header(index)))));
    await waitForChecks();
    expect(core.seen[0]!.signal.aborted).toBe(false);
    await batches.return(undefined);
  });

  it("by its deadline is known to have kept it", async () => {
    const core = await openCore({ stream: saysOneWord });
    const { stream } = openRemote([core.server]);
    const expiresMs = systemClock.monotonic() + 200;
    expect(await codeOf(readAll(stream({ expiresMs })))).toBe("deadline_exceeded");
    await expect.poll(() => core.seen[0]!.signal.reason).toMatchObject({ code: "deadline_exceeded" });
  });
});

describe("a core that is not there", () => {
  it("is waited for a while, and then the service is overloaded", async () => {
    const { remote, call, lost } = openRemote([{ port: 1 }]);
    expect(await codeOf(remote.completions.create(REQUEST, call()))).toBe("overloaded");
    expect(lost).toEqual(["req_front overloaded"]);
    expect(remote.state()).not.toBe("reachable");
  });

  it("is found when it comes back", async () => {
    const first = await openCore({ create: async () => whole("first") });
    const { remote, call } = openRemote([first.server]);
    expect(await remote.completions.create(REQUEST, call())).toMatchObject({ id: "first" });
    first.server.close();
    await expect.poll(() => remote.state()).not.toBe("reachable");
    const answer = remote.completions.create(REQUEST, call());
    await openCore({ create: async () => whole("second") }, first.server.port);
    expect(await answer).toMatchObject({ id: "second" });
  });

  it("ends a stream that it goes away from with an error", async () => {
    const core = await openCore({ stream: saysOneWord });
    const { stream, lost } = openRemote([core.server]);
    const batches = stream();
    expect(textOf((await batches.next()).value as CompletionChunk[])).toEqual(["Once"]);
    core.server.close();
    await expect(batches.next()).rejects.toMatchObject({ code: "overloaded", message: /middle of the answer/ });
    expect(lost).toEqual(["req_front overloaded"]);
  });
});

describe("a core that ends what all callers share", () => {
  it.each<[string, (stream: ServerHttp2Stream) => void]>([
    ["refuses further streams", (stream) => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM)],
    ["resets one", (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR)],
    ["ends the connection", ({ session }) => session!.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)],
  ])("is overloaded when it %s: no caller is told that its own request was wrong", async (_, end) => {
    const core = createHttp2Server().on("stream", (stream) => end(stream.on("error", () => undefined)));
    core.listen(0, "127.0.0.1");
    undo.push(() => void core.close());
    await once(core, "listening");
    const { remote, call, lost } = openRemote([core.address() as AddressInfo]);
    expect(await codeOf(remote.completions.create(REQUEST, call()))).toBe("overloaded");
    expect(lost).toEqual(["req_front overloaded"]);
  });
});

describe("several cores", () => {
  async function openCores(): Promise<{ first: Core; second: Core; remote: RemoteCore; call: () => Call }> {
    const first = await openCore({ create: async () => whole("first") });
    const second = await openCore({ create: async () => whole("second") });
    return { first, second, ...openRemote([first.server, second.server]) };
  }
  type Core = Awaited<ReturnType<typeof openCore>>;

  it("share the calls", async () => {
    const { first, second, remote, call } = await openCores();
    // The other connection may still be on its way.
    await expect
      .poll(async () => {
        await remote.completions.create(REQUEST, call());
        return Math.min(first.seen.length, second.seen.length);
      })
      .toBeGreaterThan(5);
  });

  it("lose no call while one of them drains", async () => {
    const { first, second, remote, call } = await openCores();
    await expect.poll(async () => (await remote.completions.create(REQUEST, call())).id).toBe("second");
    const answers: Promise<string>[] = [];
    const drained = first.server.drain();
    for (let sent = 0; sent < 200; sent += 1) {
      answers.push(codeOf(remote.completions.create(REQUEST, call())));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(new Set(await Promise.all(answers))).toEqual(new Set(["none"]));
    await drained;
    expect(second.seen.length).toBeGreaterThan(100);
  });
});

describe("the key of a call", () => {
  it("is what its core says of it", async () => {
    const core = await openCore({});
    const { remote } = openRemote([core.server]);
    expect(await remote.currentKey(`Bearer ${KEY}`)).toMatchObject({
      id: somebody.keyId,
      accountId: somebody.accountId,
    });
    expect(await remote.currentKey("Bearer sk_parley_anothers")).toMatchObject({ code: "unauthenticated" });
    expect(core.refusals).toMatchObject([{ target: "/parley.v1.KeyService/GetCurrent" }]);
  });
});
