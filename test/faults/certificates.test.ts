import { once } from "node:events";
import { rmSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request as requestOnce } from "node:https";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey, revokeKey } from "../../src/access/keys.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../support/certificates.ts";
import { makeHome, type Product, startProduct } from "../support/product.ts";
import { askTls } from "../support/tls-client.ts";

const authority = new CertificateAuthority();
const folder = makeCertificateFolder();
const billing = authority.issue({ names: ["URI:spiffe://example.org/billing"] });
const limited = authority.issue({ names: ["DNS:limited.example.org"] });

const home = makeHome();
let product: Product;
let store: Store;
let ids: readonly string[];
beforeAll(async () => {
  store = await openStore({ dataDir: join(home, "data"), databaseUrl: undefined });
  const context = { store: store.keys, clock: systemClock };
  const made = [
    await createKey(context, { name: "billing" }),
    await createKey(context, {
      name: "limited",
      limits: { ...NO_LIMITS, concurrentRequests: 1, requestsPerMinute: 1 },
    }),
  ];
  ids = made.map(({ record }) => record.id);
  const tls = {
    ...folder.writePair("server", authority.issue({ names: LOCAL_NAMES })),
    client_ca_file: folder.write("ca.pem", authority.cert),
  };
  product = await startProduct({
    home,
    config: {
      http: { listen: "127.0.0.1:0", tls },
      access: {
        certificates: [
          { name: "URI:spiffe://example.org/billing", key: ids[0] },
          { name: "DNS:Limited.example.org", key: ids[1] },
        ],
      },
      limits: { burst_seconds: 1 },
      simulator: { tokens_per_second: 10, first_token_ms: 0 },
    },
  });
});
afterAll(async () => {
  await product.stop();
  await store.close();
  folder.remove();
  rmSync(home, { recursive: true });
});

const chat = (stream: boolean) => ({
  path: "/v1/chat/completions",
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    model: "alpha-haiku-4.5",
    stream,
    max_tokens: stream ? 1_000 : 1,
    messages: [{ role: "user", content: "hi" }],
  }),
});

describe("a certificate that stands for a key", () => {
  it("has the key's limits", async () => {
    const complete = () => askTls(product.httpPort, { authority, pair: limited, ...chat(false) });
    expect(await complete()).toMatchObject({ status: 200 });
    expect(await complete()).toMatchObject({ status: 429, text: expect.stringContaining("per minute") });
  });

  it("serves no longer when the key is revoked, which ends its calls", async () => {
    const { body, ...options } = chat(true);
    const target = { host: "localhost", port: product.httpPort, ca: authority.cert, agent: false as const };
    const request = requestOnce({ ...target, ...billing, ...options });
    request.end(body);
    const [response] = (await once(request, "response")) as [IncomingMessage];
    let text = "";
    response.on("data", (piece) => (text += String(piece)));
    await expect.poll(() => text, { timeout: 10_000 }).toContain("content");
    await revokeKey({ store: store.keys, clock: systemClock }, ids[0]!);
    await once(response, "close");
    expect(text).toContain("This API key is not valid");
    expect(await askTls(product.httpPort, { authority, pair: billing, ...chat(false) })).toMatchObject({
      status: 401,
      text: expect.stringContaining(`stands for the key ${ids[0]}, which is not in use`),
    });
  });
});
