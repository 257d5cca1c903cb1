import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { createCors } from "../../../src/inbound/http/routes.ts";

/** The CORS headers for a request with these. */
function headersFor(origins: readonly string[], headers: IncomingHttpHeaders, method = "POST"): Record<string, string> {
  return Object.fromEntries(createCors(origins)({ headers, method } as IncomingMessage));
}

const PAGE = "https://app.example.com";

describe("a page of another origin", () => {
  it("gets no CORS headers unless the configuration allows origins", () => {
    expect(headersFor([], { origin: PAGE })).toEqual({});
    expect(headersFor([], { origin: PAGE }, "OPTIONS")).toEqual({});
  });

  it("that is allowed may read the answer and our headers, without the browser's own credentials", () => {
    const headers = headersFor([PAGE], { origin: PAGE });
    expect(headers).toMatchObject({ "access-control-allow-origin": PAGE, vary: "origin" });
    expect(headers["access-control-expose-headers"]).toContain("x-request-id");
    expect(headers["access-control-expose-headers"]).toContain("retry-after-ms");
    expect(headers).not.toHaveProperty("access-control-allow-credentials");
    expect(headers).not.toHaveProperty("access-control-allow-methods");
  });

  it("that is allowed may ask before, and send the headers it names", () => {
    const asked = { origin: PAGE, "access-control-request-headers": "authorization, x-stainless-os" };
    expect(headersFor([PAGE], asked, "OPTIONS")).toMatchObject({
      "access-control-allow-methods": "GET, POST, DELETE",
      "access-control-allow-headers": "authorization, x-stainless-os",
      "access-control-max-age": "600",
    });
    expect(headersFor([PAGE], { origin: PAGE }, "OPTIONS")["access-control-allow-headers"]).toBe(
      "authorization, content-type",
    );
  });

  it.each([
    "https://evil.example.com",
    "http://app.example.com",
    "https://app.example.com:8443",
    "https://app.example.com.evil.com",
    "HTTPS://APP.EXAMPLE.COM",
    "null",
  ])("that is not allowed may read nothing: %s", (origin) => {
    for (const method of ["POST", "OPTIONS"])
      expect(headersFor([PAGE], { origin }, method)).toEqual({ vary: "origin" });
  });

  it("is allowed by a star, each by its own name", () => {
    expect(headersFor(["*"], { origin: PAGE })).toMatchObject({ "access-control-allow-origin": PAGE, vary: "origin" });
  });
});
