import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";

let site: ConsoleUnderTest;
let ada: Browser;
let bob: Browser;

beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
  [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
});
afterEach(() => site.close());

const namesOf = async (of: Browser) => (await of.request.listSavedFilters({})).filters.map(({ name }) => name);

describe("saved filters", () => {
  it("belong to the account that saved them", async () => {
    await ada.request.saveFilter({ filter: { name: "  Fehler <b> ", query: "outcome=failed&range=24h" } });
    await bob.request.saveFilter({ filter: { name: "mine", query: "" } });
    expect((await ada.request.listSavedFilters({})).filters).toMatchObject([
      { name: "Fehler <b>", query: "outcome=failed&range=24h" },
    ]);
    await bob.request.removeSavedFilter({ name: "Fehler <b>" });
    expect([await namesOf(ada), await namesOf(bob)]).toEqual([["Fehler <b>"], ["mine"]]);
    await ada.request.removeSavedFilter({ name: "Fehler <b>" });
    expect(await namesOf(ada)).toEqual([]);
  });

  it.each([
    [undefined, "filter.name"],
    [{ name: " ", query: "" }, "filter.name"],
    [{ name: "n".repeat(61), query: "" }, "filter.name"],
    [{ name: "a\0b", query: "" }, "filter.name"],
    [{ name: "a", query: "q".repeat(2_001) }, "filter.query"],
    [{ name: "a", query: "model=ä\n" }, "filter.query"],
  ])("cannot be %o", async (filter, field) => {
    const error = await errorOf(ada.request.saveFilter({ ...(filter && { filter }) }));
    expect([error.code, error.message]).toEqual([Code.InvalidArgument, expect.stringContaining(field)]);
  });

  it("cannot be saved beyond their number", async () => {
    const full = { list: async () => [], save: async () => false, remove: async () => undefined };
    const crowded = await startConsole({ signUp: "open", savedFilters: full });
    const eve = await crowded.signedUp("eve");
    const error = await errorOf(eve.request.saveFilter({ filter: { name: "one more", query: "" } }));
    expect([error.code, error.message]).toEqual([Code.ResourceExhausted, expect.stringContaining("Remove one")]);
    crowded.close();
  });
});
