import { once } from "node:events";
import { get } from "node:https";
import { connect } from "node:tls";
import { afterAll, expect, it, onTestFinished } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { startOperations } from "../../src/gateway/operations.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import { CertificateAuthority, LOCAL_NAMES, makeCertificateFolder } from "../support/certificates.ts";

const authority = new CertificateAuthority();
const foreign = new CertificateAuthority("foreign");
const folder = makeCertificateFolder();
afterAll(() => folder.remove());

it("the operations port closes a connection that abuses TLS, and does not block loopback", async () => {
  const { cert_file: certFile, key_file: keyFile } = folder.writePair("a", authority.issue({ names: LOCAL_NAMES }));
  const clientCaFile = folder.write("clients.pem", authority.cert);
  const tls = { certFile, keyFile, clientCaFile, clientCertificates: "optional" };
  const config = {
    operations: { tls, listen: { host: "127.0.0.1", port: 0 } },
    http: { trustedProxies: [] },
  } as unknown as Config;
  const warnings: object[] = [];
  const warn = (facts: object): void => void warnings.push(facts);
  const log = { warn, info: () => undefined } as unknown as Logger;
  const server = await startOperations(config, {
    log,
    metrics: { text: async () => "", contentType: "text/plain" },
    readiness: () => ({ ready: true }),
  });
  onTestFinished(() => server.close());
  const to = { port: server.port, host: "127.0.0.1", servername: "localhost", ca: authority.cert };
  const pair = foreign.issue();
  const costly = connect({ ...to, key: pair.key, cert: pair.cert + foreign.cert.repeat(8) });
  costly.on("error", () => undefined).resume();
  await once(costly, "close");
  expect(warnings.at(-1)).toMatchObject({ setting: "operations.tls", reason: "COSTLY_CERTIFICATES" });
  const [response] = (await once(get({ ...to, path: "/healthz", agent: false }), "response")) as [
    { statusCode: number },
  ];
  expect(response.statusCode).toBe(200);
});
