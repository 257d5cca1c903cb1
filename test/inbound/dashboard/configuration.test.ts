import { createContextValues, type HandlerContext } from "@connectrpc/connect";
import { expect, it } from "vitest";
import type { AccountRecord } from "../../../src/access/account-store.ts";
import { PERMISSIONS_EVERYWHERE } from "../../../src/access/permissions.ts";
import type { SignedIn } from "../../../src/access/sessions.ts";
import { CALL, type ConsoleCall } from "../../../src/inbound/dashboard/call.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { ConfigurationPorts } from "../../../src/inbound/dashboard/configuration-ports.ts";
import { createConfigurationService } from "../../../src/inbound/dashboard/configuration-service.ts";
import type { OpenCall } from "../../../src/inbound/calls.ts";
import { FakeClock } from "../../support/fake-clock.ts";

type Asked = { readonly keepsCredentials?: boolean };

/** Imports, rolls back and removes a provider with a key of an owner. Returns what was asked of the ports. */
async function changeAll(permissions: readonly (typeof PERMISSIONS_EVERYWHERE)[number][]): Promise<Asked[]> {
  const asked: Asked[] = [];
  const put = async (facts: Asked) => {
    asked.push(facts);
    return { version: undefined, atMs: 0, comment: "", warnings: [], applied: false };
  };
  const service = createConfigurationService(
    {
      change: put,
      replace: put,
      rollBack: put,
    } as Partial<ConfigurationPorts> as ConfigurationPorts,
    systemClock,
  );
  const account = { id: "acct_ada", role: "owner" } as AccountRecord;
  const adminKey = { id: "akey_one", permissions } as SignedIn["adminKey"];
  const signedIn = { account, memberships: [], adminKey } as Partial<SignedIn> as SignedIn;
  const values = createContextValues().set(CALL, { signedIn, network: "" } as Partial<ConsoleCall> as ConsoleCall);
  const context = { values } as HandlerContext;
  const facts = { expectedVersion: 1n, comment: "", validateOnly: false };
  const removal = { section: 1, name: "acme", entry: "", apiKeys: [], removeCredential: false };
  await service.import({ ...facts, document: "" } as Parameters<typeof service.import>[0], context);
  await service.rollBack({ ...facts, version: 1n } as Parameters<typeof service.rollBack>[0], context);
  await service.changeEntries(
    { ...facts, changes: [removal] } as unknown as Parameters<typeof service.changeEntries>[0],
    context,
  );
  return asked;
}

it("a caller without the permission for credentials keeps those of providers that it removes", async () => {
  const keeping = async (permissions: Parameters<typeof changeAll>[0]) =>
    (await changeAll(permissions)).map(({ keepsCredentials }) => keepsCredentials);
  expect(await keeping(["configuration.write"])).toEqual([true, true, true]);
  expect(await keeping(PERMISSIONS_EVERYWHERE)).toEqual([false, false, false]);
});

it("entries and versions are read one at a time, with pauses", async () => {
  const clock = new FakeClock();
  let reads = 0;
  const read = async () => {
    reads += 1;
    clock.advance(100);
    return { entries: [], differences: [], version: 1, latestVersion: 1, document: "" };
  };
  const ports = { entries: read, version: read } as unknown as ConfigurationPorts;
  const service = createConfigurationService(ports, clock);
  const signedIn = { account: { id: "acct_ada" } } as SignedIn;
  const open = { signal: new AbortController().signal } as Partial<OpenCall> as OpenCall;
  const call = { signedIn, open } as Partial<ConsoleCall> as ConsoleCall;
  const context = { values: createContextValues().set(CALL, call) } as HandlerContext;
  const asked = [
    Promise.resolve(service.listEntries({} as Parameters<typeof service.listEntries>[0], context)),
    Promise.resolve(
      service.getVersion({ version: 1n, baseVersion: 0n } as Parameters<typeof service.getVersion>[0], context),
    ),
  ];
  const ended = Promise.allSettled(asked);
  await expect.poll(() => reads).toBe(1);
  await clock.pass(99);
  expect(reads).toBe(1);
  await clock.pass(1);
  expect(reads).toBe(2);
  await ended;
});
