import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { entraTokens } from "../../../src/providers/credentials/entra.ts";
import { certificate } from "../../support/hosts/certificate.ts";
import { close, listen } from "../../support/hosts/server.ts";
import { STUCK, stuck } from "../../support/hosts/stuck.ts";
import { CLIENT, type Entra, SECRET, startEntra, TENANT } from "../../support/hosts/entra.ts";

let entra: Entra;
const folder = mkdtempSync(join(tmpdir(), "parley-entra-"));

beforeAll(async () => void (entra = await startEntra()));
afterAll(() => {
  entra.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  vi.stubEnv("AZURE_AUTHORITY_HOST", entra.url);
  vi.stubEnv("AZURE_TENANT_ID", TENANT);
  vi.stubEnv("AZURE_CLIENT_ID", CLIENT);
  // Microsoft's library reads it once in a process, which runs other files after this one (gateway/hosts has a proxy).
  vi.stubEnv("NO_PROXY", "localhost");
});

const get = (signal = AbortSignal.timeout(30_000)) => entraTokens()(signal);

describe("a token of Microsoft Entra ID", () => {
  it("comes for a client secret, a new one each time", async () => {
    vi.stubEnv("AZURE_CLIENT_SECRET", SECRET);
    const [first, second] = [await get(), await get()];
    expect(entra.tokens.accepts(`Bearer ${first.token}`)).toBe(true);
    expect(second.token).not.toBe(first.token);
    expect(first.expiresMs - Date.now()).toBeGreaterThan(3_500_000);
    expect(first.expiresMs - Date.now()).toBeLessThan(3_700_000);
  });

  it("comes for the federated token of a workload identity", async () => {
    const file = join(folder, "token");
    writeFileSync(file, "federated-token-1");
    vi.stubEnv("AZURE_FEDERATED_TOKEN_FILE", file);
    vi.stubEnv("AZURE_TOKEN_CREDENTIALS", "WorkloadIdentityCredential");
    expect(entra.tokens.accepts(`Bearer ${(await get()).token}`)).toBe(true);
  });

  it("does not come for a wrong secret, and the operator reads why without it", async () => {
    vi.stubEnv("AZURE_CLIENT_SECRET", "wrong-secret-wrong-secret");
    const reason = await get().catch((error: unknown) => error);
    expect(reason).toMatchObject({
      code: "upstream_refused_us",
      message: "The gateway could not get a token for the upstream provider.",
      cause: {
        message: expect.stringMatching(
          /^Microsoft Entra ID refused the gateway's credential \(AADSTS7000215: Invalid client secret provided\)\. Check AZURE_TENANT_ID/,
        ) as string,
      },
    });
    expect(JSON.stringify(reason) + String((reason as Error).cause)).not.toContain("wrong-secret");
  });

  it("does not come for an unknown tenant", async () => {
    vi.stubEnv("AZURE_CLIENT_SECRET", SECRET);
    vi.stubEnv("AZURE_TENANT_ID", CLIENT);
    await expect(get()).rejects.toMatchObject({
      code: "upstream_unavailable",
      cause: {
        message: expect.stringContaining("or has no such tenant. Check the network, AZURE_TENANT_ID") as string,
      },
    });
  });

  it("does not come without a credential", async () => {
    vi.stubEnv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential");
    vi.stubEnv("AZURE_TENANT_ID", "");
    await expect(get()).rejects.toMatchObject({
      code: "upstream_refused_us",
      cause: {
        message: expect.stringContaining("There is no credential for Microsoft Entra ID: set api_keys") as string,
      },
    });
  });

  it("may come later when nothing answers", async () => {
    vi.stubEnv("AZURE_CLIENT_SECRET", SECRET);
    vi.stubEnv("AZURE_AUTHORITY_HOST", "https://localhost:1");
    await expect(get()).rejects.toMatchObject({ code: "upstream_unavailable", transient: true });
  });

  it.each(STUCK)("is not waited for beyond the limit, nor read without one, from a service that is %s", async (how) => {
    const service = stuck(how);
    const server = createServer(certificate, service.listener);
    vi.stubEnv("AZURE_AUTHORITY_HOST", `https://localhost:${await listen(server)}`);
    vi.stubEnv("AZURE_CLIENT_SECRET", SECRET);
    vi.stubEnv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential");
    const limit = new AbortController();
    const asked = get(limit.signal).catch((error: unknown) => error);
    await expect.poll(() => service.asked).toBeGreaterThan(0);
    if (how !== "endless") limit.abort();
    expect(await asked).toMatchObject({ message: "The gateway could not get a token for the upstream provider." });
    await expect.poll(() => service.open).toBe(0);
    expect(service.sentBytes).toBeLessThan(40 * 1024 * 1024);
    close(server);
  });
});
