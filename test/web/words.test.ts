import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ConfigurationSection as Section, NamedEntrySchema } from "../../gen/parley/console/v1/configuration_pb.js";
import { AUDIT_ACTIONS } from "../../src/access/audit-log.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { listSettings } from "../../src/config/settings.ts";
import { describeValue, SETTING_GROUPS, settingName } from "../../web/administration/setting-names.ts";
import { ACTION_WORDS } from "../../web/audit/words.ts";
import { summarize } from "../../web/configuration/entry-words.ts";
import { hasWords } from "../../web/format/search.ts";

describe("the audit log", () => {
  it("has a name for each action", () => {
    expect(Object.keys(ACTION_WORDS).toSorted()).toEqual([...AUDIT_ACTIONS].toSorted());
  });
});

describe("settings", () => {
  const keys = listSettings(parseConfig({ file: undefined, text: "", env: {} })).map(({ key }) => key);

  it("all have a name and exactly one group", () => {
    const isIn = (key: string) => (prefix: string) => key === prefix || key.startsWith(`${prefix}.`);
    for (const key of keys) {
      expect(settingName(key)).not.toBe(key);
      expect([key, SETTING_GROUPS.filter(([, prefixes]) => prefixes.some(isIn(key))).length]).toEqual([key, 1]);
    }
  });

  it.each([
    ["http.public_url", "", "Not set"],
    ["database.url", "…", "Set (hidden)"],
    ["sign_up", "closed", "Closed (accounts are created on the command line)"],
    ["timeouts.total_ms", "900000", "15 min"],
    ["ledger.retention_days", "1000", "1,000 days"],
    ["limits.burst_seconds", "60", "1 min of the rate"],
    ["limits.tokens_per_minute", "2000000", "2,000,000"],
    ["limits.monthly_budget_usd", "unlimited", "Unlimited"],
    ["sign_in.password", "true", "On"],
    ["http.listen", "127.0.0.1:8080", "127.0.0.1:8080"],
  ])("are formatted: %s %j as %s", (key, value, words) => {
    expect(describeValue(key, value)).toBe(words);
  });
});

describe("an entry of the configuration", () => {
  it.each([
    [Section.LIMITS, "requests_per_minute", "1200", "1,200"],
    [Section.LIMITS, "monthly_budget_usd", "12.5", "12.5"],
    [Section.LIMITS, "tokens_per_minute", '"unlimited" # for now', "Unlimited"],
    [Section.TIMEOUTS, "idle_ms", "# slow models\n120000", "2 min"],
    [Section.RETRIES, "base_ms", "{ a: b }", "{ a: b }"],
    [Section.ALIASES, "gpt-5", "acme/one", "for acme/one"],
  ])("is summarized: %i %s %j as %s", (section, name, entry, words) => {
    expect(summarize(create(NamedEntrySchema, { section, name, entry }))).toBe(words);
  });
});

describe("a word search", () => {
  it.each([
    ["", true],
    ["  ", true],
    ["ADA lovelace", true],
    ["lovelace ada", true],
    ["ada bob", false],
  ])("for %j matches a name: %s", (query, isFound) => {
    expect(hasWords("Ada Lovelace, ada@example.com", query)).toBe(isFound);
  });
});
