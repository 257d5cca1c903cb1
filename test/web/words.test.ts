import { describe, expect, it } from "vitest";
import type { SecurityEventType } from "../../src/access/security-log.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { listSettings } from "../../src/config/settings.ts";
import { EVENT_WORDS } from "../../web/administration/event-words.ts";
import { describeValue, SETTING_GROUPS, settingName } from "../../web/administration/setting-names.ts";
import { hasWords } from "../../web/format/search.ts";

/** All event types. A new type does not compile without an entry here. */
const EVENT_TYPES: Readonly<Record<SecurityEventType, true>> = {
  signed_up: true,
  signed_in: true,
  sign_in_failed: true,
  sign_in_refused: true,
  sign_in_link_created: true,
  identity_linked: true,
  identity_removed: true,
  role_by_groups: true,
  signed_out: true,
  signed_out_elsewhere: true,
  reauthenticated: true,
  reauthentication_failed: true,
  password_changed: true,
  password_reset: true,
  account_created: true,
  account_renamed: true,
  role_changed: true,
  limits_changed: true,
  account_disabled: true,
  account_enabled: true,
  invitation_created: true,
  invitation_accepted: true,
  invitation_revoked: true,
  team_created: true,
  member_added: true,
  member_changed: true,
  member_removed: true,
  key_created: true,
  key_updated: true,
  key_rotated: true,
  key_revoked: true,
  key_transferred: true,
  account_offboarded: true,
  credential_set: true,
  credential_removed: true,
  aliases_changed: true,
  configuration_changed: true,
  provider_credential_set: true,
  provider_credential_removed: true,
  alert_channel_created: true,
  alert_channel_removed: true,
  alert_thresholds_changed: true,
  alert_muted: true,
};

describe("security events", () => {
  it("all have a sentence", () => {
    expect(Object.keys(EVENT_WORDS).toSorted()).toEqual(Object.keys(EVENT_TYPES).toSorted());
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
    ["http.listen", "127.0.0.1:8080", "127.0.0.1:8080"],
  ])("are formatted: %s %j as %s", (key, value, words) => {
    expect(describeValue(key, value)).toBe(words);
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
