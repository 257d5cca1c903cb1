import { expect, it } from "vitest";
import { OidcRefusal } from "../../src/access/oidc/refusal.ts";
import type { Config } from "../../src/config/config.ts";
import { oidcOf } from "../../src/gateway/oidc.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import { FakeClock } from "../support/fake-clock.ts";

it("refused sign-ins take at most 100 lines of the log in a second, and the next second has the count", () => {
  const clock = new FakeClock();
  const lines: object[] = [];
  const add = (fields: object): void => void lines.push(fields);
  const signIn = { oidc: { issuer: "https://id.example.com", roles: {} } } as unknown as Config["signIn"];
  const { refused } = oidcOf(signIn, clock, { warn: add, info: add } as unknown as Logger)!;
  for (let count = 0; count < 150; count++) refused(new OidcRefusal("expired"));
  expect(lines).toHaveLength(100);
  clock.advance(1000);
  refused(new OidcRefusal("expired"));
  expect(lines.slice(100)).toMatchObject([{ lines: 50 }, { reason: "expired" }]);
});
