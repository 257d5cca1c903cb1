import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { awsCredential, type AwsKeys } from "../../../src/providers/credentials/aws.ts";
import type { Credential } from "../../../src/providers/credentials/credential.ts";
import { close, listen } from "../../support/hosts/server.ts";
import { STUCK, stuck } from "../../support/hosts/stuck.ts";
import { type RawRequest, refuseSignature } from "../../support/bedrock/sigv4.ts";

const BASE = "https://bedrock-runtime.eu-west-1.amazonaws.com";
const KEYS = { accessKeyId: "AKIDEXAMPLE00001", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const NOW_MS = Date.UTC(2026, 10, 26, 12, 0, 0);
const signal = new AbortController().signal;

function credentialOf(keys: AwsKeys = KEYS, baseUrl = BASE): Credential {
  return awsCredential({ region: "eu-west-1", baseUrl, findKeys: async () => keys, now: () => NOW_MS });
}

/** Signs a request, and gives it as the service receives it. */
async function signed(
  credential: Credential,
  path: string,
  { body = "{}", host = new URL(BASE).host } = {},
): Promise<RawRequest> {
  const headers = { "content-type": "application/json", "x-team": "a" };
  const added = await credential.authorize({ path, headers, body, signal });
  return { method: "POST", path, headers: { host, ...headers, ...added }, body: Buffer.from(body) };
}

const rules = { keys: [KEYS], region: "eu-west-1", nowMs: NOW_MS };

describe("a signature of AWS", () => {
  it.each([
    ["a plain model", "/model/amazon.nova-lite/converse"],
    ["a version with a colon", "/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke"],
    [
      "an ARN",
      "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Aapplication-inference-profile%2Fab12/converse-stream",
    ],
  ])("is valid for %s", async (_, path) => {
    expect(refuseSignature(await signed(credentialOf(), path), rules)).toBeUndefined();
  });

  it("covers the body, the path, the host and the token", async () => {
    const keys = { ...KEYS, sessionToken: "token-of-a-session" };
    const request = await signed(credentialOf(keys), "/model/a/converse");
    const known = { ...rules, keys: [keys] };
    expect(refuseSignature(request, known)).toBeUndefined();
    expect(refuseSignature({ ...request, body: Buffer.from("[]") }, known)?.message).toMatch(/content-sha256/);
    expect(refuseSignature({ ...request, path: "/model/b/converse" }, known)?.message).toMatch(/does not match/);
    const headers = { ...request.headers, host: "elsewhere" };
    expect(refuseSignature({ ...request, headers }, known)?.message).toMatch(/does not match/);
    expect(refuseSignature(request, rules)?.type).toBe("UnrecognizedClientException");
  });

  it("is for its region, and for now", async () => {
    const request = await signed(credentialOf(), "/model/a/converse");
    expect(refuseSignature(request, { ...rules, region: "us-east-1" })?.message).toMatch(/region/);
    expect(refuseSignature(request, { ...rules, nowMs: NOW_MS + 6 * 60_000 })?.message).toMatch(/expired/);
  });

  it("covers the path below the address, and a port", async () => {
    const credential = credentialOf(KEYS, "http://127.0.0.1:8443/proxy/");
    const { headers, ...request } = await signed(credential, "/model/a%3A0/converse", { host: "127.0.0.1:8443" });
    const received = { ...request, headers, path: "/proxy/model/a%3A0/converse" };
    expect(refuseSignature(received, rules)).toBeUndefined();
  });

  it("uses changed keys, and reports them as secrets", async () => {
    let keys: AwsKeys = KEYS;
    const credential = awsCredential({
      region: "eu-west-1",
      baseUrl: BASE,
      findKeys: async () => keys,
      now: () => NOW_MS,
    });
    await signed(credential, "/a");
    expect(credential.secrets()).toEqual([KEYS.secretAccessKey, KEYS.accessKeyId]);
    keys = { accessKeyId: "ASIAEXAMPLE00002", secretAccessKey: "another-secret", sessionToken: "token-2" };
    const request = await signed(credential, "/a");
    expect(refuseSignature(request, { ...rules, keys: [{ ...keys, sessionToken: "token-2" }] })).toBeUndefined();
    expect(credential.secrets().slice(0, 3)).toEqual(["another-secret", "ASIAEXAMPLE00002", "token-2"]);
  });
});

describe("keys of AWS that are not found", () => {
  const asking = (findKeys: () => Promise<AwsKeys>, asked = signal) => {
    const credential = awsCredential({ region: "eu-west-1", baseUrl: BASE, findKeys });
    return Promise.resolve(credential.authorize({ path: "/a", headers: {}, body: "", signal: asked })).catch(
      (error: unknown) => error as Failure,
    );
  };

  it("refuse the call, with the chain's words for the log only", async () => {
    const failure = await asking(() => Promise.reject(new Error("Could not load credentials from any providers")));
    expect(failure).toMatchObject({
      code: "upstream_refused_us",
      message: "The gateway has no AWS credentials for the upstream provider.",
      cause: { message: expect.stringMatching(/Could not load credentials from any providers.*AWS_PROFILE/) as string },
    });
  });

  it("are waited for in limits: the caller's, and ten seconds", async () => {
    const left = new Failure("cancelled", "The caller left.");
    const leaving = new AbortController();
    const asked = asking(() => new Promise(() => {}), leaving.signal);
    leaving.abort(left);
    expect(await asked).toBe(left);

    vi.useFakeTimers();
    try {
      const waiting = asking(() => new Promise(() => {}));
      await vi.advanceTimersByTimeAsync(10_000);
      expect(await waiting).toMatchObject({ code: "upstream_unavailable", refused: true });
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("the AWS SDK's default chain", () => {
  beforeEach(() => {
    for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) vi.stubEnv(name, undefined);
    // Not the profiles of this machine.
    for (const name of ["AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"]) vi.stubEnv(name, "/nowhere/aws");
  });
  afterEach(() => void vi.unstubAllEnvs());

  const chained = () => awsCredential({ region: "eu-west-1", baseUrl: BASE, now: () => NOW_MS });

  it("takes keys of the environment", async () => {
    vi.stubEnv("AWS_ACCESS_KEY_ID", KEYS.accessKeyId);
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", KEYS.secretAccessKey);
    expect(refuseSignature(await signed(chained(), "/model/a/converse"), rules)).toBeUndefined();
  });

  it("asks a container's role once until its keys are about to expire, and then again", async () => {
    let asked = 0;
    const lifetimesMs = [60_000, 3_600_000];
    const server = createServer((_, response) => {
      const Expiration = new Date(Date.now() + lifetimesMs[asked++]!).toISOString();
      const keys = {
        AccessKeyId: `ASIAEXAMPLE0000${asked}`,
        SecretAccessKey: `secret-${asked}`,
        Token: `token-${asked}`,
      };
      response.end(JSON.stringify({ ...keys, Expiration }));
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    vi.stubEnv("AWS_CONTAINER_CREDENTIALS_FULL_URI", `http://127.0.0.1:${port}/role`);
    try {
      const credential = chained();
      const tokenOf = async () => (await signed(credential, "/a")).headers["x-amz-security-token"];
      // The first keys expire within five minutes: they serve while the next ones come.
      expect(await tokenOf()).toBe("token-1");
      await expect.poll(tokenOf).toBe("token-2");
      await tokenOf();
      expect(asked).toBe(2);
      expect(credential.secrets().slice(0, 3)).toEqual(["secret-2", "ASIAEXAMPLE00002", "token-2"]);
    } finally {
      server.close();
    }
  });

  it.each(STUCK)("is not waited for beyond the limit, nor read without one, at an STS that is %s", async (how) => {
    const service = stuck(how);
    const server = createServer(service.listener);
    vi.stubEnv("AWS_ENDPOINT_URL_STS", `http://127.0.0.1:${await listen(server)}`);
    vi.stubEnv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/parley");
    // Any file does.
    vi.stubEnv("AWS_WEB_IDENTITY_TOKEN_FILE", import.meta.filename);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const asked = signed(chained(), "/a").catch((error: unknown) => error);
      await expect.poll(() => service.asked).toBe(1);
      if (how !== "endless") vi.advanceTimersByTime(10_000);
      expect(await asked).toMatchObject({ message: "The gateway has no AWS credentials for the upstream provider." });
      await expect.poll(() => service.open).toBe(0);
      expect(service.asked).toBe(1);
      expect(service.sentBytes).toBeLessThan(40 * 1024 * 1024);
    } finally {
      vi.useRealTimers();
      close(server);
    }
  });
});
