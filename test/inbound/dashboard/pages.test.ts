import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtFilesOf } from "../../../src/inbound/dashboard/built-files.ts";
import { readFolder } from "../../../src/installation/own-files.ts";
import { PAGE_PATHS } from "../../../web/paths.ts";
import { type ConsoleUnderTest, startConsole } from "./set-up.ts";

const PAGE = "<!doctype html><title>Parley</title>";
const REFERENCE = "<!doctype html><title>API reference</title>";
const SCRIPT = "console.log('a script that is long enough to be worth compressing')".repeat(20);
const ASSET = "/assets/main-1a2b.js";
const ICON = "<svg/>";

const folder = mkdtempSync(join(tmpdir(), "parley-pages-"));
let site: ConsoleUnderTest;
let unbuilt: ConsoleUnderTest;

beforeAll(async () => {
  mkdirSync(join(folder, "assets"));
  writeFileSync(join(folder, "index.html"), PAGE);
  writeFileSync(join(folder, "docs.html"), REFERENCE);
  writeFileSync(join(folder, "built.json"), "{}");
  writeFileSync(join(folder, ASSET), SCRIPT);
  writeFileSync(join(folder, "assets/mark-1a2b.svg"), ICON);
  writeFileSync(join(folder, `${ASSET}.br`), brotliCompressSync(SCRIPT));
  writeFileSync(join(folder, `${ASSET}.gz`), gzipSync(SCRIPT));
  site = await startConsole({ files: builtFilesOf(await readFolder(folder)) });
  unbuilt = await startConsole({ files: builtFilesOf(await readFolder(join(folder, "nowhere"))) });
});
afterAll(() => {
  site.close();
  unbuilt.close();
  rmSync(folder, { recursive: true });
});

/** The sources of each directive of an answer's policy. */
function policyOf(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    String(headers["content-security-policy"])
      .split("; ")
      .map((directive) => {
        const [name = "", ...values] = directive.split(" ");
        return [name, values.join(" ")];
      }),
  );
}

describe("the pages", () => {
  it.each(PAGE_PATHS)("are at %s, never stored", async (path) => {
    const { status, headers, text } = await site.send(`${path}?x=1`, { method: "GET" });
    expect({ status, text }).toEqual({ status: 200, text: path === "/docs" ? REFERENCE : PAGE });
    expect(headers).toMatchObject({ "content-type": "text/html; charset=utf-8", "cache-control": "no-store" });
  });

  it.each(["chatcmpl-abc", "req_1", "an%2Fid%3F", "a".repeat(128)])("are at /requests/%s too", async (id) => {
    expect(await site.send(`/requests/${id}`, { method: "GET" })).toMatchObject({ status: 200, text: PAGE });
  });

  it.each(["/requests/a/b", `/requests/${"a".repeat(401)}`, "/keys/a", "/keys//"])("are not at %s", async (path) => {
    expect((await site.send(path, { method: "GET" })).status).toBe(404);
  });

  it.each([
    ["/keys/", "/keys"],
    ["/docs/?x=1", "/docs?x=1"],
    ["/admin/accounts/", "/admin/accounts"],
    ["/requests/", "/requests"],
    ["/requests/chatcmpl-1/?a=/b/", "/requests/chatcmpl-1?a=/b/"],
  ])("are where %s leads to", async (path, location) => {
    const { status, headers } = await site.send(path, { method: "GET" });
    expect({ status, location: headers["location"] }).toEqual({ status: 308, location });
  });

  it("have an icon where browsers look for one", async () => {
    const { status, headers, text } = await site.send("/favicon.ico", { method: "GET" });
    expect({ status, type: headers["content-type"], text }).toEqual({ status: 200, type: "image/svg+xml", text: ICON });
  });

  it.each(["/nonsense", "/keys/a", "/login", "/a/b/c", "/admin/nothing"])(
    "say to a browser at %s that there is none",
    async (path) => {
      const accept = "text/html,application/xhtml+xml,*/*;q=0.8";
      const { status, headers, text } = await site.send(path, { method: "GET", headers: { accept } });
      expect({ status, text }).toEqual({ status: 404, text: PAGE });
      expect(headers).toMatchObject({ "content-type": "text/html; charset=utf-8", "cache-control": "no-store" });
      expect(headers["content-security-policy"]).toContain("default-src 'none'");
    },
  );

  it("are no answer to a browser that asks the API, another method or another host", async () => {
    const accept = "text/html";
    for (const [path, method, headers] of [
      ["/v1/nothing", "GET", { accept }],
      ["/v1", "GET", { accept }],
      ["/nonsense", "POST", { accept }],
      ["/nonsense", "GET", { accept, host: "evil.example" }],
      ["/nonsense", "GET", { accept: "*/*" }],
    ] as const) {
      const { status, text } = await site.send(path, { method, headers });
      expect({ path, status }).toEqual({ path, status: 404 });
      expect(JSON.parse(text)).toHaveProperty("error.type", "not_found_error");
    }
    expect((await unbuilt.send("/nonsense", { method: "GET", headers: { accept } })).status).toBe(404);
  });

  it("carry a policy that lets nothing in from elsewhere, and no other page around them", async () => {
    const { headers } = await site.send("/", { method: "GET" });
    expect(policyOf(headers)).toEqual({
      "default-src": "'none'",
      "script-src": "'self'",
      "style-src": "'self'",
      "img-src": "'self' data: blob:",
      "font-src": "'self'",
      "connect-src": "'self'",
      "form-action": "'self'",
      "base-uri": "'none'",
      "object-src": "'none'",
      "frame-ancestors": "'none'",
      "require-trusted-types-for": "'script'",
      "trusted-types": "'none'",
    });
    expect(headers).toMatchObject({
      "cross-origin-opener-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    });
    expect(headers).not.toHaveProperty("strict-transport-security");
    expect(headers).not.toHaveProperty("access-control-allow-origin");
  });

  it("carry another policy at /docs: an empty style, a worker of the page's own, sanitized HTML, and no forms", async () => {
    const [page, reference] = await Promise.all(["/", "/docs"].map((path) => site.send(path, { method: "GET" })));
    expect(policyOf(reference!.headers)).toEqual({
      ...policyOf(page!.headers),
      "style-src": expect.stringMatching(/^'self'( 'sha256-[\w+/]{43}='){2}$/),
      "img-src": "'self' data:",
      "font-src": "'none'",
      "form-action": "'none'",
      "worker-src": "blob:",
      "trusted-types": "default dompurify",
    });
  });

  it("are only for host names of the installation", async () => {
    for (const host of ["evil.example", "127.0.0.1.evil.example"]) {
      const { status, text } = await site.send("/keys", { method: "GET", headers: { host } });
      expect(status).toBe(403);
      expect(text).toContain("http.public_url");
    }
  });

  it("are only read", async () => {
    for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
      const { status, headers } = await site.send("/keys", { method });
      expect({ status, allow: headers["allow"] }).toEqual({ status: 405, allow: "GET, HEAD" });
    }
    const head = await site.send("/keys", { method: "HEAD" });
    expect({ status: head.status, text: head.text }).toEqual({ status: 200, text: "" });
    expect(head.headers["content-length"]).toBe(String(PAGE.length));
  });

  it("leave all other addresses as they were", async () => {
    for (const path of ["/nope", "/index.html", "/built.json", `${ASSET}.br`, "/assets/../index.html", "/assets"]) {
      const { status, text } = await site.send(path, { method: "GET" });
      expect({ path, status }).toEqual({ path, status: 404 });
      expect(JSON.parse(text)).toHaveProperty("error.type", "not_found_error");
    }
    expect((await site.send("/healthz", { method: "GET" })).status).toBe(200);
    expect((await site.send("/v1/models", { method: "GET" })).status).toBe(401);
  });

  it("say so when they are not built, while everything else is served", async () => {
    const { status, headers, text } = await unbuilt.send("/", { method: "GET" });
    expect(status).toBe(503);
    expect(text).toContain("npm run build:web");
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
    expect((await unbuilt.send("/healthz", { method: "GET" })).status).toBe(200);
  });
});

describe("a file of the pages", () => {
  it("is cached without a limit, because its name changes with its content", async () => {
    const { status, headers, text } = await site.send(ASSET, { method: "GET" });
    expect({ status, text }).toEqual({ status: 200, text: SCRIPT });
    expect(headers).toMatchObject({
      "cache-control": "public, max-age=31536000, immutable",
      "content-type": "text/javascript; charset=utf-8",
      vary: "accept-encoding",
    });
    expect(headers).not.toHaveProperty("content-encoding");
  });

  it.each([
    ["gzip, deflate, br", "br", brotliCompressSync(SCRIPT).length],
    ["gzip, deflate", "gzip", gzipSync(SCRIPT).length],
    ["gzip, br;q=0", "gzip", gzipSync(SCRIPT).length],
    ["identity", undefined, SCRIPT.length],
  ])("is compressed as the browser asks: %s", async (accepted, encoding, length) => {
    const { headers } = await site.send(ASSET, { method: "GET", headers: { "accept-encoding": accepted } });
    expect(headers["content-encoding"]).toBe(encoding);
    expect(headers["content-length"]).toBe(String(length));
  });

  it("is not sent again to who has it", async () => {
    const { headers } = await site.send(ASSET, { method: "GET" });
    const etag = String(headers["etag"]);
    const again = await site.send(ASSET, { method: "GET", headers: { "if-none-match": `"other", ${etag}` } });
    expect({ status: again.status, text: again.text }).toEqual({ status: 304, text: "" });
  });
});
