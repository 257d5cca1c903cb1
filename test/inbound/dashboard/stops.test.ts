import { afterEach, beforeEach, expect, it } from "vitest";
import { StopKind } from "../../../gen/parley/console/v1/stop_pb.js";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";

type Person = Browser & { readonly id: string };

let site: ConsoleUnderTest;
let [ada, bob]: Person[] = [];

beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
  [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
});
afterEach(() => site.close());

const RUN = { kind: StopKind.SESSION, value: "run 7" };

it("a session is stopped by who may change keys of the account, again in place of before, until the stop ends", async () => {
  const { clock, logged } = site.access;
  const { stop: first } = await bob!.stop.create({ ...RUN, duration: { seconds: 60n } });
  const { stop } = await ada!.stop.create({ ...RUN, accountId: bob!.id });
  expect(stop).toMatchObject({ ...RUN, accountId: bob!.id, createdBy: ada!.id });
  expect(Number(stop!.expireTime!.seconds) * 1_000 - clock.now()).toBe(86_400_000);
  expect((await bob!.stop.list({})).stops).toEqual([stop]);
  expect((await ada!.stop.list({ accountId: ada!.id })).stops).toEqual([]);
  await bob!.stop.remove({ id: first!.id });
  expect((await ada!.stop.list({})).stops).toEqual([stop]);
  await bob!.stop.remove({ id: stop!.id });
  expect((await ada!.stop.list({})).stops).toEqual([]);
  const until = new Date(Number(stop!.expireTime!.seconds) * 1_000).toISOString();
  const fields = JSON.stringify({ session: "run 7", until });
  expect(logged.filter(({ action }) => action.includes("stop"))).toMatchObject([
    { action: "calls_stopped", actor: { id: bob!.id } },
    { action: "calls_stopped", actor: { id: ada!.id }, accountId: bob!.id, after: fields },
    { action: "stop_removed", actor: { id: bob!.id }, accountId: bob!.id, before: fields },
  ]);
});

it("an end user is stopped, whose e-mail address is not in the audit log, until the time is over", async () => {
  const ann = { kind: StopKind.END_USER, value: "ann@example.com" };
  await bob!.stop.create({ ...ann, duration: { seconds: 60n } });
  expect(JSON.stringify(site.access.stores.entries())).not.toContain("ann@");
  expect((await bob!.stop.list({})).stops).toMatchObject([ann]);
  site.access.clock.advance(60_000);
  expect((await bob!.stop.list({})).stops).toEqual([]);
});

it.each([
  ["no value", { ...RUN, value: "" }, /value/],
  ["a value with control characters", { ...RUN, value: "a\nb" }, /value/],
  ["a value that is too long", { ...RUN, value: "x".repeat(201) }, /value/],
  ["spaces around a value, which calls do not have", { ...RUN, value: " run 7 " }, /is stored as "run 7"/],
  ["a value of nothing that calls have", { ...RUN, value: "\u202e " }, /value/],
  ["no kind", { value: "x" }, /kind/],
  ["too short a time", { ...RUN, duration: { seconds: 59n } }, /duration/],
  ["too long a time", { ...RUN, duration: { seconds: 400n * 86_400n } }, /duration/],
])("refuses %s", async (_, request, message) => {
  await expect(bob!.stop.create(request)).rejects.toThrow(message);
});

it("refuses the account of somebody else, and more than a hundred stops at once", async () => {
  await expect(bob!.stop.create({ ...RUN, accountId: ada!.id })).rejects.toThrow(/keys\.write/);
  await expect(bob!.stop.list({ accountId: ada!.id })).rejects.toThrow(/keys\.read/);
  await expect(bob!.stop.remove({ id: "x", accountId: ada!.id })).rejects.toThrow(/keys\.write/);
  for (let index = 0; index < 100; index += 1) {
    site.access.clock.advance(2_000);
    await bob!.stop.create({ ...RUN, value: `run ${index}` });
  }
  site.access.clock.advance(2_000);
  await expect(bob!.stop.create({ ...RUN, value: "one more" })).rejects.toThrow(/100 stops/);
  await bob!.stop.create(RUN);
});
