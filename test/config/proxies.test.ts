import { describe, expect, it } from "vitest";
import type { Environment } from "../../src/config/environment.ts";
import { parseConfig } from "../../src/config/parse.ts";
import { redactConfig } from "../../src/config/settings.ts";

const KEY = "a-long-enough-credential";
const PROXY = "http://user:hunter2@proxy.example:3128";

function egressOf(provider: string, env: Environment) {
  const text = `providers: { alpha: { api_keys: ["${KEY}"], ${provider} } }`;
  const config = parseConfig({ file: "parley.yaml", text, env });
  expect(JSON.stringify(redactConfig(config))).not.toContain("hunter2");
  const [alpha] = config.providers;
  return alpha!.simulated ? undefined : alpha!.egress.proxy;
}

describe("the proxy to a provider", () => {
  it.each<[string, Environment, string | undefined]>([
    ["", {}, undefined],
    ["", { HTTPS_PROXY: PROXY }, PROXY],
    ["", { https_proxy: PROXY, HTTPS_PROXY: "http://other" }, PROXY],
    ["", { HTTP_PROXY: PROXY, HTTPS_PROXY: "" }, undefined],
    ["proxy: 'http://own:1'", { HTTPS_PROXY: PROXY }, "http://own:1"],
    ["proxy: none", { HTTPS_PROXY: PROXY }, undefined],
    ["", { HTTPS_PROXY: PROXY, NO_PROXY: "a.example, anthropic.com" }, undefined],
    ["", { HTTPS_PROXY: PROXY, NO_PROXY: ".anthropic.com" }, undefined],
    ["", { HTTPS_PROXY: PROXY, NO_PROXY: "*.anthropic.com" }, undefined],
    ["", { HTTPS_PROXY: PROXY, no_proxy: "api.anthropic.com:443" }, undefined],
    ["", { HTTPS_PROXY: PROXY, no_proxy: "api.anthropic.com:8443" }, PROXY],
    ["", { HTTPS_PROXY: PROXY, no_proxy: "i.anthropic.com,thropic.com" }, PROXY],
    ["", { HTTPS_PROXY: PROXY, NO_PROXY: "*" }, undefined],
    ["proxy: 'http://own:1'", { NO_PROXY: "*" }, "http://own:1"],
    ["address: 10.0.0.7", { HTTPS_PROXY: PROXY }, undefined],
    ["base_url: 'https://10.0.0.7', allow_private: true", { HTTPS_PROXY: PROXY }, undefined],
    ["base_url: 'http://a.example', allow_private: true", { HTTPS_PROXY: PROXY }, undefined],
    ["base_url: 'https://[2001:4860::1]:8443'", { HTTPS_PROXY: PROXY, NO_PROXY: "[2001:4860::1]:8443" }, undefined],
  ])("with %j and %j is %j", (provider, env, proxy) => {
    expect(egressOf(provider, env)).toBe(proxy);
  });

  it("is refused with a % that stands for no character", () => {
    expect(() => egressOf("proxy: 'http://u:50%off@p:1'", {})).toThrow("write it as %25");
  });

  it("is refused in the environment when it is no address of a proxy, without its text", () => {
    expect(() => egressOf("", { HTTPS_PROXY: "hunter2.example:3128" })).toThrow(
      /^(?!.*hunter2)[^]*HTTPS_PROXY: must be the address of an HTTP proxy/,
    );
  });
});
