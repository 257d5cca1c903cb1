import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { googleTokens } from "../../../src/providers/credentials/google.ts";
import { close, listen } from "../../support/hosts/server.ts";
import { STUCK, stuck } from "../../support/hosts/stuck.ts";
import { forgedAccount, type GoogleOAuth, serviceAccount, startGoogleOAuth } from "../../support/hosts/google-oauth.ts";

let oauth: GoogleOAuth;
const folder = mkdtempSync(join(tmpdir(), "parley-google-"));

function write(name: string, content: object): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify(content));
  return path;
}

beforeAll(async () => void (oauth = await startGoogleOAuth()));
afterAll(() => {
  oauth.close();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  vi.stubEnv("HTTPS_PROXY", oauth.proxyUrl);
  vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", undefined);
});
afterEach(() => void (oauth.failure = undefined));

const get = (file?: string, signal = new AbortController().signal) => googleTokens({ file })(signal);

/** Workload identity: a token of elsewhere is exchanged at `tokenUrl`. */
function externalAccount(tokenUrl: string): object {
  const file = join(folder, "subject");
  writeFileSync(file, "subject-token");
  return {
    type: "external_account",
    audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
    subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
    token_url: tokenUrl,
    credential_source: { file },
  };
}

const impersonated = {
  type: "impersonated_service_account",
  service_account_impersonation_url:
    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/a@b.iam.gserviceaccount.com:generateAccessToken",
};

/** What the operator reads. */
const causeOf = (text: string): object => ({ cause: { message: expect.stringContaining(text) as string } });

describe("a token of Google", () => {
  it("comes for a service account's signed assertion, a new one each time", async () => {
    const file = write("account.json", serviceAccount);
    const [first, second] = [await get(file), await get(file)];
    expect(oauth.tokens.accepts(`Bearer ${first.token}`)).toBe(true);
    expect(second.token).not.toBe(first.token);
    expect(first.expiresMs - Date.now()).toBeGreaterThan(3_500_000);
    expect(first.expiresMs - Date.now()).toBeLessThan(3_700_000);
  });

  it("comes for the application default credentials, with their project for quotas", async () => {
    const account = { ...serviceAccount, quota_project_id: "acme-quota" };
    vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", write("default.json", account));
    const { token, headers } = await get();
    expect(oauth.tokens.accepts(`Bearer ${token}`)).toBe(true);
    expect(headers).toEqual({ "x-goog-user-project": "acme-quota" });
  });

  it("does not come for a foreign key", async () => {
    await expect(get(write("forged.json", forgedAccount))).rejects.toMatchObject({
      code: "upstream_refused_us",
      message: "The gateway could not get a token for the upstream provider.",
      ...causeOf("HTTP 400 (invalid_grant: Invalid JWT Signature.)"),
    });
  });

  it("does not come for another kind of file, or for none", async () => {
    const other = write("other.json", { type: "another-type", refresh_token: "1//secret" });
    const reasonOfOther = await get(other).catch((error: unknown) => error);
    expect(reasonOfOther).toMatchObject({
      code: "upstream_refused_us",
      ...causeOf("Check credential_file, or the file that GOOGLE_APPLICATION_CREDENTIALS names."),
    });
    expect(String((reasonOfOther as Error).cause)).not.toContain("secret");
    await expect(get(join(folder, "none.json"))).rejects.toMatchObject({
      code: "upstream_refused_us",
      ...causeOf("The file with the credential cannot be read (ENOENT)."),
    });
    const noJson = join(folder, "no-json");
    writeFileSync(noJson, "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC");
    vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", noJson);
    await expect(get()).rejects.toMatchObject({
      code: "upstream_refused_us",
      ...causeOf("The file that GOOGLE_APPLICATION_CREDENTIALS names is not JSON."),
    });
    const broken = write("broken.json", { ...serviceAccount, private_key: "-----BEGIN PRIVATE KEY-----\nsecret\n" });
    const reason = await get(broken).catch((error: unknown) => error);
    expect(reason).toMatchObject({ code: "upstream_refused_us" });
    expect(String((reason as Error).cause)).not.toContain("secret");
  });

  it("may come later when the service fails or nothing answers", async () => {
    const file = write("account.json", serviceAccount);
    oauth.failure = { status: 503, body: { error: "backend_error" } };
    await expect(get(file)).rejects.toMatchObject({ code: "upstream_unavailable", transient: true });
    vi.stubEnv("HTTPS_PROXY", "http://127.0.0.1:1");
    await expect(get(file)).rejects.toMatchObject({ code: "upstream_unavailable", transient: true });
  });

  it.each(STUCK.flatMap((how) => [[how, "itself"] as const, [how, "the source of another one"] as const]))(
    "is not waited for beyond the limit, nor read without one, from a service that is %s: of %s",
    async (how, kind) => {
      const service = stuck(how);
      const server = createServer(service.listener);
      const port = await listen(server);
      vi.stubEnv("HTTPS_PROXY", undefined);
      const account = externalAccount(`http://127.0.0.1:${port}/token`);
      const source = { ...impersonated, source_credentials: account };
      vi.stubEnv("GOOGLE_APPLICATION_CREDENTIALS", write("external.json", kind === "itself" ? account : source));
      const limit = new AbortController();
      const asked = get(undefined, limit.signal).catch((error: unknown) => error);
      await expect.poll(() => service.asked).toBeGreaterThan(0);
      if (how !== "endless") limit.abort();
      expect(await asked).toMatchObject({ message: "The gateway could not get a token for the upstream provider." });
      limit.abort();
      await expect.poll(() => service.open).toBe(0);
      expect(service.sentBytes).toBeLessThan(40 * 1024 * 1024);
      close(server);
    },
  );
});
