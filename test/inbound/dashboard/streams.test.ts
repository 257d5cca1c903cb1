import { request as sendRequest } from "node:http";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BadRequestSchema, ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { StreamPlaygroundRequestSchema } from "../../../gen/parley/console/v1/playground_pb.js";
import { TeamRole } from "../../../gen/parley/console/v1/team_role_pb.js";
import { systemClock } from "../../../src/core/clock.ts";
import { Failure } from "../../../src/core/failure.ts";
import { PASSWORD } from "../../access/set-up.ts";
import { roomyAdmission } from "../../support/admission.ts";
import { Answers } from "./answers.ts";
import { startEndless } from "./endless.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";

const STREAM = "/parley.console.v1.PlaygroundService/Stream";
const RECHECK_MS = 5_000;

let answers: Answers;
let site: ConsoleUnderTest;
let ada: Browser & { readonly id: string };
let keyId: string;
beforeEach(async () => {
  answers = new Answers();
  site = await startConsole({ stream: answers.stream });
  ada = await site.signedUp("ada");
  keyId = (await ada.key.create({ name: "try" })).key!.id;
});
afterEach(() => site.close());

/** An answer on its way to a browser: the texts it has had, and how it ended. */
interface Reading {
  readonly texts: string[];
  readonly end: Promise<ConnectError | undefined>;
  leave(): void;
}

/** Begins a stream and reads it; resolves when its answer has begun. */
async function begin(browser: Browser = ada, key = keyId): Promise<Reading> {
  const controller = new AbortController();
  const texts: string[] = [];
  const read = async (): Promise<ConnectError | undefined> => {
    try {
      const request = { keyId: key, completion: { model: "words" } };
      for await (const { chunk } of browser.playground.stream(request, { signal: controller.signal })) {
        const content = chunk?.event.case === "partDelta" ? chunk.event.value.content : undefined;
        if (content?.case === "text") texts.push(content.value);
      }
      return undefined;
    } catch (reason) {
      return ConnectError.from(reason);
    }
  };
  const count = answers.calls.length;
  let isOver = false;
  const end = read().finally(() => (isOver = true));
  await expect.poll(() => isOver || answers.calls.length > count).toBe(true);
  return { texts, end, leave: () => controller.abort() };
}

/** The stream holds nothing any more. */
async function expectNothingHeld(): Promise<void> {
  await expect.poll(() => site.calls.active).toBe(0);
  expect(answers.calls.filter(({ isOver }) => !isOver)).toEqual([]);
  expect(site.access.clock.pending).toBe(0);
}

describe("a stream", () => {
  it("has each piece as soon as it is said, and ends with the answer", async () => {
    const reading = await begin();
    for (const text of ["one", "two", "three"]) {
      answers.calls[0]!.say(text);
      await expect.poll(() => reading.texts.at(-1)).toBe(text);
    }
    expect(site.calls.active).toBe(1);
    answers.calls[0]!.end();
    expect(await reading.end).toBeUndefined();
    expect(reading.texts).toEqual(["one", "two", "three"]);
    await expectNothingHeld();
  });

  it("ends its completion when its reader leaves", async () => {
    const reading = await begin();
    reading.leave();
    await expect.poll(() => answers.calls[0]!.call.signal.reason).toMatchObject({ code: "cancelled" });
    await expectNothingHeld();
    expect(site.refusals).toEqual([]);
  });

  it("has a heartbeat while the model says nothing", async () => {
    const completion = { model: "words" };
    const messages = ada.playground.stream({ keyId, completion })[Symbol.asyncIterator]();
    const first = messages.next();
    await expect.poll(() => answers.calls.length).toBe(1);
    await site.access.clock.pass(15_000);
    expect((await first).value?.chunk).toBeUndefined();
    answers.calls[0]!.say("at last");
    expect((await messages.next()).value?.chunk?.event.case).toBe("partDelta");
    answers.calls[0]!.end();
    expect((await messages.next()).done).toBe(true);
    await expectNothingHeld();
  });

  it("ends when its reader reads nothing", async () => {
    const { body, headers } = playgroundRequest();
    const request = sendRequest({ port: site.server.port, host: "127.0.0.1", path: STREAM, method: "POST", headers });
    request.on("error", () => undefined).end(body);
    request.on("response", (response) => response.pause().on("error", () => undefined));
    await expect.poll(() => answers.calls.length).toBe(1);
    // More than the buffers of both ends hold.
    for (let piece = 0; piece < 64; piece += 1) answers.calls[0]!.say("x".repeat(1024 * 1024));
    await expect
      .poll(() => {
        site.access.clock.advance(RECHECK_MS);
        return answers.calls[0]!.call.signal.reason;
      })
      .toMatchObject({ code: "cancelled" });
    await expectNothingHeld();
    request.destroy();
  });

  it("carries a failure with its details, as /v1 does", async () => {
    const failure = new Failure("rate_limited", "Slow down.", { retryAfterMs: 2_000 });
    const own = await startConsole({
      stream: async () => {
        throw failure;
      },
    });
    const bob = await own.signedUp("bob");
    const { key } = await bob.key.create({ name: "k" });
    const error = await endOf(bob.playground.stream({ keyId: key!.id, completion: { model: "words" } }));
    expect(error?.code).toBe(Code.ResourceExhausted);
    expect(error?.rawMessage).toBe("Slow down.");
    const [info] = error!.findDetails(ErrorInfoSchema);
    expect(info).toMatchObject({ reason: "RATE_LIMITED", metadata: { request_id: expect.stringMatching(/^req_/) } });
    // The pipeline has reported it already.
    expect(own.refusals).toEqual([]);
    own.close();
  });

  it("is one of at most eight of its session, and of sixteen of its account", async () => {
    const readings: Reading[] = [];
    const beginEight = async (browser: Browser): Promise<void> => {
      for (let count = 0; count < 8; count += 1) readings.push(await begin(browser));
    };
    const refusal = async (browser: Browser): Promise<string | undefined> =>
      (await (await begin(browser)).end)?.rawMessage;
    await beginEight(ada);
    expect(await refusal(ada)).toContain("This session has reached the maximum of 8 ");
    const [again, third] = [site.browser(), site.browser()];
    for (const browser of [again, third])
      await browser.session.signIn({ email: "ada@example.com", password: PASSWORD });
    await beginEight(again);
    expect(await refusal(third)).toContain("This account has reached the maximum of 16 ");
    const bob = await site.signedUp("bob");
    const { key } = await bob.key.create({ name: "k" });
    const other = await begin(bob, key!.id);
    expect(answers.calls).toHaveLength(17);

    readings[0]!.leave();
    await expect.poll(() => answers.calls.filter(({ isOver }) => isOver).length).toBe(1);
    const next = await begin(third);
    expect(answers.calls).toHaveLength(18);
    for (const reading of [...readings, other, next]) reading.leave();
    await expectNothingHeld();
  });
});

describe("the session of a stream", () => {
  it("ends it by signing out", async () => {
    const reading = await begin();
    answers.calls[0]!.say("before");
    await expect.poll(() => reading.texts).toEqual(["before"]);
    await ada.session.signOut({});
    await site.access.clock.pass(RECHECK_MS);
    const error = await reading.end;
    expect(error?.code).toBe(Code.Unauthenticated);
    expect(error?.findDetails(ErrorInfoSchema)[0]?.reason).toBe("UNAUTHENTICATED");
    // The model has not failed, and no key was missing.
    expect(answers.calls[0]!.call.signal.reason).toMatchObject({ code: "cancelled" });
    await expectNothingHeld();
  });

  it.each([
    ["is disabled", { disabledAtMs: 1 }, Code.Unauthenticated],
    ["has another role", { role: "developer" }, Code.PermissionDenied],
  ] as const)("ends it when the account %s", async (_, changes, code) => {
    const reading = await begin();
    await site.access.store.update(ada.id, changes);
    await site.access.clock.pass(RECHECK_MS);
    expect((await reading.end)?.code).toBe(code);
    await expectNothingHeld();
  });

  it("ends it when the caller leaves the team whose key it uses, and not for other changes of teams", async () => {
    const bob = await site.signedUp("bob");
    const own = (await bob.key.create({ name: "own" })).key!.id;
    const teamId = (await ada.team.create({ name: "Search" })).team!.account!.id;
    const join = (role: TeamRole) => ada.team.setMember({ teamId, email: "bob@example.com", role });
    const ofBob = await begin(bob, own);
    await join(TeamRole.DEVELOPER);
    const ofTeam = await begin(bob, (await bob.key.create({ name: "team's", accountId: teamId })).key!.id);
    await join(TeamRole.MAINTAINER);
    await site.access.clock.pass(RECHECK_MS);
    expect(answers.calls.map(({ isOver }) => isOver)).toEqual([false, false]);
    await ada.team.removeMember({ teamId, accountId: bob.id });
    await site.access.clock.pass(RECHECK_MS);
    expect((await ofTeam.end)?.code).toBe(Code.PermissionDenied);
    expect(answers.calls[0]!.isOver).toBe(false);
    ofBob.leave();
    await expectNothingHeld();
  });

  it("is not kept alive by it", async () => {
    const reading = await begin();
    await site.access.clock.pass(119 * 60_000);
    expect(answers.calls[0]!.isOver).toBe(false);
    await site.access.clock.pass(2 * 60_000);
    expect((await reading.end)?.code).toBe(Code.Unauthenticated);
  });

  it("continues for a minute while it cannot be looked up", async () => {
    const reading = await begin();
    const away = vi.spyOn(site.access.store, "findSession").mockRejectedValue(new Error("the database is away"));
    await site.access.clock.pass(55_000);
    away.mockRestore();
    await site.access.clock.pass(60_000);
    expect(answers.calls[0]!.isOver).toBe(false);
    vi.spyOn(site.access.store, "findSession").mockRejectedValue(new Error("the database is away"));
    await site.access.clock.pass(70_000);
    expect((await reading.end)?.code).toBe(Code.Unavailable);
    await expectNothingHeld();
  });
});

describe("a stream's request", () => {
  const send = (body: Uint8Array, type = "json") =>
    site.send(STREAM, {
      headers: { ...playgroundRequest().headers, "content-type": `application/connect+${type}` },
      body,
    });

  it("may have 16 MiB and no more", async () => {
    const read = (chars: number) => {
      const messages = [{ parts: [{ kind: { case: "text" as const, value: "x".repeat(chars) } }] }];
      return endOf(ada.playground.stream({ keyId, completion: { messages } }));
    };
    const letIn = read(15 * 1024 * 1024);
    await expect.poll(() => answers.calls.length).toBe(1);
    answers.calls[0]!.end();
    expect(await letIn).toBeUndefined();
    expect((await read(16 * 1024 * 1024))?.code).toBe(Code.ResourceExhausted);
    expect(answers.calls).toHaveLength(1);
    await expectNothingHeld();
  });

  it("of the playground takes a slot of the process before it is read", async () => {
    site.close();
    site = await startConsole({ stream: answers.stream, admission: roomyAdmission(systemClock, 2) });
    ada = await site.signedUp("ada");
    keyId = (await ada.key.create({ name: "try" })).key!.id;
    const { headers } = playgroundRequest();
    const arriving = Array.from({ length: 2 }, () => {
      const request = sendRequest({
        port: site.server.port,
        host: "127.0.0.1",
        path: STREAM,
        method: "POST",
        headers: { ...headers, "content-length": 1_000 },
      }).on("error", () => undefined);
      request.write("{");
      return request;
    });
    await expect.poll(() => site.calls.active).toBe(2);
    const refused = async (): Promise<Code | undefined> => (await (await begin()).end)?.code;
    expect(await refused()).toBe(Code.Unavailable);
    for (const request of arriving) request.destroy();
    await expectNothingHeld();
    // The slot is held until the answer ends.
    const readings = [await begin(), await begin()];
    expect(await refused()).toBe(Code.Unavailable);
    for (const reading of readings) reading.leave();
    await expectNothingHeld();
    (await begin()).leave();
  });

  it("that is nested too deep, or has too many fields, is refused before it is decoded", async () => {
    const deep = await send(envelope(Buffer.from(`{"completion":${"[".repeat(1_000_000)}`)));
    expect(deep.text).toContain("nested deeper than 64 levels");
    const many = await send(envelope(Buffer.from(`{"completion":{"messages":[${"{},".repeat(300_000)}{}]}}`)));
    expect(many.text).toContain("more than 100000 keys and values");
    // 300,000 empty messages, two bytes each.
    const length = Buffer.from([0x12, 0xc0, 0xcf, 0x24]);
    const fields = await send(envelope(Buffer.concat([length, Buffer.alloc(600_000, "\x1a\0")])), "proto");
    expect(fields.text).toContain("more than 20000 messages, parts, tool calls, tools and entries of maps together");
    expect(answers.calls).toEqual([]);
    await expectNothingHeld();
  });

  it("names one of the caller's own keys that works now", async () => {
    const bob = await site.signedUp("bob");
    const theirs = (await bob.key.create({ name: "bob's" })).key!.id;
    const revoked = (await ada.key.create({ name: "old" })).key!.id;
    await ada.key.revoke({ id: revoked });
    const short = (await ada.key.create({ name: "short", lifetime: { seconds: 60n } })).key!.id;
    site.access.clock.advance(60_000);
    // Ada is an administrator, who may see and revoke Bob's key, but not spend his money.
    for (const id of [theirs, revoked, short, "key_none", "", "no key at all"]) {
      const error = await (await begin(ada, id)).end;
      expect(error?.code).toBe(Code.InvalidArgument);
      expect(error?.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field).toBe("key_id");
    }
    const [unknown, other] = [await (await begin(bob, "key_none")).end, await (await begin(bob, keyId)).end];
    expect(other?.rawMessage).toBe(unknown?.rawMessage);
    expect(answers.calls).toEqual([]);
    expect(new Set(site.refusals.map(({ entrance }) => entrance))).toEqual(new Set(["console"]));
  });

  it("is asked as the key, with its permissions and limits, over the entrance of the console", async () => {
    const { key } = await ada.key.create({
      name: "narrow",
      models: { ids: ["words"] },
      limits: { requestsPerMinute: 7n },
    });
    const reading = await begin(ada, key!.id);
    const { call, request } = answers.calls[0]!;
    expect(request.model).toBe("words");
    expect(call).toMatchObject({
      entrance: "console",
      requestId: expect.stringMatching(/^req_/),
      completionId: expect.stringMatching(/^chatcmpl-/),
      principal: {
        keyId: key!.id,
        keyName: "narrow",
        accountId: ada.id,
        models: new Set(["words"]),
        capabilities: new Set(["chat", "images", "embeddings"]),
        limits: { requestsPerMinute: 7 },
      },
    });
    reading.leave();
  });
});

describe("a shutdown", () => {
  it("waits for a completion, and lets it say its end", async () => {
    const reading = await begin();
    const drained = site.server.drain();
    answers.calls[0]!.say("still there");
    await expect.poll(() => reading.texts).toEqual(["still there"]);
    answers.calls[0]!.end();
    expect(await reading.end).toBeUndefined();
    await drained;
    await expectNothingHeld();
  });

  it("ends a completion that takes longer than it may", async () => {
    const reading = await begin();
    site.calls.abortAll();
    expect((await reading.end)?.code).toBe(Code.Unavailable);
    await expectNothingHeld();
  });

  it("ends endless streams at once, and waits for none of them", async () => {
    const log = await startEndless();
    const first = log.watch();
    expect((await first.next()).done).toBe(false);
    expect(log.calls.active).toBe(0);
    const ended = first.next().catch((reason: unknown) => ConnectError.from(reason));
    const drained = log.drain();
    expect(await ended).toMatchObject({ code: Code.Unavailable });
    await drained;
    expect(log.open()).toBe(0);
  });

  it("begins no endless streams any more", async () => {
    const log = await startEndless();
    log.stop();
    const late = await log
      .watch()
      .next()
      .catch((reason: unknown) => ConnectError.from(reason));
    expect(late).toMatchObject({ code: Code.Unavailable });
    await log.drain();
    expect(log.open()).toBe(0);
  });
});

async function endOf(stream: AsyncIterable<unknown>): Promise<ConnectError | undefined> {
  try {
    for await (const _ of stream);
    return undefined;
  } catch (reason) {
    return ConnectError.from(reason);
  }
}

function playgroundRequest() {
  const message = create(StreamPlaygroundRequestSchema, { keyId, completion: { model: "words" } });
  const json = toJsonString(StreamPlaygroundRequestSchema, message);
  expect(toBinary(StreamPlaygroundRequestSchema, message).length).toBeLessThan(json.length);
  const headers = { "content-type": "application/connect+json", cookie: ada.cookie() };
  return { headers, body: envelope(Buffer.from(json)) };
}

/** A message as Connect's streams carry it. */
function envelope(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
