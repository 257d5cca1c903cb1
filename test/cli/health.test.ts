import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { captureCli } from "../support/cli.ts";
import { CertificateAuthority, type TestCertificate } from "../support/certificates.ts";
import { findFreePort } from "../support/free-port.ts";
import { startTestGateway } from "../support/gateway.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-health-"));
afterAll(() => rmSync(folder, { recursive: true }));

const run = (env: Readonly<Record<string, string>>, ...flags: readonly string[]) =>
  captureCli(["health", ...flags], { env });

/** Writes the files and returns their settings. */
function writeTls(name: string, { cert, key }: TestCertificate) {
  const [certFile, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  return { cert_file: certFile, key_file: keyFile };
}

describe("health", () => {
  it("says whether the gateway is alive, and whether it is ready", async () => {
    const gateway = await startTestGateway({ config: {} });
    try {
      const env = { PARLEY_OPERATIONS_LISTEN: `127.0.0.1:${gateway.operationsPort}` };
      expect(await run(env)).toEqual({ code: 0, stdout: '{"status":"ok"}\n', stderr: "" });
      expect(await run(env, "--ready")).toMatchObject({ code: 0, stdout: expect.stringMatching(/^{"ready":true,/) });
    } finally {
      await gateway.close();
    }
  });

  it("asks a listener on all addresses over loopback, with a configuration whose credentials are not set", async () => {
    const gateway = await startTestGateway({ config: {} });
    const file = join(folder, "parley.yaml");
    writeFileSync(file, 'providers: { alpha: { dialect: anthropic, api_keys: ["${UNSET_KEY}"] } }');
    try {
      const listen = `0.0.0.0:${gateway.operationsPort}`;
      const env = { PARLEY_OPERATIONS_LISTEN: listen, PARLEY_OPERATIONS_ALLOW_PUBLIC: "true" };
      expect(await run(env, "--config", file)).toMatchObject({ code: 0, stderr: "" });
    } finally {
      await gateway.close();
    }
  });

  it.each(["required", "optional"])(
    "trusts the listener's own certificate alone (clients' ones %s)",
    async (clients) => {
      const authority = new CertificateAuthority();
      const authorityFile = join(folder, "authority.pem");
      writeFileSync(authorityFile, authority.cert);
      const own = writeTls("own", authority.issue({ names: ["DNS:parley.example"] }));
      const tls = { ...own, client_ca_file: authorityFile, client_certificates: clients };
      const gateway = await startTestGateway({ config: { operations: { listen: "127.0.0.1:0", tls } } });
      try {
        const env = (cert: string, key: string) => ({
          PARLEY_OPERATIONS_LISTEN: `127.0.0.1:${gateway.operationsPort}`,
          PARLEY_OPERATIONS_TLS_CERT_FILE: cert,
          PARLEY_OPERATIONS_TLS_KEY_FILE: key,
          PARLEY_OPERATIONS_TLS_CLIENT_CA_FILE: authorityFile,
        });
        expect(await run(env(own.cert_file, own.key_file))).toMatchObject({ code: 0, stderr: "" });
        const other = writeTls("other", authority.issue({ names: ["IP:127.0.0.1"] }));
        expect((await run(env(other.cert_file, other.key_file))).stderr).toMatch(
          /^parley: https:\/\/127\.0\.0\.1:\d+\/healthz: \S+\n$/,
        );
      } finally {
        await gateway.close();
      }
    },
  );

  it("fails where nothing listens, where nothing answers in time, and without a port to ask", async () => {
    const free = await findFreePort();
    expect(await run({ PARLEY_OPERATIONS_LISTEN: `127.0.0.1:${free}` })).toEqual({
      code: 1,
      stdout: "",
      stderr: `parley: http://127.0.0.1:${free}/healthz: nothing listens there; no gateway runs, or operations.listen of its configuration differs\n`,
    });
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    expect(await run({ PARLEY_OPERATIONS_LISTEN: `127.0.0.1:${port}` })).toMatchObject({ code: 1, stdout: "" });
    silent.close();
    expect((await run({ PARLEY_OPERATIONS_LISTEN: "127.0.0.1:0" })).stderr).toContain("operations.listen has port 0");
  });
});
