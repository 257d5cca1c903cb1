import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { tokenVerifierOf } from "../../src/gateway/token-issuers.ts";
import { withLines } from "../../src/telemetry/logger.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../support/certificates.ts";
import { TestIssuer } from "../support/tokens.ts";

const authority = new CertificateAuthority();
const folder = makeCertificateFolder();
const caFile = folder.write("ca.pem", authority.cert);
const issuer = new TestIssuer("https://issuer.example");
afterAll(() => folder.remove());

/** Starts a server of key sets over TLS, and returns its address. */
async function serve(answer: RequestListener): Promise<string> {
  const server = createServer(authority.issue({ names: LOCAL_NAMES }), answer);
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://localhost:${(server.address() as AddressInfo).port}/keys`;
}

type KeySet = { readonly file: string } | { readonly url: string; readonly caFile: string | undefined };

/** Verifies a token with this set of keys; returns the key's ID or the refusal, and what an operator reads. */
async function verify(keySet: KeySet): Promise<{ readonly outcome: string; readonly log: string }> {
  let log = "";
  const lines = { write: (line: string) => void (log += line) };
  const bindings = [{ claims: { sub: "worker" }, key: "key_a" }];
  const configured = { issuer: issuer.issuer, audience: "parley", algorithms: ["ES256"], clockSkewMs: 0, bindings };
  const ports = { clock: systemClock, log: withLines(pino({ level: "info" }, lines), { lines }) };
  const verifier = await tokenVerifierOf([{ ...configured, keySet }], ports);
  const outcome = await verifier!.keyOf(await issuer.sign({ sub: "worker" })).catch((error: Error) => error.message);
  return { outcome, log };
}

describe("the keys of an issuer of tokens", () => {
  it("are read from a file", async () => {
    const file = folder.write("keys.json", await issuer.keySet());
    expect(await verify({ file })).toEqual({ outcome: "key_a", log: "" });
  });

  it("are read from an address, whose certificate is verified", async () => {
    const keySet = await issuer.keySet();
    const url = await serve((_, response) => response.end(keySet));
    expect(await verify({ url, caFile })).toEqual({ outcome: "key_a", log: "" });
    expect(await verify({ url, caFile: undefined })).toMatchObject({
      outcome: expect.stringContaining("cannot be read at the moment"),
      log: expect.stringMatching(/"issuer":"https:\/\/issuer\.example","problem":"https:.*keys: (UNABLE|SELF)/),
    });
  });

  it.each<[string, RequestListener, RegExp]>([
    ["another status", (_, response) => response.writeHead(503).end("{}"), /answers with status 503/],
    ["a redirect", (_, response) => response.writeHead(302, { location: "/other" }).end(), /answers with status 302/],
    ["too much", (_, response) => response.end(Buffer.alloc(2 * 1024 * 1024)), /larger than 1048576 bytes/],
    ["something else", (_, response) => response.end("<html>"), /no JSON Web Key Set/],
    [
      "informational answers without end",
      (_, response) => {
        for (let count = 0; count < 1_000; count++) response.writeProcessing();
        response.end("{}");
      },
      /more than 16 informational answers/,
    ],
    [
      "a part",
      (_, response) => void response.writeHead(200, { "content-length": 9 }).write("{", () => response.destroy()),
      /keys: /,
    ],
  ])("are none when the address answers with %s, and the operator reads why", async (_, answer, problem) => {
    const { outcome, log } = await verify({ url: await serve(answer), caFile });
    expect(outcome).toMatch(/cannot be read at the moment/);
    expect(log).toMatch(problem);
  });

  it("are none without the file, and the operator reads why", async () => {
    const { outcome, log } = await verify({ file: "/nowhere.json" });
    expect(outcome).toMatch(/cannot be read at the moment/);
    expect(log).toMatch(/\/nowhere\.json: ENOENT/);
  });
});
