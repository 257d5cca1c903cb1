import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { AccountSchema } from "../../gen/parley/console/v1/account_pb.js";
import { KeySchema, KeyState } from "../../gen/parley/console/v1/key_pb.js";
import { ModelSettingSchema } from "../../gen/parley/console/v1/settings_pb.js";
import { findCommands } from "../../web/palette/commands.ts";

const MANY = {
  places: [
    { path: "/", name: "Overview" },
    { path: "/keys", name: "Keys" },
    { path: "/playground", name: "Playground" },
    { path: "/admin/accounts", name: "Administration" },
  ],
  keys: Array.from({ length: 1_000 }, (_, index) =>
    create(KeySchema, {
      id: `key_${index}`,
      name: `Application ${index}`,
      display: `sk_parley_${index}…`,
      state: KeyState.ACTIVE,
    }),
  ),
  models: Array.from({ length: 2_000 }, (_, index) =>
    create(ModelSettingSchema, { id: `vendor/model-${index}`, embeddings: index === 7 }),
  ),
  accounts: [create(AccountSchema, { id: "acct_1", name: "Ada", email: "ada@example.com" })],
  mayWrite: true,
};

const found = (query: string) =>
  Object.fromEntries(findCommands(MANY, query).map(({ value, items }) => [value, items.map(({ label }) => label)]));

describe("the command palette", () => {
  it("has pages and actions without a query", () => {
    expect(Object.keys(found(" "))).toEqual(["Pages", "Actions"]);
    expect(found("")["Pages"]).toContain("Administration");
  });

  it("finds by any words, and lists few of thousands", () => {
    expect(found("application").Keys).toHaveLength(6);
    expect(found("model vendor").Models).toHaveLength(6);
    expect(found("999 application")).toEqual({ Keys: ["Application 999"] });
    expect(found("example.com ada")).toEqual({ Accounts: ["Ada"] });
    expect(found("nothing like it")).toEqual({});
  });

  it("has what begins with the query first", () => {
    expect(found("k").Pages?.[0]).toBe("Keys");
    expect(found("open playground with vendor/model-1234").Models).toEqual(["Open playground with vendor/model-1234"]);
  });

  it("opens the playground with a model only where it answers", () => {
    expect(found("vendor/model-7").Models).toContain("vendor/model-7");
    expect(found("playground vendor/model-7").Models?.[0]).not.toBe("Open playground with vendor/model-7");
  });

  it("leads to addresses", () => {
    const commands = findCommands(MANY, "sk_parley_12…").flatMap(({ items }) => items);
    expect(commands.map(({ act }) => act)).toEqual([{ to: "/keys/key_12" }]);
  });
});
