import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, inject, it, onTestFinished } from "vitest";
import { createAuditLog } from "../../src/access/audit-log.ts";
import { createStream, sendStreams } from "../../src/alerts/audit-streams.ts";
import type { ChannelCipher } from "../../src/alerts/channels.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { createDatabase } from "../support/postgres.ts";

it("of the audit log gets each entry once and in order from processes that change and send at the same moment", async () => {
  const databaseUrl = await createDatabase(inject("postgresUrl"));
  const received: number[] = [];
  let isAway = false;
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
    request.on("end", () => {
      if (isAway) return void response.writeHead(503).end();
      const { data } = JSON.parse(body) as { data: { entries: { sequence: number }[] } };
      received.push(...data.entries.map(({ sequence }) => sequence));
      response.end();
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const stores = await Promise.all(Array.from({ length: 3 }, () => openStore({ dataDir: "/nowhere", databaseUrl })));
  onTestFinished(async () => {
    server.close();
    await Promise.all(stores.map((store) => store.close()));
  });
  const actor = { kind: "nobody", id: undefined } as const;
  const cipher: ChannelCipher = {
    seal: (secrets) => JSON.stringify(secrets),
    open: (sealed) => JSON.parse(sealed) as ReturnType<ChannelCipher["open"]>,
  };
  let laterMs = 0;
  const processes = stores.map((store) => ({
    log: createAuditLog({ store: store.audit, clock: systemClock, actor, listener: () => undefined }),
    send: () =>
      sendStreams(
        {
          streams: store.auditStreams,
          audit: store.audit,
          cipher,
          allowsPrivate: () => true,
          nowMs: async () => (await store.nowMs()) + laterMs,
        },
        new AbortController().signal,
      ),
  }));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const context = { streams: stores[0]!.auditStreams, cipher, clock: systemClock, log: processes[0]!.log };
  await createStream({ ...context, addressProblem: () => undefined, sealProblem: () => undefined }, url, {
    actorId: undefined,
    network: undefined,
  });
  for (let round = 0; round < 20; round++) {
    isAway = round % 4 === 1;
    // Beyond the waiting time after a failure.
    laterMs += 400_000;
    await Promise.all(
      processes.flatMap(({ log, send }) => [
        ...Array.from({ length: 5 }, () => log.record({ action: "key_revoked", accountId: "acct_default" })),
        send(),
      ]),
    );
  }
  laterMs += 400_000;
  await Promise.all(processes.map(({ send }) => send()));
  expect(received).toEqual(Array.from({ length: 301 }, (_, index) => index + 1));
});
