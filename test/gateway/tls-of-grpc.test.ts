import { describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/parse.ts";
import { requireTlsOfGrpc } from "../../src/gateway/starting.ts";

const PAIR = { cert_file: "/tls.pem", key_file: "/tls.key" };
const VERIFYING = { ...PAIR, client_ca_file: "/clients.pem" };
const fronts = ["DNS:front.internal"];
const certificates = [{ name: "DNS:billing.internal", key: "key_1a2b3c4d5e6f7g8h" }];

/** Requires the TLS of a configuration with one port for HTTP and gRPC. */
function require(
  sections: { readonly tls?: object; readonly [section: string]: unknown },
  role: "all" | "core" | "front",
) {
  const { tls, ...others } = sections;
  const text = JSON.stringify({ http: { grpc: true, ...(tls !== undefined && { tls }) }, ...others });
  requireTlsOfGrpc(parseConfig({ file: "parley.yaml", text, env: {} }), role);
}

describe("one port for HTTP and gRPC", () => {
  it.each([
    ["grpc.tls alone", { grpc: { tls: PAIR } }, /^http\.grpc: gRPC would be served without grpc\.tls, in plain text/],
    [
      "client certificates, and fronts, of grpc.tls alone",
      { tls: PAIR, grpc: { tls: VERIFYING }, access: { fronts, certificates } },
      /^http\.grpc: gRPC would be served without grpc\.tls\.client_ca_file/,
    ],
  ])("does not start with %s, except as a core or a front, which do not have it", (_, sections, problem) => {
    expect(() => require(sections, "all")).toThrow(problem);
    expect(() => require(sections, "core")).not.toThrow();
    expect(() => require(sections, "front")).not.toThrow();
  });

  it.each([
    ["nothing", {}],
    ["http.tls", { tls: PAIR }],
    ["both", { tls: VERIFYING, grpc: { tls: VERIFYING }, access: { fronts, certificates } }],
  ])("starts with %s", (_, sections) => {
    expect(() => require(sections, "all")).not.toThrow();
  });
});
