import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { parseConfig } from "../../src/config/parse.ts";
import { fileSchema } from "../../src/config/schema.ts";
import { listSettings } from "../../src/config/settings.ts";

const textOf = (file: object): string => JSON.stringify(file);
const list = (file: object) => {
  const config = parseConfig({ file: "parley.yaml", text: textOf(file), env: {} });
  return Object.fromEntries(listSettings(config).map(({ key, value }) => [key, value]));
};

/** Keys of the file that are no settings of their own, or are shown elsewhere. */
const NOT_LISTED = new Set(["http.allow_public", "grpc.allow_public", "operations.allow_public", "simulator.enabled"]);

/** Paths of all keys with a value, without those of providers and models. */
function keysOf(schema: Record<string, unknown>, path = ""): string[] {
  const properties = schema["properties"] as Record<string, Record<string, unknown>> | undefined;
  if (properties === undefined) return [path];
  return Object.entries(properties).flatMap(([name, inner]) =>
    name === "providers" || name === "models" ? [] : keysOf(inner, path === "" ? name : `${path}.${name}`),
  );
}

describe("the settings in force", () => {
  it("are all keys of the file, but for those of providers and models", () => {
    const keys = keysOf(z.toJSONSchema(fileSchema, { io: "input" }));
    expect(keys.filter((key) => !NOT_LISTED.has(key)).toSorted()).toEqual(Object.keys(list({})).toSorted());
  });

  it("have the form of the configuration file", () => {
    const settings = list({
      http: { listen: "[::1]:9000", public_url: "https://parley.example.com", trusted_proxies: ["10.0.0.0/8", "::1"] },
      limits: { requests_per_minute: "unlimited", monthly_budget_usd: 12.5 },
      ledger: { retention_days: 30, durability: "interval" },
    });
    expect(settings).toMatchObject({
      sign_up: "invited",
      "http.listen": "[::1]:9000",
      "http.public_url": "https://parley.example.com",
      "http.trusted_proxies": "10.0.0.0/8, ::1",
      "limits.requests_per_minute": "unlimited",
      "limits.tokens_per_minute": "2000000",
      "limits.monthly_budget_usd": "12.5",
      "limits.burst_seconds": "60",
      "ledger.retention_days": "30",
      "ledger.durability": "interval",
      "redis.url": "",
      "timeouts.total_ms": "900000",
    });
  });

  it("contain no secret", () => {
    const settings = list({
      database: { url: "postgres://parley:planted-secret@db.internal/parley" },
      redis: {
        url: "redis://:planted-secret@redis.internal:6379,redis2.internal",
        mode: "sentinel",
        sentinel: { master: "rates", password: "planted-secret" },
      },
      sign_in: { oidc: { issuer: "https://id.example", client_id: "parley", client_secret: "planted-secret" } },
      responses: { store_days: 1, encryption_key: "planted+secret/planted+secret/planted+secre=" },
      providers: { alpha: { base_url: "https://planted-secret.example.com", api_keys: ["planted-secret"] } },
    });
    expect(settings).toMatchObject({
      "database.url": "…",
      "redis.url": "…",
      "redis.sentinel.password": "…",
      "responses.encryption_key": "…",
      "sign_in.oidc.client_secret": "…",
      "sign_in.oidc.scopes": "openid, email, profile",
    });
    expect(JSON.stringify(settings)).not.toMatch(/planted.secret/);
    expect(JSON.stringify(settings)).not.toContain("internal");
  });

  it("are all documented", () => {
    const documentation = readFileSync(join(import.meta.dirname, "../../docs/configuration.md"), "utf8");
    const undocumented = Object.keys(list({})).filter((key) => !documentation.includes(`\`${key}\``));
    expect(undocumented).toEqual([]);
  });
});
