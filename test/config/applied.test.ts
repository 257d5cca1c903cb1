import { describe, expect, it } from "vitest";
import { APPLIED, fieldOf, needsRestart, pendingSettings } from "../../src/config/applied.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { listSettings } from "../../src/config/settings.ts";

const read = (text: string) => parseConfig({ file: "parley.yaml", text, env: {} });

describe("a setting", () => {
  it.each(listSettings(read("{}")).map(({ key }) => key))("%s belongs to a field of the configuration", (key) => {
    expect(APPLIED).toHaveProperty(fieldOf(key));
  });

  it("needs a restart, or is applied by a reload", () => {
    const restarts = ["overload.max_calls", "limits.burst_seconds", "http.listen", "database.read_url", "sign_up"];
    const reloads = ["limits.concurrent_requests", "breaker.failures", "outage.encryption_key_file", "smtp.host"];
    expect(restarts.filter((key) => !needsRestart(key))).toEqual([]);
    expect(reloads.filter(needsRestart)).toEqual([]);
  });

  it("waits for a restart when it has changed and no reload applies it, also a secret", () => {
    const before = read(
      "overload: { max_calls: 100 }\nretries: { base_ms: 10 }\nredis: { url: 'redis://:one@127.0.0.1' }",
    );
    const after = read(
      "overload: { max_calls: 20 }\nretries: { base_ms: 20 }\nredis: { url: 'redis://:two@127.0.0.1' }",
    );
    expect(pendingSettings(before, after)).toEqual([
      { key: "redis.url", value: "…" },
      { key: "overload.max_calls", value: "20" },
    ]);
    expect(pendingSettings(before, before)).toEqual([]);
  });
});
